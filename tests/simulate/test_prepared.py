"""Prepared convolutions give what the plain ones give, and write over nothing that somebody still reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ftbc
from ftbc.graph.ir import Graph
from ftbc.graph.ops import Sum
from ftbc.graph.precision import synapses_in_bfloat16
from ftbc.simulate import prepared as module
from ftbc.simulate.layerwise import layerwise
from ftbc.simulate.prepared import Prepared, prepared
from ftbc.simulate.schedule import varying
from ftbc.simulate.stepwise import stepwise

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")


@settings(max_examples=60, deadline=None)
@given(
    kernel=st.integers(1, 4), stride=st.integers(1, 2), padding=st.integers(0, 2), dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2, 4]), width=st.integers(1, 5), items=st.integers(1, 6), bias=st.booleans(),
)  # fmt: skip
@torch.no_grad()
def test_any_convolution(kernel, stride, padding, dilation, groups, width, items, bias) -> None:
    conv = nn.Conv2d(4 * width, 8, kernel, stride, padding, dilation, groups=groups, bias=bias)
    conv = conv.to(memory_format=torch.channels_last)
    x = torch.rand(items, 4 * width, 9, 8)
    wanted = conv(x)
    own = Prepared(conv, [4, *x.shape[1:]])
    torch.testing.assert_close(own(x), wanted, rtol=1e-5, atol=1e-6)
    other = torch.rand_like(wanted)
    both = wanted + other  # before it is written over
    torch.testing.assert_close(own(x, other), both, rtol=1e-5, atol=2e-6)


class Block(nn.Module):
    """A residual block; more: something else that is made of the shortcut, and read after the sum."""

    def __init__(self, shortcut: nn.Module, more: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.stem, self.conv1, self.conv2 = nn.Conv2d(3, 16, 3, padding=1), _conv(), _conv()
        self.shortcut, self.more, self.head = shortcut, more, nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).relu()
        more = None if self.more is None else self.more(x)
        y = (self.conv2(self.conv1(x).relu()) + self.shortcut(x)).relu().mean((2, 3))
        return self.head(y if more is None else y + more.mean((2, 3)))


def _conv() -> nn.Conv2d:
    return nn.Conv2d(16, 16, 3, padding=1)


BLOCKS = {
    "identity": (lambda: Block(nn.Identity()), True),
    "convolution": (lambda: Block(nn.Conv2d(16, 16, 1)), True),
    "read later": (lambda: Block(nn.Identity(), lambda x: x), False),
    "a view is read later": (lambda: Block(nn.Identity(), lambda x: x[:, :, 2:]), False),
}


def graph_of(name: str) -> tuple[Graph, Tensor]:
    x = torch.rand(12, 3, 8, 8)
    return ftbc.convert(BLOCKS[name][0]().eval(), x, steps=6, recipe="mean-square").graph, x


@pytest.mark.parametrize("name", BLOCKS)
@torch.no_grad()
def test_same_outputs_as_one_step_after_another(name: str) -> None:
    graph, x = graph_of(name)
    wanted = torch.stack(list(stepwise(graph, x, 6)))
    for items in (72, 6, 2):  # everything at once; all steps of one image at a time; chunks of two steps
        found = layerwise(graph, x, 6, room=items * 4 * 16 * 8 * 8)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "fits"), [(name, fits) for name, (_, fits) in BLOCKS.items()])
@torch.no_grad()
def test_a_sum_is_written_by_its_convolution_where_nobody_reads_the_rest(name: str, fits: bool) -> None:
    graph, _ = graph_of(name)
    before = list(graph.nodes)
    own = prepared(graph, varying(graph, False), items=12, calls=100)
    sums = len(graph.of_type(Sum)) - len(own.of_type(Sum))
    assert sums == (1 if fits else 0)
    assert len(own.of_type(Prepared)) == (3 if name == "convolution" else 2)
    assert list(graph.nodes) == before and not graph.of_type(Prepared)  # the network itself is as it was


@torch.no_grad()
def test_weights_that_have_changed_are_seen() -> None:
    graph, x = graph_of("identity")
    room = 4 * 16 * 8 * 8
    first = layerwise(graph, x, 6, room=room)
    graph["conv1"].module.weight.data.mul_(0.5)
    found, wanted = layerwise(graph, x, 6, room=room), torch.stack(list(stepwise(graph, x, 6)))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    assert not torch.equal(found, first)


@torch.no_grad()
def test_left_alone_where_it_does_not_pay_or_fit() -> None:
    graph, _ = graph_of("identity")
    changing = varying(graph, False)
    assert prepared(graph, changing, module._ITEMS - 1, 1) is graph
    few = prepared(graph, changing, module._ITEMS, 1)  # worth it for the sum, not for the other convolution
    assert [node.name for node in few.of_type(nn.Conv2d)] == ["stem", "conv1"] and len(few.of_type(Prepared)) == 1
    with torch.enable_grad():
        assert prepared(graph, changing, 12, 100) is graph
    with synapses_in_bfloat16():
        assert prepared(graph, changing, 12, 100) is graph
    for change in (
        lambda conv: setattr(conv, "padding_mode", "reflect"),
        lambda conv: setattr(conv, "padding", "same"),
        lambda conv: conv.double(),
        lambda conv: setattr(conv.weight, "data", conv.weight.data.contiguous()),
    ):
        graph, _ = graph_of("identity")
        change(graph["conv1"].module)
        assert [node.name for node in prepared(graph, changing, 12, 100).of_type(nn.Conv2d)] == ["stem", "conv1"]
