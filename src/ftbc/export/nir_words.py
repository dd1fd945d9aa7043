"""The nodes and edges of a NIR file as they are added, in the words of one dialect."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.errors import UnsupportedError
from ftbc.export.clock import reach
from ftbc.export.dialect import Dialect
from ftbc.graph.ir import Node, Shape

FOREVER = 1e20
"""A time constant, in seconds, in which nothing decays within the precision of a number."""


class Words:
    """A NIR graph in the making: an edge adds a value to all that its target reads.

    image: the shape of the image; clock: how many clock channels the input has behind those of the image; unchecked:
    the nodes whose shapes the package `nir` works out wrongly, so that files must be read without its check.
    """

    def __init__(self, nir: Any, dialect: Dialect, dtype: torch.dtype, image: Shape, clock: int) -> None:
        self.nir, self.dialect, self.dtype, self.image, self.clock = nir, dialect, dtype, image, clock
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.unchecked: list[str] = []
        whole = (image[0] + clock, *image[1:])
        self.input = self.add("input", nir.Input(np.array(whole)), [], whole, whole)

    def add(self, name: str, node: Any, sources: list[str], before: Shape, after: Shape) -> str:
        """Add a node that reads the sum of others, under a name made unique, and return that name."""
        node.input_type, node.output_type = {"input": np.array(before)}, {"output": np.array(after)}
        name = self._free(name)
        self.nodes[name] = node
        for source, count in Counter(sources).items():
            if count > 1:  # an edge is there or not: a value that is added twice needs a factor
                source = self.scaled(f"{source}_times", [source], torch.full((1,), float(count)), before)
            self.edges.append((source, name))
        return name

    def _free(self, wanted: str) -> str:
        """A name that stays unique where programs turn dots into lines, and that no module has as an attribute."""
        wanted = wanted.replace("/", ".")  # in an HDF5 file a slash would begin a group
        taken = {name.replace(".", "_") for name in self.nodes}
        name, count = wanted, 0
        while name.replace(".", "_") in taken or hasattr(nn.ModuleDict, name.replace(".", "_")):
            count += 1
            name = f"{wanted}_{count}"
        return name

    # ---- neurons -----------------------------------------------------------------------------------------

    def neurons(self, name: str, sources: list[str], shape: Shape) -> str:
        """Integrate-and-fire neurons with threshold 1 and, where the dialect has a word for it, soft reset."""
        nir, dt, kind = self.nir, self.dialect.dt, self.dialect.neuron

        def filled(number: float) -> np.ndarray:
            return array(torch.full((1,) if self.dialect.old else shape, number, dtype=self.dtype))

        theta, zero = filled(1.0), filled(0.0)
        if self.dialect.just_below:  # NIR fires above a threshold, our neurons at it
            theta = np.nextafter(theta, zero)
        if kind == "Threshold":
            membrane = self.add(f"{name}.membrane", nir.I(filled(1.0)), sources, shape, shape)
            neuron = self.add(name, nir.Threshold(theta), [membrane], shape, shape)
            reset = self.add(f"{name}.reset", nir.Scale(filled(-1.0)), [neuron], shape, shape)
            self.edges.append((reset, membrane))
            return neuron
        if kind == "IF":
            node = nir.IF(filled(1 / dt), theta, zero)
        elif kind == "LIF":
            node = nir.LIF(filled(FOREVER), filled(FOREVER / dt), zero, theta, zero)
        else:  # a synapse that forgets at once before a membrane that never does
            node = nir.CubaLIF(filled(dt), filled(FOREVER), filled(FOREVER / dt), zero, theta, zero, filled(1.0))
        return self.add(name, node, sources, shape, shape)

    # ---- factors and weights -----------------------------------------------------------------------------

    def scaled(self, name: str, sources: list[str], factor: Tensor, shape: Shape) -> str:
        """The sum of the sources times a factor, which has one entry, one per channel, or one per neuron."""
        if self.dialect.plain:
            spread = factor if factor.ndim == len(shape) else factor.reshape(-1, *[1] * (len(shape) - 1))
            return self.add(name, self.nir.Scale(array(spread.to(self.dtype).expand(shape))), sources, shape, shape)
        if factor.numel() not in (1, shape[0]):
            raise UnsupportedError(f"'{name}' is a factor for each pixel, which {self.dialect.name} cannot read")
        return self.diagonal(name, sources, factor.reshape(-1), torch.zeros(1), shape)

    def diagonal(self, name: str, sources: list[str], scale: Tensor, shift: Tensor, shape: Shape) -> str:
        """Each channel times a factor, and shifted."""
        scale, bias = scale.to(self.dtype).expand(shape[0]), shift.to(self.dtype).expand(shape[0])
        if len(shape) == 1:
            return self.matrix(name, sources, scale.diag(), bias)
        ones = [1] * (len(shape) - 1)
        return self.convolution(name, sources, scale.view(-1, 1, *ones), bias, shape, groups=shape[0])

    def choice(
        self,
        name: str,
        sources: list[str],
        matrix: Tensor,
        before: Shape,
        kernel: list[int] | None = None,
        tap: list[int] | None = None,
        stride: list[int] | None = None,
        padding: list[int] | None = None,
    ) -> str:
        """Channels of the sources, chosen by a matrix of 0 and 1, read at one tap of a kernel."""
        matrix = matrix.to(self.dtype)
        if len(before) == 1:
            return self.matrix(name, sources, matrix, None)
        weight = torch.zeros(*matrix.shape, *(kernel or [1] * (len(before) - 1)), dtype=self.dtype)
        weight[(..., *(tap or [0] * (len(before) - 1)))] = matrix
        return self.convolution(name, sources, weight, None, before, stride, padding)

    def from_input(self, name: str, node: Node, weight: Tensor, bias: Tensor) -> str:
        """A value of a node's shape that has weights ``[channels, channels of the input]`` at each pixel."""
        whole, (channels, *space) = (self.image[0] + self.clock, *self.image[1:]), node.shape
        if len(whole) == 1:
            return self.matrix(name, [self.input], weight, bias)
        ones = (1,) * (len(whole) - 1)
        kernel, stride = reach(node, whole[1:], tuple(space) or ones)
        spread = torch.zeros(*weight.shape, *kernel, dtype=self.dtype)
        spread[(..., *[0] * len(kernel))] = weight.to(self.dtype)
        found = self.convolution(name, [self.input], spread, bias, whole, stride=stride)
        return found if space else self.flat(f"{name}_flat", [found], (channels, *ones))

    def flat(self, name: str, sources: list[str], before: Shape) -> str:
        """All entries in a row."""
        node = self.nir.Flatten({"input": np.array(before)}, 0, -1)
        return self.add(name, node, sources, before, (math.prod(before),))

    def matrix(self, name: str, sources: list[str], weight: Tensor, bias: Tensor | None) -> str:
        """A linear layer."""
        node = self.nir.Affine(array(weight.to(self.dtype)), self._bias(weight, bias))
        return self.add(name, node, sources, (weight.shape[1],), (weight.shape[0],))

    def _bias(self, weight: Tensor, bias: Tensor | None) -> np.ndarray:
        return array((torch.zeros(len(weight)) if bias is None else bias.detach()).to(self.dtype))

    def convolution(
        self,
        name: str,
        sources: list[str],
        weight: Tensor,
        bias: Tensor | None,
        before: Shape,
        stride: Any = None,
        padding: Any = None,
        dilation: Any = None,
        groups: int = 1,
    ) -> str:
        """A convolution over one or two dimensions; before: the shape of what it reads."""
        one = weight.ndim == 3
        if one and not self.dialect.waves:
            raise UnsupportedError(f"'{name}' is a convolution in one dimension, which {self.dialect.name} cannot read")
        ones = [1] * (weight.ndim - 2)
        stride, dilation = ([int(v) for v in value or ones] for value in (stride, dilation))
        padding = [int(v) for v in padding or [0] * len(ones)]
        if not self.dialect.plain:
            weight, groups = without_groups(weight, groups), 1
        weight, padding = _square(weight, padding, dilation)
        sizes = zip(before[1:], weight.shape[2:], stride, padding, dilation, strict=True)
        after = (len(weight), *(1 + (n + 2 * p - d * (k - 1) - 1) // s for n, k, s, p, d in sizes))
        numbers = array(weight.to(self.dtype)), self._bias(weight, bias)
        kind, shape = (self.nir.Conv1d, before[1]) if one else (self.nir.Conv2d, before[1:])
        settings = [value[0] if one else tuple(value) for value in (stride, padding, dilation)]
        found = self.add(name, kind(shape, numbers[0], *settings, groups, numbers[1]), sources, before, after)
        if groups > 1 or len(set(weight.shape[2:])) > 1:
            self.unchecked.append(found)
        return found


def array(tensor: Tensor) -> np.ndarray:
    """Numbers of their own, in order."""
    return tensor.detach().contiguous().clone().numpy()


def without_groups(weight: Tensor, groups: int) -> Tensor:
    """Weights ``[out, in / groups, ...]`` with all their zeros: ``[out, in, ...]``.

    >>> without_groups(torch.tensor([[1.0], [2.0]]), 2)
    tensor([[1., 0.],
            [0., 2.]])
    """
    outputs, inputs = len(weight) // groups, weight.shape[1]
    spread = weight.new_zeros(len(weight), inputs * groups, *weight.shape[2:])
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        spread[rows, group * inputs : (group + 1) * inputs] = weight[rows]
    return spread


def _square(weight: Tensor, padding: list[int], dilation: list[int]) -> tuple[Tensor, list[int]]:
    """A kernel with zeros around it so that it has equal sides, where that leaves the output as it is.

    The package `nir` takes all kernels for square when it works out shapes.
    """
    sizes = weight.shape[2:]
    missing = [max(sizes) - size for size in sizes]
    if not any(missing) or any(m % 2 for m in missing):
        return weight, padding
    halves = [m // 2 for m in missing]
    weight = F.pad(weight, [side for half in reversed(halves) for side in (half, half)])
    return weight, [p + half * d for p, half, d in zip(padding, halves, dilation, strict=True)]
