"""A NIR file back to a network that runs: nodes and edges as they stand there, nothing from memory.

What depends on the clock channels alone is run with the clock, step by step; what it brings to a layer of neurons is
that layer's bias b[t].
"""

from __future__ import annotations

import graphlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ftbc.errors import FileError, FtbcError, first_line
from ftbc.export.clock import Clock, ticks
from ftbc.export.header import read_content
from ftbc.export.nir_file import from_bytes
from ftbc.export.nir_modules import by_channel, kind_of, module_of
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Concat, Reshape, Slice, Sum
from ftbc.graph.spec import clone, describe, rebuild
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire
from ftbc.recipe import Recipe

_NEURONS = ("Threshold", "IF", "LIF", "CubaLIF")


def read_nir(path: str | Path) -> SpikingNetwork:
    """The network of a file that `ftbc.export.nir` wrote, with neurons as they were meant: soft reset.

    What other programs make of them is for `ftbc.export.verify` to say.
    """
    path = Path(path)
    return network_of(read_content(path), path)


def network_of(content: bytes, path: Path) -> SpikingNetwork:
    """`read_nir` of a file's bytes."""
    file, header = from_bytes(content, path)
    try:
        return _Reader(file, header).network()
    except FtbcError as error:
        raise FileError(f"'{path}' cannot be read: {first_line(error)}") from error
    except Exception as error:  # a damaged file makes torch, numpy and Python raise nearly anything
        raise FileError(
            f"'{path}' is damaged: its nodes make no sense ({type(error).__name__}: {first_line(error)})"
        ) from error


