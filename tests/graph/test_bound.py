"""Bounded activations as two without a bound: the same network."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ftbc.graph.bound import without_bounds
from ftbc.graph.canonical import canonical
from ftbc.graph.ir import Graph
from ftbc.graph.ops import Activation
from ftbc.graph.trace import trace


class _Clamps(nn.Module):
    """Two bounds, a shortcut that reads a bounded value, and an end in one; a ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.relu6(self.a(30 * x))
        y = self.b(x).relu()
        return (self.c(y) + x).clamp(0, 2.5)


def _graph(model: nn.Module, x: Tensor) -> Graph:
    return canonical(trace(model.eval(), x)).require().graph


@torch.no_grad()
def test_same_network() -> None:
    torch.manual_seed(0)
    x = torch.rand(8, 3, 5, 5)
    graph = _graph(_Clamps(), x)
    found = without_bounds(graph)
    assert [site.module.upper for site in found.of_type(Activation)] == [None] * 5
    assert [site.module.upper for site in graph.of_type(Activation)] == [6.0, None, 2.5]  # which is as it was
    wanted = graph(x)
    assert float(wanted.max()) == 2.5 and float((wanted == 2.5).float().mean()) > 0.1
    torch.testing.assert_close(found(x), wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("model", [nn.Sequential(nn.Linear(4, 3), nn.ReLU())])
def test_a_network_without_bounds_is_left_as_it_is(model: nn.Module) -> None:
    graph = _graph(model, torch.rand(2, 4))
    assert without_bounds(graph) is graph
