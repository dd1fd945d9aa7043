"""Other shapes and orders, parts, joins and copies of a tensor."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.graph.table.entries import BOTH, conv, entry


def _shuffle_by_size(m: Any, x: Any) -> Any:
    y = F.relu(m.a(x))
    y = y.view(y.size(0), 2, y.size(1) // 2, y.size(2), y.size(3))
    return y.transpose(1, 2).contiguous().view(y.size(0), -1, y.size(3), y.size(4))


def _shuffle_by_shape(m: Any, x: Any) -> Any:
    batch, _, height, width = x.shape
    y = F.relu(m.a(x))
    y = y.reshape(batch, 3, 2, height, width)
    y = torch.transpose(y, 1, 2)
    return y.reshape(batch, -1, height, width)


def _split_and_join(m: Any, x: Any) -> Any:
    left, right = F.relu(m.a(x)).chunk(2, dim=1)
    return torch.cat((right, F.relu(left - 0.2)), dim=1)


entry("channel shuffle by size()", _shuffle_by_size, a=conv())
entry("channel shuffle by shape", _shuffle_by_shape, a=conv())
entry("chunk and cat", _split_and_join, sites=2, affine=1, a=conv())

for _name, _run in {
    "view": lambda m, x: x.view(x.size(0), -1),
    "view, -1 first": lambda m, x: x.view(-1, 6 * 64),
    "reshape by list": lambda m, x: x.reshape([x.shape[0], 3, 2, 64]),
    "flatten": lambda m, x: torch.flatten(x, 1),
    "flatten by name": lambda m, x: torch.flatten(input=x, start_dim=2),
    "x.flatten": lambda m, x: x.flatten(start_dim=1),
    "view_as": lambda m, x: x.flatten(1).view_as(x),
    "unflatten": lambda m, x: x.unflatten(1, (2, 3)),
    "permute": lambda m, x: x.permute(0, 2, 3, 1),
    "torch.permute": lambda m, x: torch.permute(x, (0, 3, 1, 2)),
    "permute by name": lambda m, x: x.permute(dims=(0, 3, 2, 1)),
    "transpose": lambda m, x: x.transpose(1, -1),
    "transpose by name": lambda m, x: torch.transpose(x, dim0=1, dim1=2),
    "swapaxes": lambda m, x: x.swapaxes(1, 2),
    "movedim": lambda m, x: x.movedim(1, -1),
    "movedim, several": lambda m, x: x.movedim((1, 2), (3, 1)),
    "mT": lambda m, x: x.mT,
    "data": lambda m, x: x.data,
    "unsqueeze, squeeze": lambda m, x: x.unsqueeze(1).squeeze(1).unsqueeze(-1),
    "squeeze by dimension": lambda m, x: x.mean((2, 3), keepdim=True).squeeze(-1).squeeze(2),
    "split by size": lambda m, x: x.split(4, dim=1)[1],
    "split by sizes": lambda m, x: torch.cat(torch.split(x, [1, 2, 3], 1)[::-1], 1),
    "tensor_split": lambda m, x: x.tensor_split(4, dim=1)[3],
    "unbind": lambda m, x: torch.stack(x.unbind(1)[::2], dim=2),
    "slice": lambda m, x: x[:, 1:4],
    "slice, steps": lambda m, x: x[:, :, ::2, 1::3],
    "slice, ellipsis": lambda m, x: x[..., 2:-1],
    "slice, negative": lambda m, x: x[:, -2:],
    "slice, whole batch": lambda m, x: x[: x.size(0), 1:],
    "index": lambda m, x: x[:, 2],
    "index, negative and new axis": lambda m, x: x[:, None, -1, :, 3],
    "index, new axis last": lambda m, x: x[..., None],
    "select": lambda m, x: x.select(1, -1),
    "narrow": lambda m, x: x.narrow(1, 2, 3),
    "narrow, negative": lambda m, x: x.narrow(1, -2, 2),
    "cat": lambda m, x: torch.cat([x, x * 2], 1),
    "cat, negative": lambda m, x: torch.cat((x, x), dim=-1),
    "cat by name": lambda m, x: torch.cat(tensors=[x, x], dim=2),
    "concat, axis": lambda m, x: torch.concat([x, x], axis=1),
    "cat with zeros_like, both sides": lambda m, x: torch.cat(
        [x.new_zeros(x.size(0), 1, 8, 8), x, x, torch.zeros_like(x)], 1
    ),
    "stack": lambda m, x: torch.stack([x, 2 * x], dim=-1),
    "expand": lambda m, x: x.mean((2, 3), keepdim=True).expand(-1, -1, 4, 5),
    "expand_as": lambda m, x: x.mean((2, 3), keepdim=True).expand_as(x),
    "repeat": lambda m, x: x.repeat(1, 2, 1, 3),
    "F.dropout": lambda m, x: F.dropout(x, 0.5, m.training),
    "F.dropout by name": lambda m, x: F.dropout(x, training=m.training),
    "torch.dropout": lambda m, x: torch.dropout(x, 0.5, train=m.training),
    "to": lambda m, x: x.to(x.dtype).contiguous().clone().detach().type_as(x),
}.items():
    _affine = {"cat": 1, "stack": 1, "expand": 1, "expand_as": 1}.get(_name, 0)
    # torch.export cannot follow .data
    _routes = ("fx",) if _name == "data" else BOTH
    entry(_name, lambda m, x, f=_run: f(m, F.relu(m.a(x))), affine=_affine, routes=_routes, a=conv())

entry("cat with a constant", lambda m, x: torch.cat([m.token.expand(x.shape[0], -1, -1), F.relu(x)], 1), shape=(6, 5),
      affine=1, token=nn.Parameter(torch.randn(1, 1, 5)))  # fmt: skip
