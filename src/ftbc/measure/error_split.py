"""Where a layer of plain neurons departs from its activation.

With a the activation, m the mean output, z the mean current with its bias, and q(z) what T steps can tell of z,

    q(z) = theta / T * clamp( floor(T z / theta + v[0] / theta), 0, T )

    m - a  =  min(a, theta) - a  +  q(a) - min(a, theta)  +  q(z) - q(a)  +  m - q(z)
              clipping              quantisation             inherited        unevenness

inherited: what layers before and the bias have changed; unevenness: what the order brings in which currents come.
Reference: Bu et al., ICLR 2022 (QCFS), section 3.2, who name clipping, quantisation and unevenness.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ErrorSplit:
    """The mean square of each part over that of the activation; signs differ, so that they do not sum to the total."""

    total: float
    clipping: float
    quantisation: float
    inherited: float
    unevenness: float

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
    return ErrorSplit(**{name: float(value.pow(2).mean()) / scale for name, value in found.items()})
