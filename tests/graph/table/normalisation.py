"""BatchNorm in other places than directly beside one layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.nn import BatchNorm2d

from tests.graph.table.entries import conv, entry

entry("lone BatchNorm", lambda m, x: F.relu(m.bn(x)), affine=1, bn=BatchNorm2d(4))
entry("BatchNorm without weights", lambda m, x: F.relu(m.bn(m.a(x))), a=conv(), bn=BatchNorm2d(6, affine=False))
entry("F.batch_norm",
      lambda m, x: F.relu(F.batch_norm(m.a(x), running_mean=m.mean, running_var=m.var, weight=m.w, eps=0.1)),
      a=conv(), mean=torch.randn(6), var=torch.rand(6) + 0.5, w=torch.randn(6))  # fmt: skip
entry("BatchNorm on both sides", lambda m, x: F.relu(m.bn2(m.b(m.bn1(F.relu(m.a(x)))))), sites=2, affine=1,
      a=conv(), b=conv(6), bn1=BatchNorm2d(6), bn2=BatchNorm2d(6))  # fmt: skip
entry("BatchNorm read by two convolutions", lambda m, x: m.a(y := m.bn(F.relu(x))) + F.relu(m.b(y)), sites=2,
      a=conv(padding=0), b=conv(padding=0), bn=BatchNorm2d(4))  # fmt: skip
entry("BatchNorm behind a convolution that others read", lambda m, x: F.relu(m.bn(y := m.a(x))) + y, affine=1,
      a=conv(), bn=BatchNorm2d(6))  # fmt: skip
entry("frozen BatchNorm in arithmetic",
      lambda m, x: F.relu(m.a(x) * (m.w * (m.v + 1e-5).rsqrt()).reshape(1, -1, 1, 1) + m.w.reshape(1, -1, 1, 1)),
      a=conv(), w=torch.randn(6), v=torch.rand(6))  # fmt: skip
entry("pre-activation residual", lambda m, x: m.b(F.relu(m.bn2(m.a(F.relu(m.bn1(x)))))) + x, sites=2, affine=1,
      a=conv(), b=conv(6, 4), bn1=BatchNorm2d(4), bn2=BatchNorm2d(6))  # fmt: skip