class _Reader:
    """Goes through the nodes in an order in which each follows its sources.

    values: what a node gives, as a value of the graph; timed: what it gives of the clock alone, ``[T, ...]``. Membranes
    and neurons read both.
    """

    def __init__(self, file: Any, header: dict[str, Any]) -> None:
        self.file, self.header = file, header
        self.steps, self.clock = int(header["steps"]), bool(header["clock"])
        self.total = self.steps + int(header["extra_steps"])
        self.graph = Graph(_shape(header["input_shape"]))
        self.dtype = {"float32": torch.float32, "float64": torch.float64}[header["dtype"]]
        self.values: dict[str, str] = {}
        self.timed: dict[str, Tensor] = {}
        self.input = INPUT
        if header["relay"]:
            self.input = self._append("clock", Clock(self.total), INPUT)

    def network(self) -> SpikingNetwork:
        """The whole network."""
        resets = self._resets()
        sources: dict[str, list[str]] = {name: [] for name in self.file.nodes if name not in resets}
        for source, target in self.file.edges:
            if not {source, target} & resets:
                sources[target].append(source)
        for name in graphlib.TopologicalSorter(sources).static_order():
            self._read(name, self.file.nodes[name], sources[name])
        readout, head = self.header["readout"], self.header["head"]
        return SpikingNetwork(
            self.graph,
            self.steps,
            Recipe.from_dict(self.header["recipe"]),
            None if head is None else rebuild(head, {}),
            readout=None if readout is None else torch.tensor(readout, dtype=self.dtype),
        ).eval()

    def _resets(self) -> set[str]:
        """The nodes that take a neuron's spike off its own membrane."""
        edges, nodes, found = set(self.file.edges), self.file.nodes, set()
        for membrane, neuron in edges:
            if kind_of(nodes[membrane]) == "I":
                back = [name for name, target in edges if target == membrane and (neuron, name) in edges]
                scales = [nodes[name] for name in back if kind_of(nodes[name]) == "Scale"]
                if len(back) != 1 or not scales or not bool((scales[0].scale == -1).all()):
                    raise FileError(f"the neurons {neuron!r:.80} have no soft reset")
                found.add(back[0])
        return found

    def _read(self, name: str, node: Any, sources: list[str]) -> None:
        kind = kind_of(node)
        if kind == "Input":
            return
        if kind == "I":  # what reaches a membrane is the current of its neuron
            self._collect(name, sources)
        elif kind in _NEURONS:
            self._neuron(name, node, sources)
        elif kind == "Output":
            self._output(sources)
        elif any(kind_of(self.file.nodes[source]) == "Input" for source in sources):
            self._at_input(name, module_of(node), sources)
        elif all(source in self.timed for source in sources):
            parts = [self.timed[source] for source in sources]
            self.timed[name] = module_of(node)(sum(parts[1:], parts[0]))
        else:
            self.values[name] = self._append(name, module_of(node), self._sum(name, sources))

    def _at_input(self, name: str, module: nn.Module, sources: list[str]) -> None:
        """A node that reads the input, of which it must use the image or the clock, not both."""
        if len(sources) == 1 and not self.clock:
            self.values[name] = self._append(name, module, self.input)
            return
        if len(sources) != 1 or not isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            raise FileError(f"{name!r:.80} reads the clock in a way that is not ours")
        weight, image = module.weight, self.graph.input_shape[0]
        if not bool(weight[:, :image].any()):
            space = self.graph.input_shape[1:]
            dark = weight.new_zeros(self.total, image, *space)
            self.timed[name] = module(torch.cat([dark, ticks(self.total, 1, space, weight)[:, 0]], 1))
        elif bool(weight[:, image:].any()):
            raise FileError(f"{name!r:.80} reads image and clock at once")
        else:
            self.values[name] = self._append(name, _of_the_image(module, image), INPUT)

    def _collect(self, name: str, sources: list[str]) -> None:
        """The current of a membrane, and beside it what the clock brings there."""
        timed = [self.timed[source] for source in sources if source in self.timed]
        if timed:
            self.timed[name] = sum(timed[1:], timed[0])
        self.values[name] = self._sum(name, [source for source in sources if source not in self.timed])

    def _neuron(self, name: str, node: Any, sources: list[str]) -> None:
        if kind_of(node) != "Threshold":
            self._collect(name, sources)
        source = sources[0] if kind_of(node) == "Threshold" else name
        theta = torch.from_numpy(np.array(node.threshold if kind_of(node) == "Threshold" else node.v_threshold))
        below = torch.nextafter(torch.ones_like(theta), torch.zeros_like(theta))
        if not bool(((theta == 1) | (theta == below)).all()):
            raise FileError(f"the neurons {name!r:.80} have thresholds other than 1")
        one, bias = torch.ones(1, dtype=self.dtype), self.timed.pop(source, None)
        shape = self.graph.shape(self.values[source])
        if tuple(theta.shape) not in (shape, (1,)):
            raise FileError(f"the neurons {name!r:.80} do not fit what reaches them")
        neuron = IntegrateFire(self.total, len(shape))
        neuron.set(one, torch.zeros_like(one), None if bias is None else by_channel(bias))
        self.values[name] = self._fires(self.header["neurons"][name], neuron, self.values[source])

    def _fires(self, name: str, neuron: IntegrateFire, value: str) -> str:
        """Neurons, apart from those behind them that pass the clock on."""
        channels, relay = self.graph.shape(value)[0], self.header["relay"]
        own = int(relay.get(name, channels)) if relay else channels
        if own == channels:
            return self._append(name, neuron, value)
        parts = []
        for part, cells, first, end in ((name, neuron, 0, own), (f"{name}_clock", clone(neuron), own, channels)):
            current = self._append(f"{part}_current", Slice(1, first, end), value)
            parts.append(self._append(part, cells, current))
        return self._append(f"{name}_and_clock", Concat(1), *parts)

    def _output(self, sources: list[str]) -> None:
        value, wanted = self._sum("output", sources), _shape(self.header["output_shape"])
        reshaped = self.graph.shape(value) != wanted
        self.graph.output = self._append("output_shape", Reshape(wanted), value) if reshaped else value

    def _sum(self, name: str, sources: list[str]) -> str:
        """The sum of what several nodes give, in the order of the file."""
        values = [self.values[source] for source in sources]
        if len(values) == 1:
            return values[0]
        # Not below the name of a neuron, which must stay free for the neuron.
        return self._append(f"{name.replace('.', '_')}_sum", Sum([1.0] * len(values)), *values)

    def _append(self, name: str, module: nn.Module, *inputs: str) -> str:
        given = [torch.empty(2, *self.graph.shape(value), dtype=self.dtype, device="meta") for value in inputs]
        on_meta = rebuild(describe(module), {key: tensor.to("meta") for key, tensor in module.state_dict().items()})
        return self.graph.append(Node(name, module.eval(), inputs, tuple(on_meta(*given).shape[1:])))


def _of_the_image(module: nn.Conv1d | nn.Conv2d | nn.Linear, image: int) -> nn.Module:
    """A layer without its weights for the clock."""
    weight = module.weight[:, :image].clone()
    text = describe(module) | ({"in_features": image} if isinstance(module, nn.Linear) else {"in_channels": image})
    return rebuild(text, {"weight": weight, **({} if module.bias is None else {"bias": module.bias.detach()})})


def _shape(sizes: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in sizes)
