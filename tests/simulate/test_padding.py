"""Convolutions that pad by themselves give what padding first gives, in every engine."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ftbc
from ftbc.graph.canonical import canonical
from ftbc.graph.ops import Pad
from ftbc.graph.trace import trace
from ftbc.simulate.padding import without_pads


class Padded(nn.Module):
    """A convolution behind a pad; ``more``: somebody else reads the padded value, too."""

    def __init__(self, conv: nn.Conv2d, pad: tuple[int, ...], value: float = 0.0, more: bool = False) -> None:
        super().__init__()
        self.conv, self.pad, self.value, self.more = conv, pad, value, more

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(x, self.pad, value=self.value)
        y = self.conv(x)
        return y.mean((2, 3)) + x.mean((2, 3)) if self.more else y


def graph_of(model: nn.Module, x: Tensor):
    return canonical(trace(model.eval(), x)).require().graph


def pads(graph) -> int:
    return len(graph.of_type(Pad))


@settings(max_examples=150, deadline=None)
@given(
    kernel=st.integers(1, 4), stride=st.integers(1, 3), own=st.integers(0, 2), dilation=st.integers(1, 2),
    sides=st.tuples(*[st.integers(-1, 2)] * 4), rows=st.integers(9, 12), depthwise=st.booleans(),
)  # fmt: skip
def test_any_pad_and_convolution(kernel, stride, own, dilation, sides, rows, depthwise) -> None:
    conv = nn.Conv2d(3, 3, kernel, stride, own, dilation, groups=3 if depthwise else 1).double()
    x = torch.rand(2, 3, rows, 9).double()
    graph = graph_of(Padded(conv, sides), x)
    merged = without_pads(graph)
    assert torch.allclose(merged(x), graph(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("pad", "size", "kernel"),
    [((0, 1, 0, 1), 8, (4, 4)), ((1, 1, 1, 1), 8, (3, 3)), ((1, 1), 8, (3, 3)), ((1, 0, 0, 1), 8, (4, 3))],
)
def test_a_depthwise_convolution_pads_by_itself(pad, size: int, kernel) -> None:
    conv = nn.Conv2d(4, 4, 3, stride=2, groups=4)
    x = torch.rand(2, 4, size, size)
    graph = graph_of(Padded(conv, pad), x)
    merged = without_pads(graph)
    assert pads(graph) == 1 and pads(merged) == 0
    assert merged["conv"].module.kernel_size == kernel
    assert torch.allclose(merged(x), graph(x), rtol=0, atol=1e-6)
    assert graph["conv"].module.kernel_size == (3, 3) and graph["conv"].inputs == ("pad",), "the graph is as it was"


def test_what_would_be_more_work_or_wrong_stays() -> None:
    x = torch.rand(2, 4, 8, 8)
    whole, depthwise = nn.Conv2d(4, 4, 3, stride=2), nn.Conv2d(4, 4, 3, stride=2, groups=4)
    assert pads(without_pads(graph_of(Padded(whole, (0, 1, 0, 1)), x))) == 1, "taps of zero in all channels"
    assert pads(without_pads(graph_of(Padded(whole, (1, 1, 1, 1)), x))) == 0, "no taps of zero"
    assert pads(without_pads(graph_of(Padded(depthwise, (0, 1, 0, 1), value=1.0), x))) == 1, "not zeros"
    assert pads(without_pads(graph_of(Padded(depthwise, (0, 1, 0, 1), more=True), x))) == 1, "read elsewhere, too"


@pytest.mark.parametrize("time_first", [False, True])
def test_dense_engines_give_the_same_spikes(time_first: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(4, 4, 3, stride=2, groups=4),
        nn.ReLU(), nn.ZeroPad2d(1), nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 3),
    ).double()  # fmt: skip
    x = torch.rand(16, 3, 8, 8).double()
    snn = ftbc.convert(model, x, steps=4)
    images = torch.rand(4, 16, 3, 8, 8).double() if time_first else x
    seen = snn(images, time_first, observe=lambda *_: None)  # an observer sees the pads
    for engine in ("layerwise", "stepwise"):
        assert torch.allclose(snn(images, time_first, engine=engine), seen, rtol=0, atol=1e-12)
    assert pads(snn.graph) == 2 and pads(without_pads(snn.graph)) == 0
