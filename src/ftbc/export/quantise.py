"""From a converted network to integers: which weights share a scale, and how large it may be."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ftbc.errors import InputError, NotFiniteError, UnsupportedError
from ftbc.export.integer import IntegerNetwork
from ftbc.export.rewrite import in_units, require_plain
from ftbc.graph.ir import INPUT, Graph, Node, Shape
from ftbc.graph.ops import (
    Affine,
    Concat,
    MaxPool,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Shuffle,
    Slice,
    Sum,
    Synapses,
    TransposedConvolution,
)
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire, Temporal
from ftbc.simulate.stepwise import stepwise

BITS = range(2, 17)
_EXACT = 1 << 24
"""Whole numbers up to here are exact in float32."""


@torch.no_grad()
def integers(snn: SpikingNetwork, bits: int, images: Tensor, per_channel: bool = False) -> IntegerNetwork:
    """The network with weights of ``bits`` bits, the sign included.

    images: ``[N, ...]``, a few, whose largest pixel decides on the scale of the input. per_channel: a scale, and so a
    threshold, for each channel; else for each layer.
    """
    if bits not in BITS:
        raise InputError(f"bits={bits}: give a whole number from {BITS[0]} to {BITS[-1]}, the sign included")
    snn._check(images, time_first=False)
    largest = 2 ** (bits - 1) - 1
    require_plain(snn, "integers")
    graph = in_units(snn, sum_pools=True)
    _require_whole(graph)
    _weigh_every_path(graph)
    image = _image_scale(images, bits)
    owners: dict[str, str] = {}
    scales: dict[str, Tensor] = {}
    output = torch.ones(1, dtype=torch.float64)
    graph.double()
    for target in [*graph.of_type(IntegrateFire), None]:
        layers = list(_layers(graph, target))
        scale, unit = _scale(graph, target, layers, largest, per_channel), _unit(graph, target, layers, image)
        for layer in layers:
            if owners.setdefault(layer.name, _name(target)) != _name(target):
                raise UnsupportedError(
                    f"{layer.place} leads to '{owners[layer.name]}' and to '{_name(target)}', which need scales of "
                    "their own: integers cannot; write ONNX"
                )
            _round_layer(layer.module, scale, unit, largest)
        if target is None:
            output = scale * unit
        else:
            _round_neuron(target.module, scale, unit)
            scales[target.name] = scale * unit
    graph.to(torch.float32 if _bound(graph, image, images, snn.extra_steps + snn.steps) < _EXACT else torch.float64)
    return IntegerNetwork(graph, snn.steps, scales, image, output, snn.readout, snn.head)


def _require_whole(graph: Graph) -> None:
    """Refuse operations that make fractions of whole numbers."""
    moving = (*Synapses, Affine, Sum, Temporal, Reshape, Permute, Concat, Slice, *MaxPool, *Shuffle)
    for node in graph:
        module = node.module
        whole = isinstance(module, moving) or (isinstance(module, Reduce) and not module.mean)
        whole |= isinstance(module, nn.AvgPool2d | nn.AvgPool3d) and module.divisor_override == 1
        whole |= isinstance(module, Pad) and (module.mode != "constant" or module.value == 0)
        whole |= isinstance(module, nn.Upsample) and module.mode == "nearest"
        if not whole:
            raise UnsupportedError(
                f"{node.place} does not keep whole numbers whole: it cannot be written as integers; write ONNX"
            )


def _weigh_every_path(graph: Graph) -> None:
    """Put a weight of 1 where spikes meet currents, or reach a neuron or the output, without weights of their own."""
    weighted = {INPUT: False}
    for node in list(graph):
        found = [weighted[name] for name in node.inputs]
        if isinstance(node.module, (*Synapses, Affine)):
            if found[0]:
                raise UnsupportedError(
                    f"{node.place} reads the sums of other weights, with no neurons between: integers of few bits "
                    "cannot carry them; write ONNX"
                )
            weighted[node.name] = True
            continue
        if isinstance(node.module, IntegrateFire) or (any(found) and not all(found)):
            for name, known in zip(node.inputs, found, strict=True):
                if not known:
                    _insert_weight(graph, name, node)
        weighted[node.name] = not isinstance(node.module, Temporal) and any(found)
    if not weighted[graph.output]:
        graph.output = _weight_of_one(graph, graph.output, f"{graph.output}_weight", None)


def _insert_weight(graph: Graph, value: str, reader: Node) -> None:
    name = _weight_of_one(graph, value, f"{reader.name}_weight", reader)
    reader.inputs = tuple(name if read == value else read for read in reader.inputs)


def _weight_of_one(graph: Graph, value: str, name: str, reader: Node | None) -> str:
    ones = torch.ones((1,) * (len(graph.shape(value)) + 1), dtype=graph.tensors()[0].dtype)
    node = Node(name, Affine(ones, torch.zeros_like(ones)), (value,), graph.shape(value))
    return graph.append(node) if reader is None else graph.insert_before(reader.name, node)


def _layers(graph: Graph, target: Node | None) -> Iterator[Node]:
    """The weights whose sums reach a layer of neurons, or the output."""
    waiting, seen = [*(target.inputs if target is not None else (graph.output,))], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name == INPUT or isinstance(graph[name].module, Temporal):
            continue
        seen.add(name)
        if isinstance(graph[name].module, (*Synapses, Affine)):
            yield graph[name]
        else:
            waiting += graph[name].inputs


def _scale(graph: Graph, target: Node | None, layers: list[Node], largest: int, per_channel: bool) -> Tensor:
    """The scale of all weights that reach a layer of neurons: one, or one for each channel."""
    channels = _channels(graph.shape(graph.output) if target is None else target.shape)
    by_channel = per_channel and all(
        _channels(layer.shape) == channels and not isinstance(layer.module, TransposedConvolution) for layer in layers
    )
    weights = [layer.module.scale[0] if isinstance(layer.module, Affine) else layer.module.weight for layer in layers]
    spread = [w.expand(channels, *w.shape[1:]) if by_channel else w for w in weights]  # type: ignore[union-attr, operator]
    return best_scale(torch.cat([w.reshape(channels if by_channel else 1, -1) for w in spread], 1).double(), largest)


def _channels(shape: Shape) -> int:
    """How many channels a value has; a single number for an image is one."""
    return shape[0] if shape else 1


def best_scale(rows: Tensor, largest: int) -> Tensor:
    """For each row the whole number with which rounded and clipped weights come closest to the weights, ``[rows]``.

    Tried are the largest with which all weights fit, and up to five times that: a few large weights, clipped, are often
    a small price for finer steps of all others.

    >>> best_scale(torch.tensor([[0.1, -0.5], [0.3, 0.2]]), 127)
    tensor([254., 423.])
    """
    fits = torch.floor(largest / rows.abs().amax(1).clamp(min=1 / _EXACT)).clamp(min=1)
    candidates = torch.stack([torch.floor(fits * (1 + k / 10)) for k in range(41)])
    errors = [(_rounded(rows, scale[:, None], largest) / scale[:, None] - rows).pow(2).sum(1) for scale in candidates]
    return candidates.gather(0, torch.stack(errors).argmin(0)[None])[0]


def _rounded(weight: Tensor, scale: Tensor, largest: int) -> Tensor:
    return torch.round(weight * scale).clamp(-largest, largest)


def _unit(graph: Graph, target: Node | None, layers: list[Node], image: float) -> float:
    """The scale of what these weights read: that of the image, or 1 for spikes."""
    read = {_reads_image(graph, layer.inputs) for layer in layers}
    if len(read) > 1:
        raise UnsupportedError(
            f"'{_name(target)}' reads the image and spikes at once, which integers cannot; write ONNX"
        )
    return image if True in read else 1.0


def _reads_image(graph: Graph, names: tuple[str, ...]) -> bool:
    return any(
        name == INPUT or (not isinstance(graph[name].module, Temporal) and _reads_image(graph, graph[name].inputs))
        for name in names
    )


def _round_layer(module: nn.Module, scale: Tensor, unit: float, largest: int) -> None:
    if isinstance(module, Affine):
        by_channel = scale.view(1, -1, *[1] * (module.scale.ndim - 2))
        module.scale = _rounded(module.scale, by_channel, largest)
        module.shift = torch.round(module.shift * by_channel * unit)
        return
    assert isinstance(module, Synapses)
    by_row = scale.view(-1, *[1] * (module.weight.ndim - 1))
    module.weight = nn.Parameter(_rounded(module.weight, by_row, largest), requires_grad=False)
    if module.bias is not None:
        module.bias = nn.Parameter(torch.round(module.bias * scale * unit), requires_grad=False)


def _round_neuron(neuron: nn.Module, scale: Tensor, unit: float) -> None:
    assert isinstance(neuron, IntegrateFire)

    def rounded(constants: Tensor) -> Tensor:
        """Of a row ``[T, 1]``, ``[T, C]`` or ``[T, C, H, W]`` of constants, on the scale of each channel."""
        return torch.round(constants * scale.view(1, -1, *[1] * (constants.ndim - 2)) * unit)

    neuron.threshold, neuron.initial = rounded(neuron.threshold[None])[0], rounded(neuron.initial[None])[0]
    neuron.bias = rounded(neuron.bias)


def _image_scale(images: Tensor, bits: int) -> float:
    if not bool(torch.isfinite(images).all()):
        raise NotFiniteError("the images to round on hold NaN or infinity: check how they are read and normalised")
    largest = float(images.abs().max())
    scale = (2 ** (max(bits, 8) - 1) - 1) / max(largest, 1e-30)
    return float(math.floor(scale)) if scale >= 1 else scale


def _bound(graph: Graph, image: float, images: Tensor, steps: int) -> float:
    """How large a membrane can become, if the worst comes to the worst: every neuron fires, all weights of one sign."""
    worst = graph.copy()
    for tensor in worst.tensors():
        tensor.data.abs_()
    found = [0.0]

    def fire(node: Node, current: Tensor) -> Tensor:
        if isinstance(node.module, IntegrateFire):
            size = float(current.max()) + float(node.module.bias.max()) + float(node.module.threshold.max())
            found.append(steps * size + float(node.module.initial.max()))
        return torch.ones(1, *node.shape, dtype=current.dtype)

    brightest = torch.full((1, *graph.input_shape), round(image * float(images.abs().max())), dtype=torch.float64)
    for output in stepwise(worst, brightest, 1, cell=fire):
        found.append(float(output.max()))
    return max(found)


def _name(target: Node | None) -> str:
    return "the output" if target is None else target.name
