"""Each convolution runs in the layout of its weights, and gives the same in either."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.graph.ir import Graph, Node, channels_last
from ftbc.graph.layout import lay_out


def _graph(channels: int, side: int, kernel: int = 3, groups: int = 1) -> Graph:
    torch.manual_seed(0)
    graph = Graph((channels, side, side))
    module = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=groups).double().requires_grad_(False)
    graph.output = graph.append(Node("conv", module, ("input",), (channels, side, side)))
    return graph


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ((512, 2), True),
        ((256, 4), True),
        ((256, 5), False),  # maps are not tiny
        ((128, 2), False),  # channels are not many
        ((256, 4, 1), False),  # a product of matrices, whose rows are pixels
        ((256, 4, 3, 256), False),  # depthwise
    ],
)
def test_many_channels_on_tiny_maps_lie_outermost(settings: tuple[int, ...], plain: bool) -> None:
    graph = _graph(*settings)
    weight: Tensor = lay_out(graph)["conv"].module.weight  # type: ignore[assignment]
    assert channels_last(weight) != plain
    x = torch.randn(3, *graph.input_shape, dtype=torch.float64)
    for value in (x, x.contiguous(memory_format=torch.channels_last)):
        y = graph(value)
        assert torch.allclose(y, graph["conv"].module(x), rtol=1e-12, atol=1e-12)
        assert not (plain and channels_last(y))


def test_a_network_of_both_layouts_runs_in_every_engine() -> None:
    torch.manual_seed(0)
    ann = nn.Sequential(
        nn.Conv2d(3, 256, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 16, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 16, 4),
    ).double().eval()  # fmt: skip
    x = torch.randn(5, 3, 8, 8, dtype=torch.float64)
    snn = ftbc.convert(ann, x, 3, "mean-square")
    lying = [channels_last(node.module.weight) for node in snn.graph.of_type(nn.Conv2d)]  # type: ignore[arg-type]
    assert lying == [True, False, True]
    other = copy.deepcopy(snn)
    other.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for engine in ("layerwise", "stepwise", *(("event",) if ftbc.simulate.event.available() else ())):  # type: ignore[attr-defined]
        assert torch.allclose(snn(x, engine=engine), other(x, engine=engine), rtol=1e-9, atol=1e-12)
