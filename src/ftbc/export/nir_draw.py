"""A graph with unit thresholds in the words of NIR: one rule for each operation.

NIR has no time: b[t] is carried by clock channels. The input has T more channels, of which channel t is all ones at
step t and zero else; a layer's bias is a convolution (or matrix) that reads them, with b[t] as its weights. On a chip
these are T neurons that fire once. Sums are edges; joins, slices and pads are convolutions whose weights are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ftbc.errors import UnsupportedError
from ftbc.export.dialect import Dialect
from ftbc.export.nir_words import Words, without_groups
from ftbc.export.rewrite import first_bias
from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.ops import Affine, Concat, Grid, MaxPool, Pad, Reshape, Slice, Sum
from ftbc.neuron import IntegrateFire, SpikingMaxPool


class Drawing:
    """The whole of a file.

    clock: how many clock channels the input has; names: by the name of a layer of neurons in the file, that in the
    network; reached: for each value of the graph the nodes whose sum it is.
    """

    def __init__(self, graph: Graph, dialect: Dialect, clock: int, nir: Any) -> None:
        self.graph, self.dialect, self.clock = graph, dialect, clock
        self.words = Words(nir, dialect, graph.tensors()[0].dtype, graph.input_shape, clock)
        self.names: dict[str, str] = {}
        self.reached: dict[str, list[str]] = {}
        for node in graph:
            self.reached[node.name] = self._draw(node)
        shape, sources = graph.shape(graph.output), self.sources(graph.output)
        if len(sources) > 1:  # readers add up what meets in a node, but not what meets in the output
            sources = [self.words.scaled(f"{graph.output}_sum", sources, torch.ones(1), shape)]
        self.words.add("output", nir.Output(np.array(shape)), sources, shape, shape)
        self._require_no_joins()

    def _require_no_joins(self) -> None:
        """Refuse branches that meet, for programs that would run one of them too late."""
        targets = [target for _, target in self.words.edges]
        joins = [name for name in dict.fromkeys(targets) if targets.count(name) > 1]
        if joins and not self.dialect.joins:
            raise UnsupportedError(
                f"branches meet in '{joins[0]}', and {self.dialect.name} runs a file's nodes before all that "
                "they read is there: networks with shortcuts go to spikingjelly or snntorch"
            )

    def sources(self, value: str) -> list[str]:
        """The nodes whose sum a value is; the image without the clock is a node of its own where it is needed."""
        if value == INPUT and INPUT not in self.reached:
            self.reached[INPUT] = [self._image() if self.clock else self.words.input]
        return self.reached[value]

    def _image(self) -> str:
        channels, *space = self.graph.input_shape
        chosen = torch.eye(channels + self.clock)[:channels]
        return self.words.choice("image", [self.words.input], chosen, (channels + self.clock, *space))

    def _draw(self, node: Node) -> list[str]:
        for kinds, rule in _RULES:
            if isinstance(node.module, kinds):
                return rule(self, node, node.module, self.graph.shape(node.inputs[0]))
        if isinstance(node.module, (*MaxPool, SpikingMaxPool)):
            remedy = "convert with pool='average', or write ONNX, which has max-pools"
        elif isinstance(node.module, Grid):
            remedy = "write the network as it was before it was rounded, or its whole numbers with export weights"
        else:
            remedy = "write ONNX, which has it"
        raise UnsupportedError(f"{node.place} has no word in NIR: {remedy}")

    # ---- neurons -----------------------------------------------------------------------------------------

    def neuron(self, node: Node, module: IntegrateFire, before: Shape) -> list[str]:
        """Neurons, and what brings them their bias."""
        rows = first_bias(module)
        biases = self._bias(node, rows) if bool(rows.any()) else []
        name = self.words.neurons(node.name, [*self.sources(node.inputs[0]), *biases], node.shape)
        self.names[name] = node.name
        return [name]

    def _bias(self, node: Node, rows: Tensor) -> list[str]:
        """What brings the bias of each step from the clock."""
        channels, image = node.shape[0], self.graph.input_shape[0]
        none = torch.zeros(channels)
        weight = torch.zeros(channels, image + self.clock, dtype=rows.dtype)
        if rows.ndim == 2:
            weight[:, image:] = rows.t().expand(channels, -1)
            return [self.words.from_input(f"{node.name}.bias", node, weight, none)]
        if not self.dialect.plain:
            raise UnsupportedError(f"{node.place} has a bias for each pixel, which {self.dialect.name} cannot read")
        found = []
        for t, row in enumerate(rows):
            if bool(row.any()):
                at_t = torch.zeros_like(weight)
                at_t[:, image + t] = 1
                plane = self.words.from_input(f"{node.name}.clock_{t}", node, at_t, none)
                found.append(self.words.scaled(f"{node.name}.bias_{t}", [plane], row, node.shape))
        return found

    # ---- weights -----------------------------------------------------------------------------------------

    def convolution(self, node: Node, module: nn.Conv1d | nn.Conv2d, before: Shape) -> list[str]:
        """A convolution; one that reads the image has zeros for the clock."""
        if module.padding_mode != "zeros":
            raise UnsupportedError(f"{node.place} pads by {module.padding_mode!r}: NIR pads by zeros alone; write ONNX")
        weight, groups, sources = module.weight.detach(), module.groups, None
        if node.inputs[0] == INPUT and self.clock and (groups == 1 or not self.dialect.plain):
            weight, groups = without_groups(weight, groups), 1
            weight = torch.cat([weight, weight.new_zeros(len(weight), self.clock, *weight.shape[2:])], 1)
            sources, before = [self.words.input], (before[0] + self.clock, *before[1:])
        sources = self.sources(node.inputs[0]) if sources is None else sources
        settings = {"stride": module.stride, "padding": _padding(node, module), "dilation": module.dilation}
        return [self.words.convolution(node.name, sources, weight, module.bias, before, groups=groups, **settings)]

    def linear(self, node: Node, module: nn.Linear, before: Shape) -> list[str]:
        """A linear layer over features."""
        if len(before) != 1:
            raise UnsupportedError(
                f"{node.place} reads the shape {list(before)}: NIR has matrices for features alone; write ONNX"
            )
        weight, sources = module.weight.detach(), None
        if node.inputs[0] == INPUT and self.clock:
            weight, sources = torch.cat([weight, weight.new_zeros(len(weight), self.clock)], 1), [self.words.input]
        sources = self.sources(node.inputs[0]) if sources is None else sources
        return [self.words.matrix(node.name, sources, weight, module.bias)]

    def affine(self, node: Node, module: Affine, before: Shape) -> list[str]:
        """Factors and shifts, one for each channel or for each neuron."""
        sources, shape = self.sources(node.inputs[0]), node.shape
        if before != shape:
            raise UnsupportedError(f"{node.place} gives another shape than it reads, which NIR cannot; write ONNX")
        scale, shift = module.scale[0], module.shift[0]
        if bool(shift.any()) and all(part.numel() == part.shape[0] for part in (scale, shift)):
            return [self.words.diagonal(node.name, sources, scale.reshape(-1), shift.reshape(-1), shape)]
        if bool((scale != 1).any()):
            sources = [self.words.scaled(node.name, sources, scale, shape)]
        if bool(shift.any()):
            none = torch.zeros(shape[0], self.graph.input_shape[0] + self.clock)
            ones = self.words.from_input(f"{node.name}.ones", node, none, torch.ones(shape[0]))
            sources = [*sources, self.words.scaled(f"{node.name}.shift", [ones], shift, shape)]
        return sources

    # ---- what has no weights -----------------------------------------------------------------------------

    def sum(self, node: Node, module: Sum, before: Shape) -> list[str]:
        """All edges of the branches."""
        found = []
        for name, weight in zip(node.inputs, module.weights, strict=True):
            if self.graph.shape(name) != node.shape:
                raise UnsupportedError(f"{node.place} adds values of different shapes, which NIR cannot; write ONNX")
            sources = self.sources(name)
            if weight != 1:
                factor = torch.full((1,), weight, dtype=torch.float64)
                sources = [self.words.scaled(f"{node.name}.part", sources, factor, node.shape)]
            found += sources
        return found

    def pool(self, node: Node, module: nn.AvgPool2d, before: Shape) -> list[str]:
        """An average or a sum over windows that lie within the image."""
        size, stride, padding = (_pair(value) for value in (module.kernel_size, module.stride, module.padding))
        floors = tuple(1 + (n + 2 * p - k) // s for n, p, k, s in zip(before[1:], padding, size, stride, strict=True))
        adds = module.divisor_override == 1
        averages = module.divisor_override is None and (module.count_include_pad or not any(padding))
        if floors != node.shape[1:] or not (adds or averages) or (adds and any(padding)):
            raise UnsupportedError(f"{node.place} has windows that NIR cannot describe; write ONNX")
        if averages and not self.dialect.averages:
            raise UnsupportedError(f"{node.place} is an average pool, which {self.dialect.name} cannot read")
        kind = self.words.nir.SumPool2d if adds else self.words.nir.AvgPool2d
        found = kind(*(np.array(value) for value in (size, stride, padding)))
        return [self.words.add(node.name, found, self.sources(node.inputs[0]), before, node.shape)]

    def reshape(self, node: Node, module: Reshape, before: Shape) -> list[str]:
        """A flattening."""
        if node.shape == before:
            return self.sources(node.inputs[0])
        if len(node.shape) != 1:
            raise UnsupportedError(f"{node.place} gives the shape {list(node.shape)}: NIR flattens alone; write ONNX")
        return [self.words.flat(node.name, self.sources(node.inputs[0]), before)]

    def concat(self, node: Node, module: Concat, before: Shape) -> list[str]:
        """Each part goes to channels of its own, and all are added."""
        if module.dim != 1:
            raise UnsupportedError(f"{node.place} joins other dimensions than channels, which NIR cannot; write ONNX")
        found, begin = [], 0
        for name in node.inputs:
            shape = self.graph.shape(name)
            matrix = torch.zeros(node.shape[0], shape[0])
            matrix[begin : begin + shape[0]] = torch.eye(shape[0])
            begin += shape[0]
            found.append(self.words.choice(f"{node.name}.part", self.sources(name), matrix, shape))
        return found

    def slice(self, node: Node, module: Slice, before: Shape) -> list[str]:
        """Some channels, or every so many pixels."""
        sources, every = self.sources(node.inputs[0]), torch.eye(before[0])
        if module.dim == 1:
            chosen = every[module.start : module.stop : module.step]
            return [self.words.choice(node.name, sources, chosen, before)]
        at, ones = module.dim - 2, [1] * (len(before) - 1)
        kernel, tap, padding, stride = [*ones], [0] * len(ones), [0] * len(ones), [*ones]
        stride[at] = module.step
        kernel[at], tap[at], padding[at] = _taps(module, before[module.dim - 1], node.shape[module.dim - 1])
        return [self.words.choice(node.name, sources, every, before, kernel, tap, stride=stride, padding=padding)]

    def pad(self, node: Node, module: Pad, before: Shape) -> list[str]:
        """Channels or pixels of zeros."""
        sides = [*module.pad, *[0] * (2 * len(before) - len(module.pad))]
        if module.mode != "constant" or module.value != 0 or any(side < 0 for side in sides):
            raise UnsupportedError(f"{node.place} pads by more than zeros, which NIR cannot; write ONNX")
        *space, (first, last) = [(sides[i], sides[i + 1]) for i in range(0, len(sides), 2)]
        matrix = torch.zeros(first + before[0] + last, before[0])
        matrix[first : first + before[0]] = torch.eye(before[0])
        kernel = [1 + 2 * max(pair) - sum(pair) for pair in reversed(space)]
        tap = [max(pair) - pair[0] for pair in reversed(space)]
        padding = [max(pair) for pair in reversed(space)]
        sources = self.sources(node.inputs[0])
        return [self.words.choice(node.name, sources, matrix, before, kernel, tap, padding=padding)]

    def shuffle(self, node: Node, module: nn.ChannelShuffle, before: Shape) -> list[str]:
        """Channels in another order."""
        order = torch.arange(before[0]).view(module.groups, -1).t().reshape(-1)
        return [self.words.choice(node.name, self.sources(node.inputs[0]), torch.eye(before[0])[order], before)]


_RULES: list[tuple[Any, Callable[..., list[str]]]] = [
    (IntegrateFire, Drawing.neuron),
    ((nn.Conv1d, nn.Conv2d), Drawing.convolution),
    (nn.Linear, Drawing.linear),
    (Affine, Drawing.affine),
    (Sum, Drawing.sum),
    (nn.AvgPool2d, Drawing.pool),
    (Reshape, Drawing.reshape),
    (Concat, Drawing.concat),
    (Slice, Drawing.slice),
    (Pad, Drawing.pad),
    (nn.ChannelShuffle, Drawing.shuffle),
]


def _taps(module: Slice, length: int, wanted: int) -> tuple[int, int, int]:
    """Kernel, chosen tap and padding with which a convolution finds every ``step``-th entry from ``start`` on.

    A convolution has no end but that of the image: taps behind the chosen one make it stop earlier. The kernel is odd,
    if it can be, so that zeros around it make it square.
    """
    found = None
    for padding in range(length):
        padded, tap = length + 2 * padding, module.start + padding
        least, most = max(tap + 1, padded - module.step * wanted + 1), padded - module.step * (wanted - 1)
        for kernel in range(least, most + 1):
            found = found or (kernel, tap, padding)
            if kernel % 2:
                return kernel, tap, padding
    assert found is not None
    return found


def _pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[-1]))


def _padding(node: Node, module: nn.Conv1d | nn.Conv2d) -> tuple[int, ...]:
    if not isinstance(module.padding, str):
        return tuple(int(side) for side in module.padding)
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    both = [step * (size - 1) for step, size in zip(module.dilation, module.kernel_size, strict=True)]
    if any(total % 2 for total in both):
        raise UnsupportedError(f"{node.place} pads unequal sides, which NIR cannot; write ONNX")
    return tuple(total // 2 for total in both)
