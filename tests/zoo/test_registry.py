"""Networks by name."""

from __future__ import annotations

import pytest
import torch

from ftbc import zoo
from ftbc.errors import ModelError

from ..conftest import Refused


@pytest.mark.parametrize("name", zoo.architectures())
def test_every_architecture_gives_scores(name: str) -> None:
    side = 64 if "mobilenet" in name else 32
    with torch.no_grad():
        assert zoo.build(name, classes=7).eval()(torch.rand(1, 3, side, side)).shape == (1, 7)


def test_unknown_names_suggest_the_nearest(refused: Refused) -> None:
    refused(ModelError, ("'rsnet20'", "did you mean 'resnet20"), zoo.build, "rsnet20")
    refused(ModelError, ("'resnet-20'", "did you mean 'resnet20"), zoo.load, "resnet-20")
    refused(ModelError, "did you mean", zoo.build, "")


def test_unknown_settings(refused: Refused) -> None:
    refused(ModelError, ("resnet20", "colours"), zoo.build, "resnet20", colours=3)


@pytest.mark.parametrize("name", list(zoo.entries()))
def test_shipped_weights_load(name: str) -> None:
    model = zoo.load(name)
    assert not model.training and all(bool(torch.isfinite(p).all()) for p in model.parameters())
