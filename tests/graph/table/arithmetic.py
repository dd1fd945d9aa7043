"""Sums of branches, and sums and products with constants."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.graph.table.entries import conv, entry

for _name, _run in {
    "operator": lambda m, x, y: x + y,
    "torch.add": lambda m, x, y: torch.add(x, y),
    "torch.add by name, alpha": lambda m, x, y: torch.add(input=x, other=y, alpha=0.5),
    "x.add": lambda m, x, y: x.add(y, alpha=2),
    "x.add_": lambda m, x, y: x.add_(y),
    "operator, minus": lambda m, x, y: x - y,
    "torch.sub, alpha": lambda m, x, y: torch.sub(x, y, alpha=3),
    "x.sub_": lambda m, x, y: x.sub_(y),
    "of channel means": lambda m, x, y: x + y.mean((2, 3), keepdim=True),
    "sum()": lambda m, x, y: sum([x, y, x]),
    "stack and sum": lambda m, x, y: torch.stack([x, y], 1).sum(1),
}.items():
    entry(f"sum of branches, {_name}", lambda m, x, f=_run: f(m, F.relu(m.a(x)), F.relu(m.b(x))), sites=2,
          a=conv(), b=conv())  # fmt: skip


def _augmented(m: Any, x: Any) -> Any:
    y = F.relu(m.a(x))
    y += m.b(x)
    return F.relu(y)


entry("sum of branches, +=", _augmented, sites=2, a=conv(), b=conv())

for _name, _run in {
    "x * 2": lambda m, x: x * 2,
    "2 * x": lambda m, x: 2 * x,
    "x / 255": lambda m, x: x / 255,
    "x - 1": lambda m, x: x - 1,
    "1 - x": lambda m, x: 1 - x,
    "-x": lambda m, x: -x,
    "(x - mean) / std": lambda m, x: (x - m.c) / (m.c.abs() + 1),
    "parameter factor": lambda m, x: m.c * x,
    "x.mul_.div_": lambda m, x: x.mul_(3).div_(2),
    "torch.mul": lambda m, x: torch.mul(x, other=m.c),
    "torch.div": lambda m, x: torch.div(x, 3.0),
    "torch.rsub": lambda m, x: torch.rsub(x, 2.0),
    "x.neg": lambda m, x: x.neg(),
}.items():
    entry(f"constants, {_name}", lambda m, x, f=_run: F.relu(f(m, m.a(x))), a=conv(), c=torch.randn(6, 1, 1))
    entry(f"constants in front, {_name}", lambda m, x, f=_run: F.relu(m.a(f(m, x.clone()))), a=conv(padding=0),
          c=torch.randn(1, 4, 1, 1))  # fmt: skip

entry("a map over positions", lambda m, x: F.relu(m.a(x) + m.c), affine=1, a=conv(), c=torch.randn(6, 8, 8))
entry("a constant that widens", lambda m, x: m.a(F.relu(m.b(x) * m.c)), shape=(5,), affine=1, a=nn.Linear(4, 3),
      b=nn.Linear(5, 1), c=torch.randn(4))  # fmt: skip
entry("a constant that widens, then a layer", lambda m, x: F.relu(m.a(m.b(x) * m.c + 1)), shape=(5,), affine=1,
      a=nn.Linear(4, 3), b=nn.Linear(5, 1), c=torch.randn(4))  # fmt: skip
entry("two constants, the second widens", lambda m, x: m.a(F.relu(m.b(x)) * 2 - m.c), shape=(5,), affine=1,
      a=nn.Linear(4, 3), b=nn.Linear(5, 1), c=torch.randn(4))  # fmt: skip
