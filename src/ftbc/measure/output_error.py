"""How far a spiking network's outputs lie from those of the network it came from, at each time step.

    error[t] = sum (y[t] - z)^2 / sum (z - mean z)^2

y[t] is the mean output of the first t steps, z the output of the reference; the sums run over images and all numbers of
an output, and the mean of z is that of its channel (dimension 1: a class, or a plane of a map). 0 says that outputs are
the same, 1 that they tell as much as the mean. It needs no labels, and varies less than accuracy from draw to draw.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.ir import Shape


class OutputError:
    """The sums of the equation, in a view ``sums`` of some counts, so that they are added up and kept with these."""

    def __init__(self, sums: Tensor, steps: int) -> None:
        self.missed, self.squares, self.by_channel = sums.split([steps, 1, len(sums) - steps - 1])

    @staticmethod
    def size(steps: int, shape: Shape) -> int:
        """How many sums there are for outputs of that shape."""
        return steps + 1 + (shape[0] if shape else 1)

    def take(self, outputs: Tensor, z: Tensor) -> None:
        """Outputs ``[T, N, ...]`` and those of the reference, ``[N, ...]``."""
        if outputs.shape[1:] != z.shape:
            raise InputError(
                f"the reference gives {list(z.shape[1:])} for an image and the network {list(outputs.shape[2:])}: "
                "give the network that it was converted from"
            )
        y, z = outputs.double().flatten(1), z.double()
        self.missed += (y - z.flatten()).square().sum(1).cpu()
        self.squares += z.square().sum().cpu()
        self.by_channel += z.reshape(len(z), len(self.by_channel), -1).sum((0, 2)).cpu()

    def relative(self, images: int, shape: Shape) -> list[float]:
        """The error at each step after so many images."""
        places = images * torch.Size(shape).numel() / len(self.by_channel)
        spread = float(self.squares - self.by_channel.square().sum() / places)
        # Of outputs that do not vary, rounding alone is left.
        varies = spread > 1e-12 * float(self.squares)
        return [missed / spread if varies else float(missed > 0) for missed in self.missed.tolist()]
