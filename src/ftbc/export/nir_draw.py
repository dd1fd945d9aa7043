"""A graph with unit thresholds in the words of NIR: nodes, and edges whose values add up where they meet.

NIR has no time: b[t] is carried by clock channels. The input has T more channels, of which channel t is all ones at
step t and zero else; a layer's bias is a convolution (or matrix) that reads them, with b[t] as its weights. On a chip
these are T neurons that fire once. Sums are edges; joins, slices and pads are convolutions whose weights are 0 and 1.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ftbc.errors import UnsupportedError
from ftbc.export.clock import reach
from ftbc.export.dialect import Dialect
from ftbc.export.rewrite import first_bias
from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.ops import Affine, Concat, Grid, MaxPool, Pad, Reshape, Slice, Sum
from ftbc.neuron import IntegrateFire, SpikingMaxPool

FOREVER = 1e20
"""A time constant, in seconds, in which nothing decays within the precision of a number."""


class Drawing:
    """The nodes and edges of a file, as they are added.

    clock: how many clock channels the input has; names: by the name of a layer of neurons here, that in the network.
    """

    def __init__(self, graph: Graph, dialect: Dialect, clock: int, nir: Any) -> None:
        self.graph, self.dialect, self.clock, self.nir = graph, dialect, clock, nir
        self.dtype = graph.tensors()[0].dtype
        self.nodes: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.names: dict[str, str] = {}
        self.reached: dict[str, list[str]] = {}
        channels, *space = graph.input_shape
        self.input = self.add("input", nir.Input(np.array([channels + clock, *space])), [])
        for node in graph:
            self.reached[node.name] = self._draw(node)
        shape = graph.shape(graph.output)
        sources = self.sources(graph.output)
        if len(sources) > 1:  # readers add up what meets in a node, but not what meets in the output
            sources = [self._scaled(f"{graph.output}_sum", sources, torch.ones(1), shape)]
        self.add("output", nir.Output(np.array(shape)), sources)

    # ---- nodes and edges ---------------------------------------------------------------------------------

    def add(self, name: str, node: Any, sources: list[str]) -> str:
        """Add a node that reads the sum of others, under a name made unique, and return that name."""
        name = self._free(name)
        self.nodes[name] = node
        for source, count in Counter(sources).items():
            if count > 1:  # an edge is there or not: a value that is added twice needs a factor
                shape = tuple(int(size) for size in self.nodes[source].output_type["output"])
                source = self._scaled(f"{source}_times", [source], torch.full((1,), float(count)), shape)
            self.edges.append((source, name))
        return name

    def sources(self, value: str) -> list[str]:
        """The nodes whose sum a value is; the image, without the clock, is a node of its own where it is needed."""
        if value == INPUT:
            if not self.clock:
                return [self.input]
            if INPUT not in self.reached:
                channels = self.graph.input_shape[0]
                matrix = torch.eye(channels, channels + self.clock)
                self.reached[INPUT] = [self._choice("image", [self.input], matrix, self.graph.input_shape)]
        return self.reached[value]

    def _free(self, wanted: str) -> str:
        """A name that stays unique where programs turn dots into lines, and that no module has as an attribute."""
        taken = {name.replace(".", "_") for name in self.nodes}
        name, count = wanted, 0
        while name.replace(".", "_") in taken or hasattr(nn.ModuleDict, name.replace(".", "_")):
            count += 1
            name = f"{wanted}_{count}"
        return name

    # ---- one rule for each operation ---------------------------------------------------------------------

    def _draw(self, node: Node) -> list[str]:
        module, before = node.module, self.graph.shape(node.inputs[0])
        if isinstance(module, IntegrateFire):
            return self._neuron(node, module)
        if isinstance(module, nn.Conv1d | nn.Conv2d):
            return self._convolution(node, module)
        if isinstance(module, nn.Linear) and len(before) == 1:
            return self._linear(node, module)
        if isinstance(module, Sum):
            return self._sum(node, module)
        if isinstance(module, Affine):
            return self._affine(node, module)
        if isinstance(module, nn.AvgPool2d):
            return self._pool(node, module)
        if isinstance(module, Reshape):
            return self._reshape(node, before)
        if isinstance(module, Concat) and module.dim == 1:
            return self._concat(node)
        if isinstance(module, Slice):
            return self._slice(node, module, before)
        if isinstance(module, Pad):
            return self._pad(node, module, before)
        if isinstance(module, nn.ChannelShuffle):
            order = torch.arange(before[0]).view(module.groups, -1).t().reshape(-1)
            return [self._choice(node.name, self.sources(node.inputs[0]), torch.eye(before[0])[order], before)]
        raise self._refusal(node)

    def _neuron(self, node: Node, neuron: IntegrateFire) -> list[str]:
        nir, shape, kind = self.nir, node.shape, self.dialect.neuron
        rows = first_bias(neuron)
        sources = [*self.sources(node.inputs[0]), *(self._bias(node, rows) if bool(rows.any()) else [])]

        def filled(number: float) -> np.ndarray:
            return _array(torch.full(shape, number, dtype=self.dtype))

        theta = filled(1.0)
        if self.dialect.just_below:  # NIR fires above a threshold, our neurons at it
            theta = np.nextafter(theta, np.zeros_like(theta))
        if kind == "threshold":
            membrane = self.add(f"{node.name}.membrane", nir.I(filled(1.0)), sources)
            name = self.add(node.name, nir.Threshold(theta), [membrane])
            reset = self.add(f"{node.name}.reset", nir.Scale(filled(-1.0)), [name])
            self.edges.append((reset, membrane))
        elif kind == "IF":
            name = self.add(node.name, nir.IF(filled(self.dialect.resistance), theta, filled(0.0)), sources)
        else:
            leak = nir.LIF(filled(FOREVER), filled(FOREVER / self.dialect.dt), filled(0.0), theta, filled(0.0))
            name = self.add(node.name, leak, sources)
        self.names[name] = node.name
        return [name]

    def _bias(self, node: Node, rows: Tensor) -> list[str]:
        """What brings the bias of each step from the clock."""
        if not self.clock:
            raise UnsupportedError(f"{node.place} has a bias that depends on time: write clock channels, bias='clock'")
        channels, image = node.shape[0], self.graph.input_shape[0]
        weight = torch.zeros(channels, image + self.clock, dtype=self.dtype)
        if rows.ndim == 2:
            weight[:, image:] = rows.t().expand(channels, -1)
            return [self._from_input(f"{node.name}.bias", node, weight, torch.zeros(channels))]
        if not self.dialect.scales:
            raise UnsupportedError(f"{node.place} has a bias for each pixel, which {self.dialect.name} cannot read")
        found = []
        for t, row in enumerate(rows):
            if bool(row.any()):
                at_t = torch.zeros_like(weight)
                at_t[:, image + t] = 1
                plane = self._from_input(f"{node.name}.clock_{t}", node, at_t, torch.zeros(channels))
                found += [self._scaled(f"{node.name}.bias_{t}", [plane], row, node.shape)]
        return found

    def _convolution(self, node: Node, module: nn.Conv1d | nn.Conv2d) -> list[str]:
        if module.padding_mode != "zeros":
            raise UnsupportedError(f"{node.place} pads by {module.padding_mode!r}: NIR pads by zeros alone; write ONNX")
        weight, groups = module.weight.detach(), module.groups
        dense = not self.dialect.groups and groups > 1
        sources = None
        if node.inputs[0] == INPUT and self.clock and (groups == 1 or dense):
            weight, groups, sources = _without_groups(weight, groups), 1, [self.input]
            weight = torch.cat([weight, weight.new_zeros(len(weight), self.clock, *weight.shape[2:])], 1)
        elif dense:
            weight, groups = _without_groups(weight, groups), 1
        padding = _padding(node, module)
        sources = self.sources(node.inputs[0]) if sources is None else sources
        return [self._weights(node.name, sources, weight, module.bias, module.stride, padding, module.dilation, groups)]

    def _linear(self, node: Node, module: nn.Linear) -> list[str]:
        weight, sources = module.weight.detach(), None
        if node.inputs[0] == INPUT and self.clock:
            weight, sources = torch.cat([weight, weight.new_zeros(len(weight), self.clock)], 1), [self.input]
        sources = self.sources(node.inputs[0]) if sources is None else sources
        return [self._matrix(node.name, sources, weight, module.bias)]

    def _sum(self, node: Node, module: Sum) -> list[str]:
        found = []
        for name, weight in zip(node.inputs, module.weights, strict=True):
            if self.graph.shape(name) != node.shape:
                raise UnsupportedError(f"{node.place} adds values of different shapes, which NIR cannot; write ONNX")
            sources = self.sources(name)
            if weight != 1:
                sources = [self._scaled(f"{node.name}.part", sources, torch.full((1,), weight), node.shape)]
            found += sources
        return found

    def _affine(self, node: Node, module: Affine) -> list[str]:
        sources, shape = self.sources(node.inputs[0]), node.shape
        if self.graph.shape(node.inputs[0]) != shape:
            raise UnsupportedError(f"{node.place} gives another shape than it reads, which NIR cannot; write ONNX")
        scale, shift = module.scale[0], module.shift[0]
        by_channel = all(part.numel() == part.shape[0] for part in (scale, shift))
        if by_channel and bool(shift.any()):
            return [self._diagonal(node.name, sources, scale.reshape(-1), shift.reshape(-1), shape)]
        if bool((scale != 1).any()):
            sources = [self._scaled(node.name, sources, scale, shape)]
        if bool(shift.any()):
            channels, width = shape[0], self.graph.input_shape[0] + self.clock
            ones = self._from_input(f"{node.name}.ones", node, torch.zeros(channels, width), torch.ones(channels))
            sources = [*sources, self._scaled(f"{node.name}.shift", [ones], shift, shape)]
        return sources

    def _pool(self, node: Node, module: nn.AvgPool2d) -> list[str]:
        size, stride, padding = (_pair(value) for value in (module.kernel_size, module.stride, module.padding))
        before = self.graph.shape(node.inputs[0])
        floors = [1 + (n + 2 * p - k) // s for n, p, k, s in zip(before[1:], padding, size, stride, strict=True)]
        counts = module.divisor_override is None and (module.count_include_pad or not any(padding))
        adds = module.divisor_override == 1 or module.divisor_override == size[0] * size[1] == 1
        if tuple(floors) != node.shape[1:] or not (counts or adds) or (adds and any(padding)):
            raise UnsupportedError(f"{node.place} has windows at the border that NIR cannot describe; write ONNX")
        if counts and not self.dialect.averages:
            raise UnsupportedError(f"{node.place} is an average pool, which {self.dialect.name} cannot read")
        kind = self.nir.SumPool2d if adds else self.nir.AvgPool2d
        arguments = [np.array(value) for value in (size, stride, padding)]
        found = kind(*arguments)
        found.input_type, found.output_type = {"input": np.array(before)}, {"output": np.array(node.shape)}
        return [self.add(node.name, found, self.sources(node.inputs[0]))]

    def _reshape(self, node: Node, before: Shape) -> list[str]:
        if node.shape == before:
            return self.sources(node.inputs[0])
        if len(node.shape) != 1:
            raise UnsupportedError(f"{node.place} gives the shape {list(node.shape)}: NIR flattens alone; write ONNX")
        flat = self.nir.Flatten({"input": np.array(before)}, 0, -1)
        return [self.add(node.name, flat, self.sources(node.inputs[0]))]

    def _concat(self, node: Node) -> list[str]:
        found, begin = [], 0
        for name in node.inputs:
            shape = self.graph.shape(name)
            matrix = torch.zeros(node.shape[0], shape[0])
            matrix[begin : begin + shape[0]] = torch.eye(shape[0])
            begin += shape[0]
            found.append(self._choice(f"{node.name}.part", self.sources(name), matrix, shape))
        return found

    def _slice(self, node: Node, module: Slice, before: Shape) -> list[str]:
        matrix, sources = torch.eye(before[0]), self.sources(node.inputs[0])
        if module.dim == 1:
            return [self._choice(node.name, sources, matrix[module.start : module.stop : module.step], before)]
        tap, stride = [0] * (len(before) - 1), [1] * (len(before) - 1)
        at = module.dim - 2
        kernel = [1] * len(tap)
        tap[at], stride[at] = module.start, module.step
        # A convolution has no end but that of the image: taps behind the chosen one make it stop earlier.
        kernel[at] = max(tap[at] + 1, before[module.dim - 1] - module.step * node.shape[module.dim - 1] + 1)
        return [self._choice(node.name, sources, matrix, before, kernel, tap, stride)]

    def _pad(self, node: Node, module: Pad, before: Shape) -> list[str]:
        sides = [*module.pad, *[0] * (2 * len(before) - len(module.pad))]
        if module.mode != "constant" or module.value != 0 or any(side < 0 for side in sides):
            raise UnsupportedError(f"{node.place} pads by more than zeros, which NIR cannot; write ONNX")
        *space, (first, last) = [(sides[i], sides[i + 1]) for i in range(0, len(sides), 2)]
        matrix = torch.zeros(first + before[0] + last, before[0])
        matrix[first : first + before[0]] = torch.eye(before[0])
        padding = [max(pair) for pair in reversed(space)]
        kernel = [1 + 2 * max(pair) - sum(pair) for pair in reversed(space)]
        tap = [max(pair) - pair[0] for pair in reversed(space)]
        return [self._choice(node.name, self.sources(node.inputs[0]), matrix, before, kernel, tap, None, padding)]

    def _refusal(self, node: Node) -> UnsupportedError:
        if isinstance(node.module, (*MaxPool, SpikingMaxPool)):
            remedy = "convert with pool='average', or write ONNX, which has max-pools"
        elif isinstance(node.module, Grid):
            remedy = "write the network as it was before it was rounded, or its whole numbers with export weights"
        else:
            remedy = "write ONNX, which has it"
        return UnsupportedError(f"{node.place} has no word in NIR: {remedy}")

    # ---- weights -----------------------------------------------------------------------------------------

    def _scaled(self, name: str, sources: list[str], factor: Tensor, shape: Shape) -> str:
        """The sum of the sources times a factor, which has one entry, one per channel, or one per neuron."""
        if self.dialect.scales:
            spread = factor if factor.ndim == len(shape) else factor.reshape(-1, *[1] * (len(shape) - 1))
            return self.add(name, self.nir.Scale(_array(spread.to(self.dtype).expand(shape))), sources)
        if factor.numel() not in (1, shape[0]):
            raise UnsupportedError(f"'{name}' is a factor for each pixel, which {self.dialect.name} cannot read")
        return self._diagonal(name, sources, factor.reshape(-1), torch.zeros(1), shape)

    def _diagonal(self, name: str, sources: list[str], scale: Tensor, shift: Tensor, shape: Shape) -> str:
        channels = shape[0]
        scale, bias = scale.to(self.dtype).expand(channels), shift.to(self.dtype).expand(channels)
        if len(shape) == 1:
            return self._matrix(name, sources, scale.diag(), bias)
        ones = [1] * (len(shape) - 1)
        weight = scale.view(-1, 1, *ones) if self.dialect.groups else scale.diag().view(channels, channels, *ones)
        groups = channels if self.dialect.groups else 1
        return self._weights(name, sources, weight, bias, ones, [0] * len(ones), ones, groups, shape[1:])

    def _choice(
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
            return self._matrix(name, sources, matrix, None)
        ones = [1] * (len(before) - 1)
        weight = torch.zeros(*matrix.shape, *(kernel or ones), dtype=self.dtype)
        weight[(..., *(tap or [0] * len(ones)))] = matrix
        return self._weights(
            name, sources, weight, None, stride or ones, padding or [0] * len(ones), ones, 1, before[1:]
        )

    def _from_input(self, name: str, node: Node, weight: Tensor, bias: Tensor) -> str:
        """A value of a node's shape that has weights ``[channels, channels of the input]`` at each pixel."""
        space, shape = self.graph.input_shape[1:], node.shape
        if not space:
            return self._matrix(name, [self.input], weight, bias)
        flat = len(shape) == 1
        kernel, stride = reach(node, space, (1,) * len(space) if flat else shape[1:])
        spread = torch.zeros(*weight.shape, *kernel, dtype=self.dtype)
        spread[(..., *[0] * len(kernel))] = weight.to(self.dtype)
        ones = [1] * len(space)
        found = self._weights(name, [self.input], spread, bias, stride, [0] * len(space), ones, 1, space)
        if not flat:
            return found
        pixel = {"input": np.array([shape[0], *ones])}
        return self.add(f"{name}_flat", self.nir.Flatten(pixel, 0, -1), [found])

    def _matrix(self, name: str, sources: list[str], weight: Tensor, bias: Tensor | None) -> str:
        bias = torch.zeros(len(weight)) if bias is None else bias.detach()
        return self.add(name, self.nir.Affine(_array(weight.to(self.dtype)), _array(bias.to(self.dtype))), sources)

    def _weights(
        self,
        name: str,
        sources: list[str],
        weight: Tensor,
        bias: Tensor | None,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        space: Shape | None = None,
    ) -> str:
        space = self._space(sources[0]) if space is None else space
        bias = torch.zeros(len(weight)) if bias is None else bias.detach()
        kind, one = (self.nir.Conv2d, False) if weight.ndim == 4 else (self.nir.Conv1d, True)
        settings = [int(value[0]) if one else tuple(int(v) for v in value) for value in (stride, padding, dilation)]
        shape = int(space[0]) if one else tuple(space)
        numbers = _array(weight.to(self.dtype)), _array(bias.to(self.dtype))
        node = kind(shape, numbers[0], *settings, groups, numbers[1])
        return self.add(name, node, sources)

    def _space(self, source: str) -> Shape:
        return tuple(int(size) for size in self.nodes[source].output_type["output"][1:])


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().clone().numpy()


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[-1]))


def _without_groups(weight: Tensor, groups: int) -> Tensor:
    """Weights ``[out, in / groups, ...]`` with all their zeros: ``[out, in, ...]``."""
    outputs, inputs = len(weight) // groups, weight.shape[1]
    spread = weight.new_zeros(len(weight), inputs * groups, *weight.shape[2:])
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        spread[rows, group * inputs : (group + 1) * inputs] = weight[rows]
    return spread


def _padding(node: Node, module: nn.Conv1d | nn.Conv2d) -> tuple[int, ...]:
    if not isinstance(module.padding, str):
        return tuple(int(side) for side in module.padding)
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    both = [step * (size - 1) for step, size in zip(module.dilation, module.kernel_size, strict=True)]
    if any(total % 2 for total in both):
        raise UnsupportedError(f"{node.place} pads unequal sides, which NIR cannot; write ONNX")
    return tuple(total // 2 for total in both)
