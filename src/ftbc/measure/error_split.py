"""Where a layer of plain neurons departs from its activation.

With a the activation, m the mean output, z the mean current with its bias, and q(z) what T steps can tell of z,

    q(z) = theta / T * clamp( floor(T z / theta + v[0] / theta), 0, T )

    m - a  =  min(a, theta) - a  +  q(a) - min(a, theta)  +  q(z) - q(a)  +  m - q(z)
              clipping              quantisation             inherited        unevenness

inherited: what layers before and the bias have changed; unevenness: what the order brings in which currents come.

Weights behind a layer can count its spikes for more or less, and from another zero. What they cannot make up for is,
with sums over channels c and Var, Cov over images and positions,

    unexplained = sum_c ( Var a - Cov(m, a)^2 / Var m ) / sum_c Var a

which is how calibrations that choose these weights are to be judged: their m need not be near to a.
Reference: Bu et al., ICLR 2022 (QCFS), section 3.2, who name clipping, quantisation and unevenness.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

_LEAST = 1e-20


@dataclass(frozen=True)
class ErrorSplit:
    """The mean square of each part over that of the activation; signs differ, so that they do not sum to the total.
    unexplained: a share of the variance of the activation, on its own scale."""

    total: float
    clipping: float
    quantisation: float
    inherited: float
    unevenness: float
    unexplained: float

    @property
    def own(self) -> dict[str, float]:
        """The parts that arise in the layer itself."""
        return {name: getattr(self, name) for name in ("clipping", "quantisation", "unevenness")}

    def to_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return asdict(self)


def parts(a: Tensor, mean: Tensor, drive: Tensor, theta: Tensor, initial: Tensor, steps: int) -> dict[str, Tensor]:
    """The differences above by name; all tensors ``[N, ...]`` or broadcastable to them.

    >>> found = parts(*(torch.tensor(v) for v in (1.4, 0.5, 0.3, 1.0, 0.5)), steps=2)
    >>> [f"{name} {float(value):.1f}" for name, value in found.items()]
    ['total -0.9', 'clipping -0.4', 'quantisation 0.0', 'inherited -0.5', 'unevenness 0.0']
    """

    def staircase(z: Tensor) -> Tensor:
        return theta / steps * torch.floor((z * steps + initial) / theta).clamp(0, steps)

    clipped = torch.minimum(a, theta)
    reached, driven = staircase(a), staircase(drive)
    return {
        "total": mean - a,
        "clipping": clipped - a,
        "quantisation": reached - clipped,
        "inherited": driven - reached,
        "unevenness": mean - driven,
    }


def error_split(a: Tensor, mean: Tensor, drive: Tensor, theta: Tensor, initial: Tensor, steps: int) -> ErrorSplit:
    """Each part as a mean square over that of the activation, which must not be zero everywhere."""
    scale = float(a.double().pow(2).mean())
    found = parts(a.double(), mean.double(), drive.double(), theta.double(), initial.double(), steps)
    squares = {name: float(value.pow(2).mean()) / scale for name, value in found.items()}
    return ErrorSplit(**squares, unexplained=unexplained(a.double(), mean.double()))


def unexplained(a: Tensor, mean: Tensor) -> float:
    """The share of the variance of activations ``[N, C, ...]`` that no line through ``mean`` tells, channel by channel.

    >>> a = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    >>> round(unexplained(a, torch.tensor([[3.0, 5.0], [5.0, 5.0], [7.0, 5.0]])), 3)
    0.25
    """
    a, mean = (value.movedim(1, 0).flatten(1) for value in (a, mean))
    a, mean = a - a.mean(1, keepdim=True), mean - mean.mean(1, keepdim=True)
    spread, covariance = mean.pow(2).mean(1), (a * mean).mean(1)
    told = torch.where(spread > _LEAST, covariance.pow(2) / spread.clamp(min=_LEAST), torch.zeros_like(spread))
    whole = float(a.pow(2).mean(1).sum())
    return 1 - float(told.sum()) / whole if whole > 0 else 0.0
