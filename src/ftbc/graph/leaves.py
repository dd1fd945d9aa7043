"""Our own activations, which stay one operation in a recorded forward, whichever way it is recorded.

torch.fx asks which modules are leaves. torch.export knows no leaves: while it records, each activation is replaced by a
stand-in that calls one operator without a body, and each call of that operator becomes a call of the module afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, fx, nn

from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdReLU
from ftbc.graph.ops import Activation, Staircase

_LEAVES = (Activation, Staircase, ThresholdReLU, QCFS, SlipReLU, RateNorm)


def is_leaf(module: nn.Module) -> bool:
    """Whether a module has a rule of its own; a subclass may compute something else and is looked into."""
    return type(module) in _LEAVES


@contextmanager
def stand_ins(model: nn.Module) -> Iterator[dict[str, nn.Module]]:
    """Replace each leaf below ``model`` for the length of the block; gives the leaves by name."""
    found = {name: m for name, m in model.named_modules(remove_duplicate=False) if name and is_leaf(m)}
    try:
        for name in found:
            put(model, name, _StandIn(name))
        yield found
    finally:
        for name, module in found.items():
            put(model, name, module)


def restore(module: fx.GraphModule, leaves: dict[str, nn.Module]) -> None:
    """Let the recorded forward of a model with `stand_ins` call the leaves again."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.ftbc.leaf.default:
            operand, name = node.args
            module.add_submodule(name, leaves[name])
            with module.graph.inserting_before(node):
                call = module.graph.call_module(name, (operand,))
            call.meta = node.meta
            node.replace_all_uses_with(call)
            module.graph.erase_node(node)


class _StandIn(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.ftbc.leaf(x, self.name)


@torch.library.custom_op("ftbc::leaf", mutates_args=())
def _leaf(x: Tensor, name: str) -> Tensor:
    return x.clone()


@_leaf.register_fake
def _(x: Tensor, name: str) -> Tensor:
    return torch.empty_like(x)


def put(model: nn.Module, name: str, module: nn.Module) -> None:
    """Let ``module`` take the place of the submodule of that name."""
    path, _, leaf = name.rpartition(".")
    model.get_submodule(path)._modules[leaf] = module
