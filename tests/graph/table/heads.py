"""Functions that are applied to the averaged output."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.graph.table.entries import conv, entry

for _name, _run in {
    "F.softmax": lambda x: F.softmax(x, dim=1),
    "F.log_softmax": lambda x: F.log_softmax(x, -1),
    "torch.softmax": lambda x: torch.softmax(x, 1),
    "x.log_softmax": lambda x: x.log_softmax(dim=1),
    "torch.sigmoid": lambda x: torch.sigmoid(x),
    "x.sigmoid": lambda x: x.sigmoid(),
    "torch.tanh": lambda x: torch.tanh(x),
}.items():
    entry(f"head, {_name}", lambda m, x, f=_run: f(m.a(F.relu(x))), shape=(5,), a=nn.Linear(5, 4))
for _head in (nn.Softmax(1), nn.LogSoftmax(-1), nn.Sigmoid(), nn.Tanh()):
    entry(f"head, {_head}", lambda m, x: m.head(m.a(F.relu(x))), shape=(5,), a=nn.Linear(5, 4), head=_head)
entry("head, Softmax2d", lambda m, x: m.head(m.a(F.relu(x))), a=conv(), head=nn.Softmax2d())
