"""One safetensors file for a spiking network: tensors, and in its header the graph and the recipe as JSON.

Nothing in the file is executed: operations are looked up by name in a fixed table, and sizes are checked against the
tensors before anything is allocated. So a file from a stranger can be wrong, but not harmful.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from ftbc.atomic import replacing
from ftbc.errors import FileError, FtbcError
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.spec import describe, rebuild
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire
from ftbc.recipe import Recipe

VERSION = 1
_KEY = "ftbc"
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")


def save(snn: SpikingNetwork, path: str | Path) -> None:
    """Write a network; an existing file is replaced only once the new one is complete."""
    graph = snn.graph
    header = {
        "version": VERSION,
        "steps": snn.steps,
        "input_shape": graph.input_shape,
        "output": graph.output,
        "nodes": [
            {
                "name": node.name,
                "inputs": node.inputs,
                "shape": node.shape,
                "source": node.source,
                "module": describe(node.module),
            }
            for node in graph
        ],
        "head": None if snn.head is None else describe(snn.head),
        "recipe": snn.recipe.to_dict(),
        "measured": snn.measured,
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in graph.state_dict().items()}
    # Tensors that share storage (tied weights) are written each on its own.
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    with replacing(Path(path)) as file:
        file.write(to_bytes(tensors, metadata={_KEY: json.dumps(header)}))


def load(path: str | Path) -> SpikingNetwork:
    """Read a network that `save` wrote; its outputs are equal to the last bit."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"'{path}' does not exist or is not a file: give a network saved with snn.save")
    header, tensors = _read(path)
    try:
        return _build(header, tensors)
    except FtbcError as error:
        raise FileError(f"'{path}' cannot be loaded: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, RecursionError, OverflowError) as error:
        raise FileError(
            f"'{path}' is damaged: its description of the network makes no sense ({type(error).__name__}: {error})"
        ) from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:  # type: ignore[no-untyped-call]
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise FileError(f"'{path}' is not a complete safetensors file ({error}): save the network again") from error
    if _KEY not in metadata:
        raise FileError(f"'{path}' holds tensors but no spiking network: give a network saved with snn.save")
    try:
        header = json.loads(metadata[_KEY])
        version = header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"'{path}' is damaged: its header cannot be read ({error})") from error
    if version != VERSION:
        raise FileError(f"'{path}' has format version {version!r}, this ftbc reads {VERSION}: use the ftbc that wrote it")
    return header, tensors


def _build(header: dict[str, Any], tensors: dict[str, Tensor]) -> SpikingNetwork:
    graph = Graph(_shape(header["input_shape"]))
    for entry in header["nodes"]:
        name, inputs = entry["name"], tuple(entry["inputs"])
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == INPUT or graph.free_name(name) != name:
            raise FileError(f"{name!r} cannot be the name of an operation")
        if not inputs or any(read != INPUT and read not in graph.nodes for read in inputs):
            raise FileError(f"'{name}' reads {inputs}, which nothing before it gives")
        own = {key.removeprefix(name + "."): tensors[key] for key in list(tensors) if key.rpartition(".")[0] == name}
        for key in own:
            del tensors[f"{name}.{key}"]
        module = rebuild(entry["module"], own)
        graph.append(Node(name, module, inputs, _shape(entry["shape"]), str(entry["source"])))
    if tensors:
        raise FileError(f"tensor '{next(iter(tensors))}' belongs to no operation")
    if header["output"] not in graph.nodes:
        raise FileError(f"its output {header['output']!r} is not an operation")
    graph.output = header["output"]
    steps = header["steps"]
    neurons = [node.module for node in graph.of_type(IntegrateFire)]
    if not isinstance(steps, int) or not neurons or any(n.steps != steps or len(n.bias) != steps for n in neurons):
        raise FileError(f"its neurons are not made for {steps!r} steps")
    head = None if header["head"] is None else rebuild(header["head"], {})
    measured = {str(name): (float(rate), float(error)) for name, (rate, error) in header["measured"].items()}
    return SpikingNetwork(graph, steps, Recipe.from_dict(header["recipe"]), head, measured).eval()


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(size, int) and size >= 0 for size in value):
        raise FileError(f"{value!r} is not a shape")
    return tuple(value)
