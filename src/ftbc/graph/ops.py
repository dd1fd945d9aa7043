"""The operations of a clean graph that torch.nn has no module for. All take the batch in dimension 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.activation.slip_relu import mixture


class Activation(nn.Module):
    """A site where a spiking neuron will stand: ``a = clamp(z, 0, upper)``; ``upper=None`` is the plain ReLU."""

    levels: int | None = None

    def __init__(self, upper: float | None = None) -> None:
        super().__init__()
        self.upper = upper

    def forward(self, z: Tensor) -> Tensor:
        """The clipped input."""
        return torch.clamp(z, 0, self.upper)

    def extra_repr(self) -> str:
        """What is shown behind the name of the module."""
        return "" if self.upper is None else f"upper={self.upper:g}"


class Staircase(Activation):
    """A site that was trained with ``levels`` steps up to ``upper``: the equation of `activation/slip_relu.py`."""

    def __init__(
        self, upper: float, levels: int, slope: float = 0.0, clip_shift: float = 0.0, step_shift: float = 0.5
    ) -> None:
        super().__init__(upper)
        self.levels: int = levels
        self.slope, self.clip_shift, self.step_shift = slope, clip_shift, step_shift

    def forward(self, z: Tensor) -> Tensor:
        """The quantised input."""
        return mixture(z, z.new_tensor(self.upper), self.levels, self.slope, self.clip_shift, self.step_shift)

    def extra_repr(self) -> str:
        """What is shown behind the name of the module."""
        return f"{super().extra_repr()}, levels={self.levels}"


class Sum(nn.Module):
    """Weighted sum of its inputs: additions and subtractions of any number of branches."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self.weights = tuple(float(w) for w in weights)

    def forward(self, *inputs: Tensor) -> Tensor:
        """The sum of the inputs times their weights."""
        terms = [x if w == 1 else x * w for x, w in zip(inputs, self.weights, strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def consume(self, inputs: Sequence[Tensor], spent: Sequence[bool]) -> Tensor:
        """As `forward`, written over one of two inputs that nobody needs afterwards; equal to the last bit."""
        for k, other in ((0, 1), (1, 0)) if self.weights == (1.0, 1.0) else ():
            if spent[k] and inputs[k].stride() == inputs[other].stride():
                return inputs[k].add_(inputs[other])
        return self(*inputs)


class Affine(nn.Module):
    """``scale * x + shift`` with constants that broadcast over the batch (first dimension 1): a lone BatchNorm."""

    scale: Tensor
    shift: Tensor

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)
        self.register_buffer("shift", shift)

    def forward(self, x: Tensor) -> Tensor:
        """The scaled and shifted input."""
        return torch.addcmul(self.shift, x, self.scale)


class Grid(nn.Module):
    """Round to multiples of ``step``: a current as a digital neuron receives it."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = float(step)

    def forward(self, x: Tensor) -> Tensor:
        """The nearest multiples."""
        return (x / self.step).round_().mul_(self.step)


class Concat(nn.Module):
    """Join the inputs along ``dim`` (never the batch)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, *inputs: Tensor) -> Tensor:
        """The inputs, joined."""
        return torch.cat(inputs, self.dim)


class Reshape(nn.Module):
    """Give each item of the batch the shape ``shape``: view, flatten, squeeze and unsqueeze."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(int(size) for size in shape)

    def forward(self, x: Tensor) -> Tensor:
        """The items in their new shape."""
        return x.reshape(x.shape[0], *self.shape)


class Permute(nn.Module):
    """Reorder the dimensions; ``dims[0]`` is 0, the batch."""

    def __init__(self, dims: Sequence[int]) -> None:
        super().__init__()
        self.dims = tuple(int(d) for d in dims)

    def forward(self, x: Tensor) -> Tensor:
        """The input with its dimensions in the new order."""
        return x.permute(self.dims)


class Reduce(nn.Module):
    """Mean or sum over dimensions other than the batch."""

    def __init__(self, dims: Sequence[int], keepdim: bool, mean: bool) -> None:
        super().__init__()
        self.dims = tuple(int(d) for d in dims)
        self.keepdim = keepdim
        self.mean = mean

    def forward(self, x: Tensor) -> Tensor:
        """The mean or sum."""
        return x.mean(self.dims, self.keepdim) if self.mean else x.sum(self.dims, self.keepdim)


class Slice(nn.Module):
    """Every ``step``-th entry from ``start`` to ``stop`` along one dimension: slices, chunks and splits."""

    def __init__(self, dim: int, start: int, stop: int, step: int = 1) -> None:
        super().__init__()
        self.dim, self.start, self.stop, self.step = dim, start, stop, step

    def forward(self, x: Tensor) -> Tensor:
        """The part."""
        return x[(slice(None),) * self.dim + (slice(self.start, self.stop, self.step),)]


class Pad(nn.Module):
    """`torch.nn.functional.pad` over dimensions other than the batch."""

    def __init__(self, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> None:
        super().__init__()
        self.pad = tuple(int(p) for p in pad)
        self.mode = mode
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(x, self.pad, self.mode, self.value if self.mode == "constant" else None)


MaxPool = (
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d
)  # fmt: skip
Convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TransposedConvolution = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
Synapses = (*Convolution, *TransposedConvolution, nn.Linear)
AveragePool = (
    nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d
)  # fmt: skip
Shuffle = (nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle)
Rearrangement = (nn.Upsample, *Shuffle)
