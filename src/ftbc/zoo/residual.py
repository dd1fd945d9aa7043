"""Residual blocks (He et al. 2016), of which both families of ResNets are built."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from ftbc.zoo.parts import Activation, Branch, norm


class ResidualBlock(nn.Module):
    """Convolutions ``conv1``, ``conv2`` ... beside a shortcut; an activation behind each, the last after the addition.

    layers: output channels, kernel and stride of each convolution. shortcut: a name, which differs between public
    weights, and the module.
    """

    def __init__(
        self,
        channels: int,
        layers: Sequence[tuple[int, int, int]],
        shortcut: tuple[str, nn.Module],
        batch_norm: bool,
        activation: Activation,
    ) -> None:
        super().__init__()
        self.depth = len(layers)
        for index, (out, kernel, stride) in enumerate(layers, 1):
            convolution = nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=not batch_norm)
            self.add_module(f"conv{index}", convolution)
            self.add_module(f"bn{index}", norm(out, batch_norm))
            self.add_module(f"act{index}", activation())
            channels = out
        self.shortcut_name, module = shortcut
        self.add_module(self.shortcut_name, module)

    @property
    def branch(self) -> Branch:
        """Where the convolutions end."""
        return self.get_submodule(f"conv{self.depth}"), self.get_submodule(f"bn{self.depth}")

    def forward(self, x: Tensor) -> Tensor:
        out = x
        for index in range(1, self.depth + 1):
            out = self.get_submodule(f"bn{index}")(self.get_submodule(f"conv{index}")(out))
            if index == self.depth:
                out = out + self.get_submodule(self.shortcut_name)(x)
            out = self.get_submodule(f"act{index}")(out)
        return out


def projection(channels: int, out: int, stride: int, batch_norm: bool) -> nn.Module:
    """A shortcut to another number of channels or another size: a 1 x 1 convolution."""
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=not batch_norm), norm(out, batch_norm))
