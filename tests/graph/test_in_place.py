"""Writing into a part of a tensor that is read later is a problem; everything else in place converts (see table)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.graph.canonical import canonical
from ftbc.graph.memory import Place
from ftbc.graph.trace import trace
from tests.graph.support import Net, images, settled


def _slice_in_place(m: Any, x: Tensor) -> Tensor:
    y = m.a(x)
    y[:, :2].relu_()
    return y


def _assigned(m: Any, x: Tensor) -> Tensor:
    y = F.relu(m.a(x))
    y[:, 0] = 0
    return y


def _assigned_from_input(m: Any, x: Tensor) -> Tensor:
    y = F.relu(m.a(x))
    y[:, :4] = x
    return y


def _view_made_before(m: Any, x: Tensor) -> Tensor:
    y = m.a(x)
    flat = y.flatten(1)
    m.act(y)
    return flat


def _chunk_of_what_is_read(m: Any, x: Tensor) -> Tensor:
    y = m.a(x)
    left, _ = y.chunk(2, 1)
    left.relu_()
    return y


@pytest.mark.parametrize(
    "run", [_slice_in_place, _assigned, _assigned_from_input, _view_made_before, _chunk_of_what_is_read]
)
def test_overwritten_part_is_a_problem(run: Any) -> None:
    model = settled(Net(run, a=nn.Conv2d(4, 6, 3, padding=1), act=nn.ReLU(inplace=True)))
    problems = canonical(trace(model, images((4, 8, 8)))).problems
    assert any("overwrites a part" in problem.remedy for problem in problems)


def test_places() -> None:
    x = torch.zeros(4, 6)
    whole, left, right = Place.of(x), Place.of(x[:, :3]), Place.of(x[:, 3:])
    assert whole == Place.of(x.view(4, 6)) != Place.of(x.view(24))
    assert whole.overlaps(left) and left.overlaps(whole) and whole.overlaps(Place.of(x.view(24)))
    assert not left.overlaps(right) and Place.of(x[:, :4]).overlaps(right)
    other = torch.zeros(4, 6)
    assert not whole.overlaps(Place.of(other))
