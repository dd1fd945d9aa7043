"""The files in experiments/: each can be read, knows its networks and recipes, and has the settings of the paper."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

from ftbc import zoo
from ftbc.calibrate import FTBC
from ftbc.errors import FileError, FtbcError
from ftbc.reproduce import experiments
from ftbc.reproduce.experiment import DATA, SCALES, TABLE, Experiment, Source
from ftbc.reproduce.files import FOLDERS, find_experiment, folder, read_experiment
from ftbc.reproduce.material import Material

from ..conftest import Refused
from .tiny import TABLE as TINY

EVERY = experiments()
LABELS = {
    "imagenet": "tab:ann-snn-imagenet", "cifar100": "tab:ann-snn-cifar100", "cifar10": "tab:ann-snn-cifar10",
    "other-training": "tab:other-snn-training-methods", "imagenet-snnc": "tab:imagenet-snnc",
    "imagenet-qcfs": "tab:imagenet-qcfs", "cifar-snnc": "tab:cifar-10-100-snnc", "cifar-qcfs": "tab:cifar100-qcfs",
    "imagenet-rts": "tab:imagenet-rts", "cifar-rts": "tab:cifar-10-100-rts", "overview": "fig:overview",
    "bias-search": "fig dist", "stability": "fig:dist", "membranes": "fig mem dist",
}  # fmt: skip
# The configuration table of the paper: iterations, batch, batches, alpha. ImageNet ResNet-20 there is ResNet-34.
CONFIGURATION = {
    ("cifar10", "resnet20", "FTBC"): (10, 128, 2, 0.2),
    ("cifar10", "resnet20", "FTBC (+QCFS)"): (4, 32, 1, 0.5),
    ("cifar10", "resnet20", "FTBC (+RTS)"): (10, 32, 2, 0.005),
    ("cifar10", "vgg16", "FTBC"): (10, 128, 2, 0.2),
    ("cifar10", "vgg16", "FTBC (+QCFS)"): (10, 10, 1, 0.5),
    ("cifar10", "vgg16", "FTBC (+RTS)"): (3, 32, 3, 0.005),
    ("cifar100", "resnet20", "FTBC"): (1, 128, 2, 0.2),
    ("cifar100", "resnet20", "FTBC (+QCFS)"): (4, 32, 1, 0.5),
    ("cifar100", "resnet20", "FTBC (+RTS)"): (3, 32, 3, 0.005),
    ("cifar100", "vgg16", "FTBC"): (10, 128, 2, 0.2),
    ("cifar100", "vgg16", "FTBC (+QCFS)"): (4, 32, 1, 0.5),
    ("cifar100", "vgg16", "FTBC (+RTS)"): (3, 32, 3, 0.005),
    ("imagenet", "resnet34", "FTBC"): (10, 128, 10, 0.5),
    ("imagenet", "resnet34", "FTBC (+QCFS)"): (50, 2, 1, 0.5),
    ("imagenet", "vgg16", "FTBC"): (10, 128, 10, 0.5),
    ("imagenet", "vgg16", "FTBC (+QCFS)"): (50, 2, 1, 0.5),
    ("imagenet", "vgg16", "FTBC (+RTS)"): (3, 128, 10, 0.5),
}
# How many lines and how many figures each table of the paper has.
SIZES = {
    "imagenet": (13, 60), "cifar100": (18, 95), "cifar10": (17, 80), "other-training": (18, 19),
    "imagenet-snnc": (10, 42), "imagenet-qcfs": (4, 32), "cifar-snnc": (12, 96), "cifar-qcfs": (22, 160),
    "imagenet-rts": (2, 16), "cifar-rts": (8, 48),
}  # fmt: skip


def sources(experiment: Experiment) -> list[tuple[str, Source]]:
    return [(scale, source) for by_scale in experiment.networks.values() for scale, source in by_scale.items()]


def test_every_table_and_figure_of_the_paper_is_there() -> None:
    assert {name: each.source for name, each in EVERY.items() if name in LABELS} == LABELS
    assert [each.kind == TABLE for each in EVERY.values()] == sorted(
        (e.kind == TABLE for e in EVERY.values()), reverse=True
    )


@pytest.mark.parametrize("name", EVERY)
def test_networks_and_recipes_exist_or_are_said_to_be_missing(name: str) -> None:
    experiment = EVERY[name]
    nothing = Material(sample=True)
    for scale, source in sources(experiment):
        if source.zoo is None:
            assert source.blueprint is not None and source.weights is not None
            with torch.device("meta"):
                source.blueprint.build()
            assert source.weights in str(*nothing.lacks_network(source, scale))
            if source.train is not None:
                assert (folder() / "train" / source.train).is_file()
        elif source.zoo not in zoo.entries():
            assert str(*nothing.lacks_network(source, scale)) == f"network {source.zoo}, not in the zoo of this version"
        else:
            assert nothing.lacks_network(source, scale) == []
            assert scale == "small" or name not in LABELS  # the paper's networks are larger
    for part in experiment.parts:
        for row in part.rows:
            assert (row.recipe is None) != (row.trained is None)
            for scale in SCALES if row.recipe is not None else ():
                assert row.method_here(scale).name == row.method
    used = {row.network for part in experiment.parts for row in part.rows} - {None}
    assert used == set(experiment.networks) - {"subject"}


@pytest.mark.parametrize("name", SIZES)
def test_every_figure_of_a_table_is_there(name: str) -> None:
    rows = [row for part in EVERY[name].parts for row in part.rows]
    assert (len(rows), sum(len(row.paper) for row in rows)) == SIZES[name]


@pytest.mark.parametrize("name", [name for name, each in EVERY.items() if each.kind == TABLE and name in LABELS])
def test_settings_are_those_of_the_configuration_table(name: str) -> None:
    seen = 0
    for part in EVERY[name].parts:
        for row in part.rows:
            if not row.method.startswith("FTBC"):
                continue
            assert row.network is not None
            architecture = row.network.split("-")[0]
            method, _, batch = row.method.partition(", batches of ")
            (piece,) = (each for each in row.method_here("full").calibrate if isinstance(each, FTBC))
            found = (piece.iterations, piece.batch, piece.batches, piece.alpha)
            # MobileNet has no line there; its text gives CIFAR's settings.
            wanted = CONFIGURATION.get((part.data, architecture, method), (10, 128, 2, 0.2))
            if batch or (name, part.data) == ("other-training", "cifar100"):
                wanted = (wanted[0], int(batch or 16), *wanted[2:])
            assert found == wanted, row.method
            assert not piece.clip and piece.grain == "channel"
            seen += 1
    assert seen


def test_some_figures_of_the_paper() -> None:
    def paper(name: str, part: int, method: str) -> dict[int, float]:
        return dict(next(row.paper for row in EVERY[name].parts[part].rows if row.method == method))

    assert paper("imagenet", 0, "FTBC") == {4: 13.70, 8: 38.55, 16: 60.68, 32: 70.88, 64: 74.29, 128: 75.28}
    assert paper("cifar10", 1, "FTBC (+QCFS)")[4] == 94.67 and paper("cifar100", 0, "SlipReLU")[64] == 51.75
    assert paper("cifar-qcfs", 0, "FTBC (+QCFS), batches of 10")[2] == 77.4
    assert paper("cifar-rts", 3, "FTBC (+RTS)") == {4: 10.0, 8: 10.0, 16: 91.16, 32: 92.72, 64: 93.10, 128: 93.16}
    assert paper("imagenet-snnc", 2, "SNNC-LP") == {32: 69.30, 64: 71.12, 128: 71.85}
    assert paper("other-training", 2, "FTBC (+QCFS)") == {6: 62.26, 8: 65.28}


def test_the_package_has_its_experiments_where_it_looks_for_them() -> None:
    assert folder() in FOLDERS
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"experiments": "ftbc/experiments"}  # where an installed package looks


def test_names(refused: Refused, tmp_path: Path) -> None:
    assert find_experiment("cifar10").name == "cifar10"
    refused(FileError, ("cifar11", "'cifar10'", "stability"), find_experiment, "cifar11")
    refused(FileError, "none.toml", find_experiment, str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('kind = "table"', 'kind = "tabel"', ("kind", "tabel", "stability")),
        ('kind = "table"', 'kind = "overview"', ("parts", "overview")),
        ('title = "A tiny table"', "title = 3", ("title = 3", "text")),
        ('about = "Two methods & a 100 % quoted one."', "", ("about",)),
        ('recipe = "qcfs"', 'recipe = "qcfs"\ncalibrate = "FTBC"', ("calibrate", "list")),
        ("steps = [1, 2]", "steps = [0]", ("steps", "at least 1")),
        ("steps = [1, 2]", "steps = []", ("steps",)),
        ("seeds = 2", "seeds = true", ("seeds", "whole number")),
        ("seeds = 2", "seeds = 2\nlimit = 5", ("limit and full_up_to",)),
        ("seeds = 2", "speed = 2", ("speed", "take it out")),
        ('data = "cifar10"', 'data = "mnist"', ("mnist", "cifar100")),
        ('network = "net"', 'network = "nets"', ("nets", "[networks.nets]")),
        ('recipe = "rts"', "", ("network and a recipe",)),
        ('method = "QCFS"', 'method = "FTBC"', ("method of its own",)),
        ("1 = 50.0", "one = 50.0", ("one = 50.0", "percents")),
        ("1 = 50.0", "1 = 150.0", ("150.0",)),
        ("classes = 10", "depth = 3", ("depth",)),
        ("classes = 10", 'normalise = "cifra10"', ("cifra10", "symmetric")),
        ("[[part]]", '[[part]]\nlike = "none"', ("'like'", "before")),
        ("[[part]]", '[[part]]\nnetwork = "net"', ("'like'", "both")),
        ("notes = [", "notes = [3, ", ("notes",)),
        ("[[part]]", "[[part", ("cannot be read",)),
        ("[networks.net]", "[networks]\nnet = 3\n[networks.nett]", ("networks.net",)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_files(before: str, after: str, words: tuple[str, ...], refused: Refused, tmp_path: Path) -> None:
    assert before in TINY
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.replace(before, after))
    refused(FileError, ("tiny.toml", *words), read_experiment, path)


def test_a_part_like_another(refused: Refused, tmp_path: Path) -> None:
    path, first = tmp_path / "tiny.toml", "ResNet-20 on CIFAR-10"
    more = '[[part]]\ntitle = "{}"\ndata = "cifar100"\nlike = "{}"\nnetwork = "{}"\n'
    path.write_text(TINY + more.format("Others", first, "gone"))
    one, two = read_experiment(path).parts
    assert [row.method for row in two.rows] == [row.method for row in one.rows]
    assert {row.network for row in two.rows} == {"gone", None} and {row.network for row in one.rows} == {
        "net",
        "gone",
        None,
    }
    path.write_text(TINY + more.format("Others", first, "nets"))
    refused(FileError, ("nets", "[networks.nets]"), read_experiment, path)
    path.write_text(TINY + more.format(first, first, "gone"))
    refused(FileError, ("two parts", "of its own"), read_experiment, path)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('recipe = "ftbc-cifar"', 'recipe = "fbtc"', ("fbtc", "ftbc")),
        ("alpha = 0.2", "aplha = 0.2", ("FTBC", "aplha")),
        ('recipe = "ftbc-cifar"', 'recipe = "maximum"', ("FTBC", "maximum")),
        ("iterations = 2", "iterations = 0", ("at least 1",)),
        ("ann = 95.0", 'calibrate = [{ type = "FTCB" }]', ("FTCB", "FTBC")),
    ],
)
def test_bad_recipes(before: str, after: str, words: tuple[str, ...], refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.replace(before, after))
    refused(FtbcError, words, read_experiment(path).parts[0].rows[0].method_here, "full")


def test_material(refused: Refused, tmp_path: Path) -> None:
    refused(FtbcError, ("mnist", *DATA), Material, {"mnist": "x"})
    file = tmp_path / "imagenet.npz"
    file.touch()
    assert "imagenet-train" in str(*Material({"imagenet": str(file)}).lacks_data("imagenet"))
    assert Material({"imagenet": str(file), "imagenet-train": str(file)}).lacks_data("imagenet") == []
    assert Material().lacks_data("cifar10") and not Material(sample=True).lacks_data("cifar10")
    images = Material(sample=True).draws("cifar10", Source(zoo="resnet20-cifar10"), 10_000)(0)
    assert len(images) == 512
