"""Plans: from a file and options to settings, and to a file that says all of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ftbc.errors import FileError, InputError, ModelError
from ftbc.train import TrainSettings
from ftbc.train.plan import merged, plan_of, read_plan
from ftbc.zoo import Blueprint
from tests.conftest import Refused

EXPERIMENTS = Path(__file__).parents[2] / "experiments" / "train"
NETWORK = {"network": {"architecture": "resnet20"}, "data": "here"}


def plan(*parts: dict[str, Any]):
    return plan_of(merged(NETWORK, *parts))


def test_later_parts_override_and_none_says_nothing() -> None:
    found = plan(
        {"train": {"epochs": 7, "batch": 64}, "network": {"width": 0.5}},
        {"train": {"epochs": 9, "batch": None}, "network": {"width": None, "activation": "qcfs"}, "data": None},
    )
    assert found.train == TrainSettings(epochs=9, batch=64)
    assert found.network == Blueprint("resnet20", width=0.5, activation="qcfs") and found.data == "here"


@pytest.mark.parametrize(
    ("network", "rate", "decay"),
    [({}, 0.1, 5e-4), ({"batch_norm": False}, 0.01, 1e-4), ({"architecture": "vgg16"}, 0.01, 1e-4),
     ({"architecture": "mobilenet-v1-cifar"}, 0.1, 1e-4), ({"architecture": "vgg16-cifar"}, 0.1, 5e-4)],
    ids=str,
)  # fmt: skip
def test_learning_rate_and_decay_suit_the_network(network: dict[str, Any], rate: float, decay: float) -> None:
    found = plan({"network": network})
    assert (found.train.learning_rate, found.train.weight_decay, found.train.epochs) == (rate, decay, 40)
    tuned = plan({"network": {**network, "activation": "qcfs"}, "finetune_from": "x.safetensors"})
    assert (tuned.train.learning_rate, tuned.train.epochs) == (pytest.approx(rate / 10), 10)
    assert plan({"network": network, "train": {"learning_rate": 0.7}}).train.learning_rate == 0.7


def test_what_is_written_is_read(tmp_path: Path) -> None:
    wanted = plan({
        "network": {"activation": "slip-relu", "levels": 8, "slope": 0.25, "batch_norm": False, "classes": 4},
        "train": {"auto_augment": "cifar10", "warm_up": 0.0, "flip": False, "weight_decay": 1e-4},
        "data": "a \"quoted\" ü folder", "finetune_from": "x.safetensors", "side": 32,
    })  # fmt: skip
    wanted.write(tmp_path / "net.toml")
    assert plan_of(merged(read_plan(tmp_path / "net.toml"))) == wanted
    written = tomllib.loads((tmp_path / "net.toml").read_text())
    assert set(written["train"]) == set(TrainSettings.__dataclass_fields__)


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_of_the_project(path: Path) -> None:
    found = plan_of(merged(read_plan(path), {"data": "here"}))
    assert found.train.warm_up == 0 and found.train.momentum == 0.9 and not found.train.nesterov
    assert found.train.epochs >= 100 and found.network.architecture in path.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epochs = 3", ("epochs", "the top", "average")),
        ("[train]\nepoch = 3", ("'epoch'", "[train]", "epochs")),
        ("[network]\ndepth = 3", ("'depth'", "[network]", "width")),
        ("train = 3", ("[train]",)),
        ("data = ", ("cannot be read",)),
    ],
)
def test_files_that_say_something_else(text: str, words: tuple[str, ...], tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "bad.toml").write_text(text)
    refused(FileError, ("bad.toml", *words), read_plan, tmp_path / "bad.toml")


def test_a_file_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    refused(FileError, "none.toml", read_plan, tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    refused(FileError, "binary.toml", read_plan, tmp_path / "binary.toml")


@pytest.mark.parametrize(
    ("part", "error", "words"),
    [
        ({"network": {"architecture": "resnt20"}}, ModelError, "resnet20"),
        ({"network": {"activation": "qcsf"}}, ModelError, "'qcfs'"),
        ({"network": {"levels": 4}}, ModelError, "levels=4"),
        ({"network": {"activation": "relu", "levels": 4}}, ModelError, "'levels'"),
        ({"network": {"activation": "qcfs", "slope": 0.5}}, ModelError, "'slope'"),
        ({"network": {"width": "wide"}}, ModelError, "width='wide'"),
        ({"network": {"width": -1.0}}, ModelError, "width=-1.0"),
        ({"network": {"batch_norm": 1}}, ModelError, "batch_norm=1"),
        ({"network": {"classes": 0}}, ModelError, "classes=0"),
        ({"train": {"epochs": "many"}}, InputError, "epochs='many'"),
        ({"data": 3}, InputError, "data=3"),
        ({"average": True}, InputError, "--start-from"),
        ({"start_from": "a", "finetune_from": "b", "network": {"activation": "qcfs"}}, InputError, "choose one"),
        ({"finetune_from": "b"}, InputError, "--activation"),
        ({"fit_steps": 2}, InputError, "--finetune-from"),
        ({"fit_steps": 0, "finetune_from": "b", "network": {"activation": "qcfs"}}, InputError, "1 or more"),
        ({"fit_steps": 1.5}, InputError, "give a int"),
        ({"finetune_from": "b", "network": {"activation": "relu"}}, InputError, "--activation"),
    ],
    ids=str,
)
def test_impossible_plans(part: dict[str, Any], error: type, words: str, refused: Refused) -> None:
    refused(error, words, plan, part)


def test_a_plan_needs_a_network_and_data(refused: Refused) -> None:
    refused(InputError, "no architecture", lambda: plan_of(merged({"data": "here"})))
    refused(InputError, ("no data", "--data"), lambda: plan_of(merged({"network": {"architecture": "resnet20"}})))
