"""A copy of the user's network that can be traced and taken apart; the network itself is never changed."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

from ftbc.errors import TraceError


def plain_copy(model: nn.Module) -> nn.Module:
    """A copy in eval mode, without wrappers (DataParallel, torch.compile), whose computed weights are plain ones."""
    while isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel) or hasattr(model, "_orig_mod"):
        model = model._orig_mod if hasattr(model, "_orig_mod") else model.module  # type: ignore[assignment]
    # deepcopy refuses tensors that have a gradient history, such as the weights that weight_norm's hook leaves.
    memo = {
        id(value): value.detach().clone()
        for module in model.modules()
        for value in vars(module).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    try:
        model = copy.deepcopy(model, memo)
    except Exception as error:
        raise TraceError(f"the network cannot be copied: {error}") from error
    model.eval()
    for module in model.modules():
        if parametrize.is_parametrized(module):
            _bake_parametrizations(module)
        for hook in list(module._forward_pre_hooks.values()):
            _bake_hook(module, hook)
    return model


def _bake_parametrizations(module: nn.Module) -> None:
    """Put plain parameters in the place of computed ones.

    Not by `remove_parametrizations`: it edits the module's class, which the copy shares with the user's model.
    """
    computed = {name: getattr(module, name).detach() for name in module.parametrizations}  # type: ignore[union-attr]
    module.__class__ = parametrize.type_before_parametrizations(module)
    del module._modules["parametrizations"]
    for name, value in computed.items():
        module.register_parameter(name, nn.Parameter(value, requires_grad=False))


def _bake_hook(module: nn.Module, hook: Any) -> None:
    """The older forms of weight norm, spectral norm and pruning compute the weight in a hook before forward."""
    if isinstance(hook, prune.BasePruningMethod):
        prune.remove(module, hook._tensor_name)  # type: ignore[attr-defined]
    elif type(hook).__name__ == "WeightNorm":
        nn.utils.remove_weight_norm(module, hook.name)
    elif type(hook).__name__ == "SpectralNorm":
        nn.utils.remove_spectral_norm(module, hook.name)
