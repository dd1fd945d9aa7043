"""Folding: exact, complete where it can be exact, and left alone where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor, nn

from ftbc.graph.fold import fold
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Affine
from tests.graph.support import Net, answer, clean, images, settled


@settings(max_examples=60, deadline=None)
@given(
    transposed=some.booleans(),
    rank=some.integers(1, 3),
    groups=some.sampled_from([1, 2, 4]),
    padding=some.integers(0, 2),
    stride=some.integers(1, 2),
    dilation=some.integers(1, 2),
    bias=some.booleans(),
    mode=some.sampled_from(["zeros", "circular", "replicate"]),
    seed=some.integers(0, 1000),
)
def test_batch_norm_on_both_sides(transposed: bool, rank: int, groups: int, padding: int, stride: int, dilation: int,
                                  bias: bool, mode: str, seed: int) -> None:  # fmt: skip
    kind = getattr(nn, f"{'ConvTranspose' if transposed else 'Conv'}{rank}d")
    if transposed:
        mode = "zeros"
    layer = kind(
        4, 8, 2, stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias, padding_mode=mode
    )
    norm = getattr(nn, f"BatchNorm{rank}d")
    model = settled(nn.Sequential(nn.ReLU(), norm(4), layer, norm(8), nn.ReLU()), seed)
    x = images((4, *[7] * rank), 2)
    graph = clean(model, x).graph
    torch.testing.assert_close(graph(x), model(x).detach(), rtol=0, atol=1e-9)
    # All that may remain is the map of shifts at the borders, behind the layer and with factor 1.
    borders = mode == "zeros" and (padding > 0 or transposed)
    remaining = graph.of_type(Affine)
    assert len(remaining) <= borders
    assert all(bool((node.module.scale == 1).all()) and node.inputs == ("2",) for node in remaining)


def test_float32_is_rounded_once() -> None:
    """The folded weights are the float32 nearest to the exact ones."""
    model = settled(nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU())).float()
    exact = clean(model.double(), images((4, 8, 8))).graph["0"].module
    rounded = clean(model.float(), images((4, 8, 8)).float()).graph["0"].module
    assert rounded.weight.dtype == torch.float32
    torch.testing.assert_close(rounded.weight.double(), exact.weight, rtol=3e-7, atol=0)


LEFT: dict[str, Callable[..., Tensor]] = {
    "the layer's own output is read": lambda m, x: F.relu(m.bn(y := m.a(x))) + y,
    "an activation reads the map as well": lambda m, x: m.b(y := m.bn(F.relu(m.a(x)))) + F.relu(y),
    "the map feeds a sum": lambda m, x: m.a(x) + m.bn(F.relu(m.a(x))),
    "an activation between": lambda m, x: m.bn(F.relu(m.a(x))),
    "a pool between": lambda m, x: F.relu(m.bn(F.max_pool2d(m.a(x), 2))),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_cannot_be_folded_stays(name: str) -> None:
    layers = {"a": nn.Conv2d(4, 4, 3, padding=1), "b": nn.Conv2d(4, 4, 1), "bn": nn.BatchNorm2d(4)}
    model, x = settled(Net(LEFT[name], **layers)), images((4, 8, 8))
    cleaned = clean(model, x)
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=0, atol=1e-9)
    assert len(cleaned.graph.of_type(Affine)) == 1


def test_layer_called_twice_is_folded_apart() -> None:
    layers = {"a": nn.Conv2d(4, 4, 3, padding=1), "bn1": nn.BatchNorm2d(4), "bn2": nn.BatchNorm2d(4)}
    model = settled(Net(lambda m, x: F.relu(m.bn2(m.a(F.relu(m.bn1(m.a(x)))))), **layers))
    x = images((4, 8, 8))
    cleaned = clean(model, x)
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=0, atol=1e-9)
    assert not cleaned.graph.of_type(Affine)


def test_output_of_the_graph_is_kept() -> None:
    """A layer or a map whose value is returned may be folded only if the returned value stays the same."""
    one, shift = torch.full((1, 1), 2.0), torch.full((1, 1), 0.5)
    graph = Graph((3,))
    graph.append(Node("scale", Affine(one, shift), (INPUT,), (3,)))
    graph.append(Node("layer", nn.Linear(3, 2), ("scale",), (2,)))
    x = torch.rand(4, 3)
    for output in ("scale", "layer"):
        graph.output = output
        changed = graph.copy()
        fold(changed)
        torch.testing.assert_close(changed(x), graph(x))
