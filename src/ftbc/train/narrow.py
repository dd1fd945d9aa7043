"""Gradients of narrow convolutions without oneDNN, where its code for them is at fault.

On processors with AVX2 and no AVX-512 a process dies in oneDNN (that of torch 2.13) in the backward pass of a ResNet
of 4, 8 and 16 channels; with 16 and more it runs, and so does the narrow one when oneDNN keeps to AVX. Which
convolution it is was not found out. So networks with channels that do not fill a register of eight numbers, which are
small, are trained with torch's own convolutions there, and all others as ever.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from ftbc.graph.ops import Convolution

_REGISTER = 8


def safe_gradients(model: nn.Module) -> AbstractContextManager[None]:
    """Around the training of a network."""
    at_fault = torch.backends.cpu.get_cpu_capability() == "AVX2" and is_narrow(model)
    return torch.backends.mkldnn.flags(enabled=False) if at_fault else nullcontext()


def is_narrow(model: nn.Module) -> bool:
    """Whether a convolution has channels that do not fill registers.

    >>> is_narrow(nn.Conv2d(3, 16, 3)), is_narrow(nn.Conv2d(3, 4, 3))
    (False, True)
    """
    return any(module.out_channels % _REGISTER != 0 for module in model.modules() if isinstance(module, Convolution))
