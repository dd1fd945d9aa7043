"""Gradients inside and above a range, each in one pass over memory; comparisons and torch.where take far longer."""

from __future__ import annotations

import torch
from torch import Tensor


def inside(grad: Tensor, place: Tensor, top: float) -> Tensor:
    """``grad`` where ``0 < place < top``, else 0."""
    return torch.ops.aten.hardtanh_backward(grad, place, 0.0, float(top))


def above(grad: Tensor, place: Tensor, top: float) -> Tensor:
    """``grad`` where ``place >= top``, else 0."""
    before = top * (1 - torch.finfo(place.dtype).eps / 2)  # rounds to the number before top: the operator compares by >
    return torch.ops.aten.threshold_backward(grad, place, before)
