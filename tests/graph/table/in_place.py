"""Operations that overwrite their operand, where others read it later."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.graph.table.entries import conv, entry


def _discarded(m: Any, x: Any) -> Any:
    y = m.a(x)
    y.relu_()
    return y


def _shortcut(m: Any, x: Any) -> Any:
    y = m.a(x)
    shortcut = y
    y = m.act(y)
    return m.b(y) + shortcut


def _augmented(m: Any, x: Any) -> Any:
    y = F.relu(m.a(x))
    shortcut = y
    y += 1.0
    return m.b(y) + shortcut


def _second_name(m: Any, x: Any) -> Any:
    y = m.a(x)
    kept = m.drop(y)  # in evaluation the same tensor
    return m.b(m.act(y)) + kept


def _chunk(m: Any, x: Any) -> Any:
    left, right = m.a(x).chunk(2, 1)
    left.relu_()
    return torch.cat([right, left], 1)


def _chunk_by_index(m: Any, x: Any) -> Any:
    parts = m.a(x).chunk(2, 1)
    parts[0].relu_()
    return torch.cat([parts[1], parts[0]], 1)


def _number(m: Any, x: Any) -> Any:
    channels = x.size(1)
    wide = channels
    wide += 2  # a number, not a tensor: `channels` keeps its value
    return F.relu(m.a(x)).reshape(x.size(0), wide, -1)[:, :channels]


entry("in place, discarded", _discarded, a=conv())
entry("in place before a shortcut", _shortcut, a=conv(), b=conv(6), act=nn.ReLU(True))
entry("+= before a shortcut", _augmented, affine=1, a=conv(), b=conv(6))
entry("in place behind a second name", _second_name, a=conv(), b=conv(6), act=nn.ReLU(True), drop=nn.Dropout())
entry("in place on one chunk", _chunk, a=conv())
entry("in place on one chunk, by index", _chunk_by_index, a=conv())
entry("+= on a number", _number, a=conv())
