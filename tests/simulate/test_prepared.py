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


class Woven(nn.Module):
    """Convolutions, sums and ReLUs in any order: each entry makes a value of earlier ones."""

    def __init__(self, plan: list[tuple[bool, int, int]]) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 16, 3, padding=1), nn.Linear(16, 4)
        self.plan, self.convs = plan, nn.ModuleList(_conv() for _ in plan)

    def forward(self, x: Tensor) -> Tensor:
        spikes, values = [self.stem(x).relu()], []
        for conv, (added, first, second) in zip(self.convs, self.plan, strict=True):
            value = conv(spikes[first % len(spikes)])
            others = [*spikes, *values]
            values.append(value + others[second % len(others)] if added else value)
            spikes.append(values[-1].relu())
        return self.head(spikes[-1].mean((2, 3)))


@torch.no_grad()
def _same(model: nn.Module, steps: int = 6) -> None:
    x = torch.rand(12, 3, 8, 8)
    graph = ftbc.convert(model.eval(), x, steps=steps, recipe="mean-square").graph
    torch.testing.assert_close(
        layerwise(graph, x, steps), torch.stack(list(stepwise(graph, x, steps))), rtol=0, atol=1e-5
    )


def test_a_convolution_does_not_write_over_what_it_reads() -> None:
    """y + conv(y), where y is needed nowhere else."""
    torch.manual_seed(0)
    _same(Woven([(True, 0, 0)]))

    class Alone(Block):
        def forward(self, x: Tensor) -> Tensor:
            x = self.stem(x).relu()
            return self.head((x + self.conv1(x)).relu().mean((2, 3)))

    _same(Alone(nn.Identity()))


def test_what_a_convolution_reads_is_not_written_over_before_it_runs() -> None:
    """conv1 runs at the place of its sum, behind the sum of conv2, which may not write over what conv1 reads."""

    class Late(Block):
        def forward(self, x: Tensor) -> Tensor:
            y = self.stem(x).relu()
            u = self.shortcut(y).relu()
            late = self.conv1(y)
            v = (y + self.conv2(u)).relu()
            return self.head((v + late).relu().mean((2, 3)))

    torch.manual_seed(0)
    _same(Late(_conv()))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=6))
def test_any_order_of_convolutions_and_sums(plan: list[tuple[bool, int, int]]) -> None:
    torch.manual_seed(len(plan))
    _same(Woven(plan), steps=8)


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
