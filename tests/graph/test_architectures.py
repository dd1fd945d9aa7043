"""Well-known architectures in miniature, from the network to its spikes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ftbc
from ftbc.graph.ops import Activation, Affine
from tests.graph.architectures import ARCHITECTURES
from tests.graph.support import answer, clean, images, settled

SHAPE = (3, 8, 8)


def _model(name: str) -> nn.Module:
    model = settled(ARCHITECTURES[name][0]())
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):  # as a trained one would be: positive, and not much beyond 1
            module.weight.data.abs_().add_(0.5)
    return model


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_clean_graph_is_the_network(name: str) -> None:
    model, x = _model(name), images(SHAPE)
    cleaned = clean(model, x)
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=0, atol=1e-9)
    assert len(cleaned.graph.of_type(Activation)) == ARCHITECTURES[name][1]
    beside_weights = {"DenseNet": 7, "PyramidNet": 1}  # in front of a ReLU; at a padded border
    assert len(cleaned.graph.of_type(Affine)) == beside_weights.get(name, 0)
    assert ftbc.check(model, x).ok


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_both_engines_give_the_same_spikes(name: str) -> None:
    model, x = _model(name), images(SHAPE)
    snn = ftbc.convert(model, x, steps=6, recipe="mean-square")
    # Products of few rows round otherwise than those of many on some processors; one spike more would be far from that.
    torch.testing.assert_close(snn(x), snn(x, engine="stepwise"), rtol=0, atol=1e-9)
    over_time = images((5, *SHAPE), 6, seed=2)
    one_by_one = snn(over_time, time_first=True, engine="stepwise")
    torch.testing.assert_close(snn(over_time, time_first=True), one_by_one, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_many_steps_come_near_the_network(name: str) -> None:
    model, x = _model(name), images(SHAPE)
    snn = ftbc.convert(model, x, steps=512, recipe="maximum")
    wanted = model(x).detach()
    assert float((snn(x)[-1] - wanted).pow(2).mean() / wanted.var()) < 0.01
