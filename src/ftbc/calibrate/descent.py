"""The coordinate descent of `search`, channel by channel in one compiled loop (the extra ``fast``)."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ftbc.loops import compiled_loops
from ftbc.threads import over_images

_kernels = functools.partial(compiled_loops, "ftbc.calibrate.compiled")


def usable(x: Tensor) -> bool:
    """Whether the compiled form can take currents like these."""
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and _kernels() is not None


def compiled(x: Tensor, a: Tensor, theta: Tensor, b: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """As `search.descend_plainly`."""
    from ftbc.calibrate.search import STEPS

    kernels = _kernels()
    currents, targets = x.transpose(0, 1).contiguous().numpy(), a.contiguous().numpy()
    theta, biases = theta.clone(), b.t().contiguous()
    sizes = torch.tensor(STEPS, dtype=torch.float64).numpy()
    thresholds, rows, shares = theta.numpy(), biases.numpy(), weights.double().numpy()

    def share(first: int, last: int) -> None:
        kernels.descend(currents, targets, thresholds, rows, shares, sizes, first, last)

    over_images(share, len(theta), len(theta))
    return theta, biases.t().contiguous()
