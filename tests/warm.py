"""Imported by the process that test teams are forked from: what a first conversion loads is there for all of them."""

from __future__ import annotations

import torch
from torch import nn

import ftbc

torch.set_num_threads(1)
_x = torch.rand(4, 3, dtype=torch.float64)
_model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
ftbc.evaluate(ftbc.convert(_model, _x, 2), (_x, torch.zeros(4, dtype=torch.int64)))
