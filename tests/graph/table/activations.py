"""Every spelling of the rectifier."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdReLU
from ftbc.graph.ops import Activation, Staircase
from tests.graph.table.entries import conv, entry

for _name, _run in {
    "F.relu": lambda m, x: F.relu(m.a(x)),
    "F.relu by name": lambda m, x: F.relu(input=m.a(x), inplace=True),
    "F.relu in place, positional": lambda m, x: F.relu(m.a(x), True),
    "F.relu_": lambda m, x: F.relu_(m.a(x)),
    "torch.relu": lambda m, x: torch.relu(m.a(x)),
    "torch.relu_": lambda m, x: torch.relu_(m.a(x)),
    "x.relu": lambda m, x: m.a(x).relu(),
    "x.relu_": lambda m, x: m.a(x).relu_(),
    "F.relu6": lambda m, x: F.relu6(m.a(x) * 9),
    "F.relu6 in place": lambda m, x: F.relu6(m.a(x) * 9, inplace=True),
    "clamp(min=0)": lambda m, x: m.a(x).clamp(min=0),
    "clamp(0)": lambda m, x: m.a(x).clamp(0),
    "clamp(0, b)": lambda m, x: m.a(x).clamp(0, 0.7),
    "clamp(0, inf)": lambda m, x: m.a(x).clamp(0, float("inf")),
    "clamp_": lambda m, x: m.a(x).clamp_(0, 0.7),
    "clamp_(min=0)": lambda m, x: m.a(x).clamp_(min=0.0),
    "clamp_min": lambda m, x: m.a(x).clamp_min(0),
    "torch.clamp": lambda m, x: torch.clamp(m.a(x), min=0.0, max=0.5),
    "torch.clamp by name": lambda m, x: torch.clamp(input=m.a(x), min=0.0),
    "torch.clip": lambda m, x: torch.clip(m.a(x), 0, 0.5),
    "F.hardtanh(0, b)": lambda m, x: F.hardtanh(m.a(x), 0.0, 0.5),
    "F.hardtanh(0) to its default": lambda m, x: F.hardtanh(m.a(x) * 3, 0.0),
    "F.hardtanh by name": lambda m, x: F.hardtanh(m.a(x), min_val=0.0, max_val=0.5, inplace=True),
    "F.hardtanh_": lambda m, x: F.hardtanh_(m.a(x), 0.0, 0.5),
    "F.threshold": lambda m, x: F.threshold(m.a(x), 0.0, 0.0),
    "torch.maximum with 0": lambda m, x: torch.maximum(m.a(x), torch.zeros(1, dtype=x.dtype)),
    "torch.max with zeros_like": lambda m, x: torch.max(y := m.a(x), torch.zeros_like(y)),
}.items():
    entry(_name, _run, a=conv())

for _name, _act in {
    "nn.ReLU": nn.ReLU(),
    "nn.ReLU(inplace)": nn.ReLU(inplace=True),
    "nn.ReLU6": nn.ReLU6(),
    "nn.Hardtanh(0, b)": nn.Hardtanh(0, 0.5),
    "nn.Threshold(0, 0)": nn.Threshold(0, 0),
    "ftbc Activation": Activation(),
    "ftbc Activation with bound": Activation(0.5),
    "ftbc Staircase": Staircase(0.5, 4),
    "ThresholdReLU": ThresholdReLU(),
    "QCFS": QCFS(4),
    "SlipReLU": SlipReLU(4),
    "RateNorm": RateNorm(),
}.items():
    entry(_name, lambda m, x: m.act(m.a(x) * 4), a=conv(), act=_act)

entry("one module called twice", lambda m, x: m.act(m.b(m.act(m.a(x)))), sites=2, a=conv(), b=conv(6), act=nn.ReLU())
entry("one QCFS called twice", lambda m, x: m.act(m.b(m.act(m.a(x)))), sites=2, a=conv(), b=conv(6), act=QCFS(8))
entry("one convolution called twice", lambda m, x: F.relu(m.a(F.relu(m.a(x)))), sites=2, a=conv(4, 4))
