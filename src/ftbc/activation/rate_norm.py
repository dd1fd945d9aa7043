"""The rate-norm layer: firing rates between 0 and 1, by a threshold that is a trained share of the largest input.

    theta = p m ,   a = clamp(z / theta, 0, 1)

    p = sigmoid(q), q trained (10 at first, so that nearly nothing is clipped)
    m <- 0.9 m + 0.1 max(z), over each batch in training; a constant for gradients, and in evaluation
    da/dz = [0 <= z <= theta] / theta ,   da/dp = -z / (p theta) in that range, 0 outside

Positive by this form, whatever a step does to q. Unlike the other activations it gives rates, not values in units of z:
the next weights learn the unit. The neuron that does the same has threshold 1 behind weights divided by theta, which is
how conversion writes it (`graph/rules/trained.py`): the division folds into the layer before.
Reference: Ding et al., IJCAI 2021 (RNL), and its released code.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ftbc.activation.base import LEAST, ThresholdActivation

_FIRST = 10.0
"""q at first: p is 1 to four digits."""


class RateNorm(ThresholdActivation):
    """Rates. ``share`` is the parameter q, ``maximum`` a buffer, the m that follows the largest input.

    >>> RateNorm(maximum=2.0).eval()(torch.tensor([-1.0, 1.0, 9.0])).round(decimals=3).tolist()
    [0.0, 0.5, 1.0]
    """

    maximum: Tensor

    def __init__(self, maximum: float = 1.0, momentum: float = 0.1) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.tensor(_FIRST))
        self.register_buffer("maximum", torch.tensor(self._positive("maximum", maximum)))
        self.momentum = self._within("momentum", momentum, 0, 1)

    @property
    def threshold(self) -> Tensor:
        return (torch.sigmoid(self.share) * self.maximum).clamp(min=LEAST)

    @torch.no_grad()
    def set_threshold(self, threshold: float) -> None:
        self.maximum.fill_(self._positive("threshold", threshold) / torch.sigmoid(self.share))

    def forward(self, z: Tensor) -> Tensor:
        """The rates, of any shape; in training the batch's largest input counts."""
        if self.training:
            # A new tensor, not in place: an earlier call of this module has saved the old one.
            self.maximum = torch.lerp(self.maximum, z.detach().amax().clamp(min=0), self.momentum)
        return torch.clamp(z / self.threshold, 0, 1)
