"""Policies for max-pools, on the clean graph."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ftbc
from ftbc.errors import UnsupportedError
from ftbc.graph.ops import Activation, MaxPool
from ftbc.graph.pool import POLICIES
from tests.graph.support import Net, clean, images, settled


def conv(into: int = 4, out: int = 4) -> nn.Module:
    return nn.Conv2d(into, out, 3, padding=1)


NETWORKS = {
    "behind the activation": lambda: Net(lambda m, x: m.b(F.max_pool2d(F.relu(m.a(x)), 2)), a=conv(), b=conv()),
    "in front of the activation": lambda: Net(lambda m, x: m.b(F.relu(F.max_pool2d(m.a(x), 2))), a=conv(), b=conv()),
    "two pools": lambda: Net(lambda m, x: F.max_pool2d(F.max_pool2d(F.relu(m.a(x)), 2), 2, 1), a=conv()),
    "unpooled activation is read too": lambda: Net(
        lambda m, x: F.max_pool2d(y := F.relu(m.a(x)), 3, 1, 1) + m.b(y), a=conv(), b=conv()
    ),
    "bounded activation": lambda: Net(lambda m, x: F.max_pool2d(F.relu6(3 * m.a(x)), 3, 2, 1), a=conv()),
    "global": lambda: Net(lambda m, x: F.adaptive_max_pool2d(torch.relu(m.a(x)), 1), a=conv()),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("policy", ["spiking", "before"])
def test_the_network_stays_the_same(name: str, policy: str) -> None:
    model, x = settled(NETWORKS[name]()), images((4, 8, 8))
    graph = clean(model, x).graph
    POLICIES[policy]()(graph)
    torch.testing.assert_close(graph(x), model(x).detach(), rtol=0, atol=1e-12)
    if policy == "before":
        for pool in graph.of_type(*MaxPool):
            assert not isinstance(graph.nodes[pool.inputs[0]].module, Activation)


@pytest.mark.parametrize("name", NETWORKS)
def test_average_has_no_maximum_left_and_the_same_shapes(name: str) -> None:
    x = images((4, 8, 8))
    graph = clean(settled(NETWORKS[name]()), x).graph
    shapes = {node.name: node.shape for node in graph}
    POLICIES["average"]()(graph)
    assert not graph.of_type(*MaxPool)
    ran = {}
    graph(x, lambda node, value: ran.__setitem__(node.name, tuple(value.shape[1:])))
    assert ran == shapes


def test_average_of_padded_windows_counts_only_the_image() -> None:
    model = settled(nn.Sequential(nn.ReLU(), nn.MaxPool2d(3, 2, 1)))
    graph = clean(model, images((4, 8, 8))).graph
    POLICIES["average"]()(graph)
    ones = torch.ones(1, 4, 8, 8, dtype=torch.float64)
    assert torch.equal(graph(ones), torch.ones(1, 4, 4, 4, dtype=torch.float64))


@pytest.mark.parametrize("policy", ["spiking", "before", "average"])
def test_convert_accepts_every_policy(policy: str) -> None:
    x = images((4, 8, 8))
    recipe = ftbc.recipe("mean-square", pool=policy)
    snn = ftbc.convert(settled(NETWORKS["unpooled activation is read too"]()), x, steps=3, recipe=recipe)
    assert torch.equal(snn(x), snn(x, engine="stepwise"))


def test_pool_that_cannot_move_says_so() -> None:
    x = images((4, 8, 8))
    model = settled(Net(lambda m, x: F.max_pool2d(F.relu(m.a(x)) + x, 2), a=conv()))
    recipe = ftbc.recipe("mean-square", pool="before")
    with pytest.raises(UnsupportedError, match=r"'max_pool2d' \(MaxPool2d, test_pool.py:\d+\).*pool=\"spiking\""):
        ftbc.convert(model, x, steps=2, recipe=recipe)
    dilated = settled(Net(lambda m, x: F.max_pool2d(F.relu(m.a(x)), 2, dilation=2), a=conv()))
    with pytest.raises(UnsupportedError, match="dilated"):
        ftbc.convert(dilated, x, steps=2, recipe=ftbc.recipe("mean-square", pool="average"))
