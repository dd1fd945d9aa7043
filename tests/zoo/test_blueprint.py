"""Blueprints: the network that a weights file says it belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ftbc import zoo
from ftbc.activation import QCFS, SlipReLU
from ftbc.errors import FileError, ModelError
from ftbc.zoo import Blueprint, blueprint_of, load_weights, save_weights
from tests.conftest import Refused

SMALL = Blueprint("resnet20", classes=4, width=0.25, batch_norm=False, activation="slip-relu", levels=8, slope=0.1)


def test_builds_what_it_says() -> None:
    model = SMALL.build()
    assert isinstance(model.act1, SlipReLU) and (model.act1.levels, model.act1.slope) == (8, 0.1)
    assert model.linear.out_features == 4 and model.conv1.out_channels == 4
    assert not any(isinstance(module, nn.BatchNorm2d) for module in model.modules())
    assert isinstance(Blueprint("mobilenet-v1").build().conv1_act, nn.ReLU6)
    assert isinstance(Blueprint("mobilenet-v1", width=0.25, activation="relu").build().conv1_act, nn.ReLU)


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    path, model = tmp_path / "net.safetensors", SMALL.build()
    save_weights(model, path, SMALL)
    assert blueprint_of(path) == SMALL
    again = load_weights(SMALL.build(), path)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in again.state_dict().items())


def test_half_the_bytes_keep_vectors_whole(tmp_path: Path) -> None:
    model = SMALL.build()
    save_weights(model, tmp_path / "whole.safetensors", SMALL)
    save_weights(model, tmp_path / "half.safetensors", SMALL, float16=True)
    assert (tmp_path / "half.safetensors").stat().st_size < 0.7 * (tmp_path / "whole.safetensors").stat().st_size
    again = load_weights(SMALL.build(), tmp_path / "half.safetensors").state_dict()
    for name, tensor in model.state_dict().items():
        assert again[name].dtype == tensor.dtype
        assert torch.equal(again[name], tensor if tensor.ndim < 2 else tensor.half().float())


def test_files_that_do_not_say(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "plain.safetensors")
    torch.save({}, tmp_path / "other.pt")
    assert blueprint_of(tmp_path / "plain.safetensors") is None and blueprint_of(tmp_path / "other.pt") is None
    assert blueprint_of(tmp_path / "absent.safetensors") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"architecture": 3}', '{"depth": 3, "architecture": "resnet20"}', "{}"])
def test_descriptions_that_make_no_sense(text: str, tmp_path: Path, refused: Refused) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "odd.safetensors", metadata={"ftbc-network": text})
    refused(FileError, "odd.safetensors", blueprint_of, tmp_path / "odd.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(b"12345")
    refused(FileError, "cut.safetensors", blueprint_of, tmp_path / "cut.safetensors")


def test_settings_without_an_activation(refused: Refused) -> None:
    refused(ModelError, ("levels=4", "qcfs"), Blueprint("resnet20", levels=4).build)


def test_prototypes_are_not_shared() -> None:
    model = zoo.build("resnet20", width=0.25, activation=QCFS(4))
    assert model.act1.theta is not model.layer1[0].act1.theta
