"""Forwards that torch.fx cannot follow."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.graph.table.entries import conv, entry


def _by_shape(m: Any, x: Any) -> Any:
    y = F.relu(m.a(x))
    if y.shape[2] > 4:
        y = F.max_pool2d(y, 2)
    for _ in range(y.shape[3] // 2):
        y = F.relu(m.b(y) + y)
    assert len(y.shape) == 4
    return y.mean((2, 3))


entry("control flow on shapes", _by_shape, sites=3, routes=("export",), a=conv(), b=conv(6))
entry("zeros of the batch size", lambda m, x: torch.cat([F.relu(m.a(x)), torch.zeros(x.size(0), 2, 8, 8).to(x)], 1),
      routes=("export",), a=conv())  # fmt: skip
entry(
    "head, made in forward",
    lambda m, x: nn.Softmax(1)(m.a(F.relu(x))),
    shape=(5,),
    routes=("export",),
    a=nn.Linear(5, 4),
)
