"""Layers with weights, alone and beside a BatchNorm."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import Parameter
from torch.nn.utils import parametrizations

from tests.graph.table.entries import BOTH, conv, entry

for _name, _more in {
    "stride": {"stride": 2},
    "dilation": {"dilation": 2, "padding": 2},
    "groups": {"groups": 2},
    "depthwise": {"groups": 4, "out": 8},
    "no bias": {"bias": False},
    "padding same": {"padding": "same"},
    "padding valid": {"padding": "valid"},
    "padding circular": {"padding_mode": "circular"},
    "padding reflect": {"padding_mode": "reflect"},
    "padding replicate": {"padding_mode": "replicate", "padding": 2},
    "unequal kernel": {"size": (3, 5), "padding": (1, 2), "stride": (1, 2)},
}.items():
    entry(f"Conv2d, {_name}", lambda m, x: F.relu(m.a(x)), a=conv(**_more))
    _norm = nn.BatchNorm2d(_more.get("out", 6))
    entry(f"Conv2d, {_name}, BatchNorm behind", lambda m, x: F.relu(m.bn(m.a(x))), a=conv(**_more), bn=_norm)
    _zeros = _more.get("padding") != "valid" and "padding_mode" not in _more
    # torch.export records the other paddings as a step of their own, which stands between the two.
    entry(f"Conv2d, {_name}, BatchNorm in front", lambda m, x: F.relu(m.a(m.bn(x))), affine=int(_zeros),
          routes=("fx",) if "padding_mode" in _more else BOTH, a=conv(**_more), bn=nn.BatchNorm2d(4))  # fmt: skip

for _rank in (1, 2, 3):
    _shape, _cube = (4, *[6] * _rank), [3] * _rank
    _conv, _up, _bn = (getattr(nn, f"{kind}{_rank}d") for kind in ("Conv", "ConvTranspose", "BatchNorm"))
    entry(
        f"Conv{_rank}d, BatchNorm{_rank}d", lambda m, x: F.relu(m.bn(m.a(x))), shape=_shape, a=_conv(4, 6, 3), bn=_bn(6)
    )
    entry(
        f"BatchNorm{_rank}d, Conv{_rank}d", lambda m, x: F.relu(m.a(m.bn(x))), shape=_shape, a=_conv(4, 6, 3), bn=_bn(4)
    )
    for _groups in (1, 2):
        _larger = _up(4, 6, 3, stride=2, padding=1, output_padding=1, groups=_groups)
        entry(f"ConvTranspose{_rank}d, {_groups} groups, BatchNorm{_rank}d", lambda m, x: F.relu(m.bn(m.a(x))),
              shape=_shape, bn=_bn(6), a=_larger)  # fmt: skip
        entry(f"BatchNorm{_rank}d, ConvTranspose{_rank}d, {_groups} groups", lambda m, x: F.relu(m.a(m.bn(x))),
              shape=_shape, affine=1, bn=_bn(4), a=_up(4, 6, 3, groups=_groups))  # fmt: skip
    _conv, _up = getattr(F, f"conv{_rank}d"), getattr(F, f"conv_transpose{_rank}d")
    entry(f"F.conv{_rank}d", lambda m, x, f=_conv: F.relu(f(x, m.w, m.b, padding=1, groups=2)),
          shape=_shape, w=Parameter(torch.randn(6, 2, *_cube)), b=Parameter(torch.randn(6)))  # fmt: skip
    entry(f"F.conv_transpose{_rank}d", lambda m, x, f=_up: F.relu(f(x, m.w, bias=m.b, stride=2, groups=2, dilation=2)),
          shape=_shape, w=Parameter(torch.randn(4, 3, *_cube)), b=Parameter(torch.randn(6)))  # fmt: skip

entry("ConvTranspose2d to a size", lambda m, x: F.relu(m.up(m.a(x), output_size=x.shape[2:])), a=conv(stride=2),
      up=nn.ConvTranspose2d(6, 3, 3, stride=2, padding=1))  # fmt: skip

_norm = nn.BatchNorm1d
entry("Linear, BatchNorm1d", lambda m, x: F.relu(m.bn(m.a(x))), shape=(5,), a=nn.Linear(5, 7), bn=_norm(7))
entry("BatchNorm1d, Linear", lambda m, x: F.relu(m.a(m.bn(x))), shape=(5,), a=nn.Linear(5, 7), bn=_norm(5))
entry(
    "Linear without bias, BatchNorm1d",
    lambda m, x: F.relu(m.bn(m.a(x))),
    shape=(5,),
    a=nn.Linear(5, 7, False),
    bn=_norm(7),
)
entry("Linear over tokens, factor", lambda m, x: F.relu(m.a(x) * 3), shape=(6, 5), a=nn.Linear(5, 7))
entry("Linear over tokens, BatchNorm over tokens", lambda m, x: F.relu(m.bn(m.a(x))), shape=(6, 5), affine=1,
      a=nn.Linear(5, 7), bn=_norm(6))  # fmt: skip
entry("Linear over tokens, BatchNorm over tokens in front", lambda m, x: F.relu(m.a(m.bn(x))), shape=(6, 5), affine=1,
      a=nn.Linear(5, 7), bn=_norm(6))  # fmt: skip

_w, _b = Parameter(torch.randn(7, 5)), Parameter(torch.randn(7))
entry("F.linear", lambda m, x: F.relu(F.linear(x, m.w, m.b)), shape=(5,), w=_w, b=_b)
entry("x @ W + b", lambda m, x: F.relu(x @ m.w.T + m.b), shape=(5,), w=_w, b=_b)
entry("torch.mm by name", lambda m, x: F.relu(torch.mm(x, mat2=m.w.t())), shape=(5,), w=_w)
entry("torch.addmm", lambda m, x: F.relu(torch.addmm(m.b, x, m.w.t())), shape=(5,), w=_w, b=_b)
entry("weights computed in forward", lambda m, x: F.relu(F.conv2d(x, m.w * m.g.view(-1, 1, 1, 1))),
      w=Parameter(torch.randn(6, 4, 3, 3)), g=Parameter(torch.rand(6)))  # fmt: skip
entry("weight_norm", lambda m, x: F.relu(m.a(x)), a=parametrizations.weight_norm(conv()))
entry("spectral_norm", lambda m, x: F.relu(m.a(x)), a=parametrizations.spectral_norm(conv()))
