"""SlipReLU: the clipped ReLU and the staircase in one, a compromise between the ANN's accuracy and the neuron's steps.

    a = c * theta clamp(z / theta + d1 / N, 0, 1)  +  (1 - c) * theta / N clamp( floor(z N / theta + d2), 0, N )

with N levels, slope c and shifts d1 (0) and d2 (1/2); in brackets what the authors train with. Each term has its own
gradient, as in `threshold_relu.py` and `qcfs.py`: c = 0 is QCFS, c = 1 with d1 = 0 the clipped ReLU.

What it converts to: the second term is what a neuron that starts at d2 * theta sends in N steps; for T to infinity any
neuron with this threshold sends clamp(z, 0, theta), the first term with d1 = 0. So the network is exact for no T. With
r the rounding of the staircase, a - clamp(z, 0, theta) is (1 - c) r: a neuron's error is c r at T = N and (c - 1) r for
large T. With d1 = 0 and d2 = 1/2 r is zero in the mean and at most theta / 2N; another d1 is an error for every T.
Reference: Jiang et al., ICML 2023 (SlipReLU); forward as in the released code. There the gradient of the staircase
reaches up to theta + (1 - d2) theta / N, where the output is constant; ours ends at theta - d2 theta / N, as in QCFS.
"""

from __future__ import annotations

from torch import Tensor

from ftbc.activation.base import WithTheta
from ftbc.activation.qcfs import staircase
from ftbc.activation.threshold_relu import clip


class SlipReLU(WithTheta):
    """``slope`` of the clipped ReLU, the rest of a staircase of ``levels`` steps; trainable threshold.

    >>> import torch
    >>> SlipReLU(levels=2, slope=0.5, threshold=1.0)(torch.tensor([-1.0, 0.25, 0.5, 2.0])).tolist()
    [0.0, 0.375, 0.5, 1.0]
    """

    def __init__(
        self,
        levels: int = 4,
        slope: float = 0.5,
        threshold: float = 8.0,
        clip_shift: float = 0.0,
        step_shift: float = 0.5,
    ) -> None:
        super().__init__(threshold)
        self.levels: int = self._whole("levels", levels)
        self.slope = self._within("slope", slope, 0, 1)
        self.clip_shift = self._within("clip_shift", clip_shift, -0.5, 0.5)
        self.step_shift = self._within("step_shift", step_shift, 0, 1)

    def forward(self, z: Tensor) -> Tensor:
        """The mixture, of any shape."""
        return mixture(z, self._bound(), self.levels, self.slope, self.clip_shift, self.step_shift)

    def extra_repr(self) -> str:
        """What is shown behind the name of the module."""
        return f"{super().extra_repr()}, slope={self.slope:g}"


def mixture(z: Tensor, theta: Tensor, levels: int, slope: float, clip_shift: float, step_shift: float) -> Tensor:
    """The equation above."""
    steps = staircase(z, theta, levels, step_shift)
    if slope == 0:  # not only faster: 0 * infinity would be NaN
        return steps
    shifted = z if clip_shift == 0 else z + theta * (clip_shift / levels)
    return slope * clip(shifted, theta) + (1 - slope) * steps
