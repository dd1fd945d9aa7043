"""`ftbc reproduce`: the list, one table from end to end, a kill in the middle, and what goes wrong."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ftbc import zoo
from ftbc.reproduce import experiments

from ..reproduce.tiny import TABLE, make_place
from .conftest import Outcome

Command = Callable[..., Outcome]
Fails = Callable[..., str]
MATERIAL = ("--data", "cifar10=pictures", "--weights", "weights", "--engine", "layerwise")


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with all that tiny experiments need."""
    return make_place(folder, monkeypatch)


def test_the_list(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("reproduce", "list", "--json", "list.json")
    assert outcome.status == 0 and outcome.err == ""
    content = json.loads((folder / "list.json").read_text())
    assert [(each["experiment"], each["scale"]) for each in content] == [
        (name, scale) for name in experiments() for scale in ("full", "small")
    ]
    by_name = {(each["experiment"], each["scale"]): each for each in content}
    assert by_name["cifar10", "full"]["seconds"] is None and by_name["cifar10", "full"]["whole"] > 3600
    small = by_name["cifar10", "small"]
    assert "resnet20-cifar10" in small["networks"] and 1 < small["seconds"] < 1e5
    assert "cifar10 from cifar10-sample" in small["data"]
    promised = ["resnet20-qcfs4-cifar10", "resnet20-trelu-cifar10", "vgg16-cifar10"]
    for name in promised:
        assert (name in small["networks"]) == (name in zoo.entries())
        assert any(name in text for text in small["lacking"]) == (name not in zoo.entries())
    assert by_name["stability", "small"]["lacking"] == []
    for name, experiment in experiments().items():
        assert f"{name}: {experiment.heading}\n" in outcome.out
    assert "images of imagenet (--data imagenet=PATH)" in outcome.out


def test_a_table_from_end_to_end(ftbc_command: Command, here: Path) -> None:
    command = ("reproduce", "tiny.toml", "--scale", "small", *MATERIAL, "--to", "out", "--json", "t.json")
    outcome = ftbc_command(*command)
    assert outcome.status == 0 and outcome.err == "", outcome
    assert "2 measured now, 0 taken from out/measurements" in outcome.out and "not measured: RTS" in outcome.out
    assert {path.name for path in (here / "out").iterdir()} == {
        "measurements", "tiny.csv", "tiny.md", "tiny.png", "tiny.svg", "tiny.tex",
    }  # fmt: skip
    rows = list(csv.DictReader((here / "out" / "tiny.csv").read_text().splitlines()))
    content = json.loads((here / "t.json").read_text())
    assert float(rows[0]["here"]) == content["lines"][0]["rows"][0]["accuracy"]
    assert content["made"]["machine"]["versions"]["torch"] in (here / "out" / "tiny.md").read_text()
    again = ftbc_command(*command, "--only-kept")
    assert again.status == 0 and "0 measured now, 2 taken" in again.out
    fewer = ftbc_command(*command, "--most-steps", "1", "--seeds", "2", "--seed", "1")
    assert fewer.status == 0 and "2 measured now, 0 taken" in fewer.out


def test_folders_by_the_names_of_data_sets(ftbc_command: Command, here: Path) -> None:
    (here / "data").mkdir()
    (here / "pictures").rename(here / "data" / "cifar10")
    outcome = ftbc_command("reproduce", "scheme.toml", "--scale", "small", "--data", "data", "--weights", "weights")
    assert outcome.status == 0 and (here / "reproduced" / "scheme.md").is_file()


def test_killed(ftbc_command: Command, here: Path, environment: dict[str, str]) -> None:
    blueprint = zoo.Blueprint("resnet20", classes=10, width=0.125)  # which a process of its own knows, too
    zoo.save_weights(blueprint.build(), here / "weights" / "net.safetensors", blueprint)
    text = TABLE.replace('"tiny"', '"resnet20"').replace("iterations = 2", "iterations = 6")
    (here / "slow.toml").write_text(text.replace("seeds = 2", "seeds = 3"))
    command = ["reproduce", "slow.toml", *MATERIAL, "--to", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ftbc", *command], cwd=here, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + 200
    while not list((here / "out").glob("measurements/t*.json")) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    kept = len(list((here / "out" / "measurements").glob("t*.json")))
    assert 1 <= kept < 6 and not (here / "out" / "slow.md").exists()
    outcome = ftbc_command(*command)
    assert outcome.status == 0 and f"{6 - kept} measured now, {kept} taken" in outcome.out


def test_interrupted(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from ftbc.cli.app import run
    from ftbc.protocol import work

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "convert", interrupt)
    assert run(["reproduce", "tiny.toml", *MATERIAL]) == 130
    assert "kept in 'reproduced/measurements'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cifar11",), ("cifar11", "cifar10", "stability")),
        (("none.toml",), ("none.toml", "cannot be read")),
        (("tiny.toml", "--scale", "huge"), ("huge", "full or small")),
        (("tiny.toml", "--data", "cifar10=none"), ("cifar10=none", "does not exist")),
        (("tiny.toml", "--data", "mnist=squares"), ("mnist", "cifar100")),
        (("tiny.toml", "--data", "squares"), ("squares", "NAME=PATH")),
        (("tiny.toml", "--weights", "none"), ("none", "not a folder")),
        (("tiny.toml", "--engine", "evnt"), ("evnt", "layerwise")),
        (("tiny.toml", "--most-steps", "0"), ("--most-steps",)),
        (("tiny.toml", "--to", "nets.py"), ("nets.py",)),
        (("tiny.toml", "--json", "no/t.json"), ("no/t.json",)),
        (("tiny.toml",), ("tiny", "lacks", "net.safetensors")),
        (("cifar10",), ("cifar10", "lacks", "--weights FOLDER")),
        (("stability",), ("stability", "lacks", "--data cifar100=PATH")),
        (("imagenet-qcfs", "--scale", "small"), ("imagenet-qcfs", "at scale small")),
        (("tiny.toml", *MATERIAL, "--only-kept"), ("tiny", "not measured yet")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_goes_wrong_is_one_line(
    arguments: tuple[str, ...], words: tuple[str, ...], fails: Fails, here: Path
) -> None:
    line = fails("reproduce", *arguments)
    assert all(word in line for word in words), line
    assert not list(here.rglob("*.md"))
