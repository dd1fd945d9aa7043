"""The clean graph: a list of operations in order, each an nn.Module with named inputs. No code, only data.

Unlike a `torch.fx.GraphModule` it holds no generated Python, so that it can be saved, read and run without
executing anything from the file, and each engine can walk it in its own way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ftbc.graph.ops import Synapses
from ftbc.graph.precision import run_synapse

INPUT = "input"
Shape = tuple[int, ...]


@dataclass
class Node:
    """One operation: ``name = module(*inputs)``; ``shape`` is that of one item of its output, without batch."""

    name: str
    module: nn.Module
    inputs: tuple[str, ...]
    shape: Shape
    source: str = ""

    @property
    def place(self) -> str:
        """How messages name this node, such as ``'layer1.0.conv1' (Conv2d, model.py:41)``."""
        where = f", {self.source}" if self.source else ""
        return f"'{self.name}' ({type(self.module).__name__}{where})"

    def run(self, *inputs: Tensor) -> Tensor:
        """What the module gives, computed in the memory layout that its weights have (see `graph/layout.py`)."""
        if isinstance(self.module, nn.Conv2d) and not channels_last(self.module.weight):
            inputs = tuple(x.contiguous() for x in inputs)  # else torch would take the layout of the input
        return run_synapse(self.module, *inputs) if isinstance(self.module, Synapses) else self.module(*inputs)


class Graph(nn.Module):
    """Nodes in an order in which each follows its inputs; ``output`` names the value that is returned.

    Parameters keep the names they have in the user's model: ``graph.state_dict()["layer1.0.conv1.weight"]``.
    """

    def __init__(self, input_shape: Shape) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.output = INPUT
        self.nodes: dict[str, Node] = {}

    def __setattr__(self, name: str, value: object) -> None:
        # A layer of the user may be called "output"; nn.Module would not let the graph's own attribute change then.
        if name in ("input_shape", "output", "nodes"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    # ---- reading -----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def shape(self, name: str) -> Shape:
        """Shape of one item of a value, the input included."""
        return self.input_shape if name == INPUT else self.nodes[name].shape

    def users(self, name: str) -> list[Node]:
        """The nodes that read a value."""
        return [node for node in self if name in node.inputs]

    def of_type(self, *types: type[nn.Module]) -> list[Node]:
        """The nodes whose module is of one of the types, in order."""
        return [node for node in self if isinstance(node.module, types)]

    def tensors(self) -> list[Tensor]:
        """The parameters and buffers of all nodes: the values of `state_dict`, many times faster."""
        found = []
        for node in self:
            module = node.module
            kept = [value for name, value in module._buffers.items() if name not in module._non_persistent_buffers_set]
            found += [value for value in (*module._parameters.values(), *kept) if value is not None]
        return found

    def released_after(self) -> dict[str, list[str]]:
        """For each node, the values that nobody reads after it has run."""
        last = {value: node.name for node in self for value in node.inputs}
        released: dict[str, list[str]] = {}
        for value, reader in last.items():
            if value != self.output:
                released.setdefault(reader, []).append(value)
        return released

    # ---- running as an ANN -------------------------------------------------------------------------------

    def forward(self, x: Tensor, observe: Callable[[Node, Tensor], None] | None = None) -> Tensor:
        """Run the graph on a batch; ``observe`` sees each node's output as it is made."""
        values = {INPUT: x}
        released = self.released_after()
        for node in self:
            value = node.run(*[values[name] for name in node.inputs])
            if observe is not None:
                observe(node, value)
            values[node.name] = value
            for name in released.get(node.name, ()):
                del values[name]
        return values[self.output]

    # ---- editing -----------------------------------------------------------------------------------------

    def append(self, node: Node) -> str:
        """Add a node at the end, under a name made unique, and return that name."""
        node.name = self.free_name(node.name)
        self.nodes[node.name] = node
        self._attach(node)
        return node.name

    def insert_before(self, reader: str, node: Node) -> str:
        """Add a node just before another; the caller rewires inputs."""
        following = list(self.nodes)[list(self.nodes).index(reader) :]
        name = self.append(node)
        for other in following:
            self.nodes[other] = self.nodes.pop(other)
        return name

    def insert_after(self, name: str, node: Node) -> str:
        """Add a node just behind another (or first, behind the input)."""
        order = list(self.nodes)
        position = 0 if name == INPUT else order.index(name) + 1
        return self.append(node) if position == len(order) else self.insert_before(order[position], node)

    def replace_module(self, name: str, module: nn.Module) -> None:
        """Put another module in the place of a node's."""
        self.nodes[name].module = module
        self._attach(self.nodes[name])

    def rewire(self, old: str, new: str, readers: Iterable[Node] | None = None) -> None:
        """Let ``readers`` (by default all) read ``new`` wherever they read ``old``."""
        for node in list(self if readers is None else readers):
            node.inputs = tuple(new if value == old else value for value in node.inputs)
        if readers is None and self.output == old:
            self.output = new

    def bypass(self, name: str) -> None:
        """Remove a node with one input; its readers read that input instead."""
        self.rewire(name, self.nodes[name].inputs[0])
        self.discard(name)

    def discard(self, name: str) -> None:
        """Remove a node that nobody reads."""
        del self.nodes[name]
        self._detach(name)

    def prune(self) -> None:
        """Remove every node that the output does not depend on."""
        needed = {self.output}
        for node in reversed(list(self)):
            if node.name in needed:
                needed.update(node.inputs)
        for name in [name for name in self.nodes if name not in needed]:
            self.discard(name)

    def copy(self) -> Graph:
        """A deep copy: parameters and buffers included."""
        return copy.deepcopy(self)

    def free_name(self, wanted: str) -> str:
        """``wanted``, or ``wanted_1`` ... if a node or a container of nodes stands there."""
        path = ""
        *outer, leaf = wanted.split(".")
        for part in outer:
            path = _numbered(path + part, lambda name: name in self.nodes) + "."
        siblings = self._container(path.rstrip("."))._modules  # nodes and containers of nodes
        return path + _numbered(leaf, lambda name: name in siblings or path + name == INPUT)

    # Modules hang in nested containers, so that state_dict keys are the dotted names of the nodes.
    def _attach(self, node: Node) -> None:
        path, _, leaf = node.name.rpartition(".")
        self._container(path)._modules[leaf] = node.module

    def _detach(self, name: str) -> None:
        path, _, leaf = name.rpartition(".")
        siblings = self._container(path)._modules
        del siblings[leaf]
        if path and not siblings:
            self._detach(path)

    def _container(self, path: str) -> nn.Module:
        # Not by get_submodule: a container may bear the name of an attribute or method of nn.Module.
        parent: nn.Module = self
        for part in path.split(".") if path else ():
            parent = parent._modules.setdefault(part, nn.Module())  # type: ignore[assignment]
        return parent


def channels_last(value: Tensor) -> bool:
    """Whether channels lie innermost in memory; also where they might as well."""
    return value.ndim == 4 and value.is_contiguous(memory_format=torch.channels_last)


def _numbered(wanted: str, taken: Callable[[str], bool]) -> str:
    name, count = wanted, 0
    while taken(name):
        count += 1
        name = f"{wanted}_{count}"
    return name
