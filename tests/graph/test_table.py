"""Every construction of the support table: the clean graph is the network, whichever way it was traced."""

from __future__ import annotations

import copy

import pytest
import torch

from ftbc.graph.ops import Activation, Affine
from tests.graph.support import answer, clean, images, settled
from tests.graph.table import TABLE

CASES = [(name, route) for name, entry in TABLE.items() for route in entry.routes]


@pytest.mark.parametrize(("name", "route"), CASES)
def test_clean_graph_is_the_network(name: str, route: str) -> None:
    entry = TABLE[name]
    model = settled(entry.make())
    x = images(entry.shape)
    cleaned = clean(model, x, route)
    for count in (5, 1):
        with torch.no_grad():
            wanted = copy.deepcopy(model)(x[:count].clone())
        found = answer(cleaned, x[:count])
        assert wanted.std() > 0, "a constant output shows nothing"
        assert found.shape == wanted.shape
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)
    assert len(cleaned.graph.of_type(Activation)) == entry.sites
    assert len(cleaned.graph.of_type(Affine)) == entry.affine
    assert (cleaned.head is not None) == name.startswith("head")


@pytest.mark.parametrize("name", TABLE)
def test_recorded_shapes_are_those_that_run(name: str) -> None:
    entry = TABLE[name]
    graph = clean(settled(entry.make()), images(entry.shape)).graph
    ran = {}
    graph(images(entry.shape, 3), lambda node, value: ran.__setitem__(node.name, tuple(value.shape)))
    assert ran == {node.name: (3, *node.shape) for node in graph}
