"""One safetensors file for a spiking network: tensors, and in its header the graph and the recipe as JSON.

Nothing in the file is executed: operations are looked up by name in a fixed table, and the whole network is built and
run once on the meta device, where tensors have shapes and no memory, before it is built of the file's tensors. So a
file from a stranger can be wrong, but not harmful.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from ftbc.atomic import is_file, replacing
from ftbc.errors import FileError, FtbcError, InputError, first_line
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.spec import describe, rebuild
from ftbc.network import SpikingNetwork
from ftbc.neuron import Spiking, Temporal
from ftbc.neuron.restart import Restarting, RestartingMaxPool
from ftbc.recipe import Recipe
from ftbc.simulate import extra_steps, layerwise
from ftbc.simulate.schedule import together

VERSION = 1
_KEY = "ftbc"
_READOUT = "readout"  # tensors of operations have a dot in their names

# No network comes near these; they keep the time and the numbers of a hostile file small.
_MOST_NODES = 5000
_MOST_LETTERS = 1000
_DEEPEST_NAME = 32
_MOST_DIMENSIONS = 16
_MOST_VALUES = 1 << 31
_ROOM = 1 << 62  # meta tensors take none


def save(snn: SpikingNetwork, path: str | Path) -> None:
    """Write a network; an existing file is replaced only once the new one is complete."""
    graph = snn.graph
    # Copies, because tensors that share storage (tied weights) are written each on its own.
    own = {name: tensor.detach().cpu().clone() for name, tensor in graph.state_dict().items()}
    own |= {} if snn.readout is None else {_READOUT: snn.readout.cpu().clone()}
    tensors = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in own.items()}
    try:
        _require_one_type(tensors)
    except FileError as error:
        raise InputError(f"'{path}' is not written: {error}; save snn.float()") from error
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
        "measured": {name: pair for name, pair in snn.measured.items() if all(map(math.isfinite, pair))},
        # The order in memory (channels last, a transpose) decides in which order torch adds, and so the last bit.
        "strides": {name: own[name].stride() for name in sorted(own) if own[name].stride() != tensors[name].stride()},
    }
    header["checksum"] = _checksum(header, tensors)
    with replacing(Path(path)) as file:
        file.write(to_bytes(tensors, metadata={_KEY: json.dumps(header)}))


@torch.inference_mode(False)
def load(path: str | Path) -> SpikingNetwork:
    """Read a network that `save` wrote; its outputs are equal to the last bit."""
    path = Path(path)
    if not is_file(path):
        raise FileError(f"'{path}' does not exist or is not a file: give a network saved with snn.save")
    header, tensors = _read(path)
    try:
        _dry_run(_build(header, {name: tensor.to("meta") for name, tensor in tensors.items()}))
        return _build(header, {name: _in_order(header, name, tensor) for name, tensor in tensors.items()})
    except FtbcError as error:
        raise FileError(f"'{path}' cannot be loaded: {first_line(error)}") from error
    except Exception as error:  # a damaged description makes torch and Python raise nearly anything
        raise FileError(
            f"'{path}' is damaged: its description of the network makes no sense "
            f"({type(error).__name__}: {first_line(error)})"
        ) from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:  # type: ignore[no-untyped-call]
            metadata = file.metadata() or {}
            # Copies: the tensors are views of the file, and would change with it or crash when it is cut.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # of safetensors, of the file system, or of torch for a type of tensor it lacks
        raise FileError(
            f"'{path}' is not a complete safetensors file ({first_line(error)}): save the network again"
        ) from error
    if _KEY not in metadata:
        raise FileError(f"'{path}' holds tensors but no spiking network: give a network saved with snn.save")
    try:
        header = json.loads(metadata[_KEY], parse_constant=_constant)
        version = header["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"'{path}' is damaged: its header cannot be read ({first_line(error)})") from error
    if type(version) is not int or version != VERSION:
        raise FileError(
            f"'{path}' has format version {version!r:.20}, this ftbc reads {VERSION}: use the ftbc that wrote it"
        )
    # A bit that has changed in a weight would only make a network that is a little, or very, wrong.
    checksum = header.pop("checksum", None)
    if checksum is not None and checksum != _checksum(header, tensors):
        raise FileError(f"'{path}' is damaged: its content does not fit its checksum; save the network again")
    return header, tensors


def _checksum(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """Of all that a file holds; header: without the checksum."""
    total = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(tensors):
        total.update(f"{name} {list(tensors[name].shape)}".encode(errors="surrogatepass"))
        total.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def _require_one_type(tensors: dict[str, Tensor]) -> None:
    types = {tensor.dtype for tensor in tensors.values()}
    if types - {torch.float32, torch.float64}:
        raise FileError("it holds tensors that are neither float32 nor float64")
    if len(types) > 1:
        raise FileError("it mixes tensors of float32 and float64")


def _build(header: dict[str, Any], tensors: dict[str, Tensor]) -> SpikingNetwork:
    _require_one_type(tensors)
    by_node: dict[str, dict[str, Tensor]] = {}
    readout = tensors.get(_READOUT)
    for key, tensor in tensors.items():
        if key == _READOUT:
            continue
        name, _, own = key.rpartition(".")
        by_node.setdefault(name, {})[own] = tensor

    graph = Graph(_shape(header["input_shape"]))
    if len(header["nodes"]) > _MOST_NODES:
        raise FileError(f"it has {len(header['nodes'])} operations, more than {_MOST_NODES}")
    containers: set[str] = set()
    for entry in header["nodes"]:
        name, inputs = _new_name(entry["name"], graph, containers), tuple(entry["inputs"])
        if not inputs or any(read != INPUT and read not in graph.nodes for read in inputs):
            raise FileError(f"'{name}' reads {inputs!r:.80}, which nothing before it gives")
        _check_dimensions(entry["module"], max(len(graph.shape(read)) for read in inputs))
        module = rebuild(entry["module"], by_node.pop(name, {}))
        graph.nodes[name] = Node(name, module, inputs, _shape(entry["shape"]), _text(entry["source"]))
        graph.replace_module(name, module)  # hangs it into the tree; `append` would search for a free name
    if by_node:
        raise FileError(f"tensors of {next(iter(by_node))!r:.80} belong to no operation")
    if header["output"] not in graph.nodes:
        raise FileError(f"its output {header['output']!r:.80} is not an operation")
    graph.output = header["output"]

    steps = header["steps"]
    _check_neurons(graph, steps, readout)
    head = None
    if header["head"] is not None:
        _check_dimensions(header["head"], len(graph.shape(graph.output)))
        head = rebuild(header["head"], {})
    if isinstance(head, Temporal):
        raise FileError(f"an operation {type(head).__name__} cannot follow the averaged output")
    recipe = Recipe.from_dict({**header["recipe"]}, elsewhere=True)
    for text in (recipe.name, recipe.summary):
        _text(text)
    measured = {_text(name): (float(rate), float(error)) for name, (rate, error) in header["measured"].items()}
    return SpikingNetwork(graph, steps, recipe, head, measured, readout).eval()


def _in_order(header: dict[str, Any], name: str, tensor: Tensor) -> Tensor:
    """A tensor in the memory order it had when it was saved."""
    strides = header["strides"].get(name)
    if strides is None:
        return tensor
    within = all(type(stride) is int and stride >= 0 for stride in strides)
    if not within or sum((n - 1) * stride for n, stride in zip(tensor.shape, strides, strict=True)) >= tensor.numel():
        raise FileError(f"tensor {name!r:.80} cannot have the strides {strides!r:.80}")
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


def _check_dimensions(description: dict[str, Any], rank: int) -> None:
    """Refuse dimensions that inputs of this rank (without the batch) do not have: some modules count up to them."""
    dims = [description.get("dim", 0), *description.get("dims", ())]
    if not all(type(dim) is int and 0 <= dim <= rank for dim in dims):
        raise FileError(f"there are no dimensions {dims!r:.80} among {rank + 1}")


def _check_neurons(graph: Graph, steps: Any, readout: Tensor | None) -> None:
    neurons = graph.of_type(Spiking)
    if type(steps) is not int or not neurons:
        raise FileError(f"it has {len(neurons)} layers of neurons for {steps!r:.20} steps")
    if readout is not None and (readout.ndim != 2 or not 1 <= readout.shape[0] == steps <= readout.shape[1]):
        raise FileError(f"its readout of {list(readout.shape)} does not fit {steps} steps")
    extra = extra_steps(readout)
    steps += extra
    for node in neurons:
        neuron, grains = node.module, ((1,), node.shape[:1], node.shape)
        assert isinstance(neuron, Spiking)
        if type(neuron.steps) is not int or neuron.steps != steps or len(neuron.bias) != neuron.rows:
            raise FileError(f"the neurons '{node.name}' are not made for {steps} steps")
        if neuron.rank != len(node.shape):
            raise FileError(f"the neurons '{node.name}' do not fit their shape {list(node.shape)}")
        others = [buffer.shape for name, buffer in neuron.named_buffers() if name != "bias"]
        constants = [*others, neuron.bias.shape[1:]]
        if any(tuple(shape) not in grains for shape in constants):
            raise FileError(f"the constants of the neurons '{node.name}' do not fit their shape {list(node.shape)}")
    for node in graph.of_type(Restarting, RestartingMaxPool):
        if type(node.module.extra) is not int or not 1 <= node.module.extra <= extra:
            raise FileError(f"'{node.name}' begins anew after {node.module.extra!r:.20} of {extra} extra steps")


def _dry_run(snn: SpikingNetwork) -> None:
    """Run a network of meta tensors for as few steps as it takes: each operation must give its shape."""
    images = 3

    def compare(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if tuple(output.shape[1:]) != (images, *node.shape):
            raise FileError(f"{node.place} gives {list(output.shape)[2:]}, not {list(node.shape)} as described")

    weight = next(iter(snn.graph.state_dict().values()))
    x = torch.empty(images, *snn.graph.input_shape, dtype=weight.dtype, device="meta")
    with torch.no_grad():
        output = layerwise(snn.graph, x, together(snn.graph), observe=compare, room=_ROOM)
        if snn.head is not None:
            snn.head(output[0])


def _new_name(value: Any, graph: Graph, containers: set[str]) -> str:
    """A name as torch allows for modules, that is not taken, and not inside or around another operation's."""
    name = _text(value)
    parts = name.split(".")
    around = {".".join(parts[:count]) for count in range(1, min(len(parts), _DEEPEST_NAME))}
    taken = name == INPUT or name in containers or not graph.nodes.keys().isdisjoint({name, *around})
    if taken or not all(parts) or len(parts) > _DEEPEST_NAME:
        raise FileError(f"{name!r:.80} cannot be the name of an operation")
    containers |= around
    return name


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > _MOST_LETTERS:
        raise FileError(f"{value!r:.80} is not a plain text")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    sizes = isinstance(value, list) and len(value) <= _MOST_DIMENSIONS and all(type(s) is int and s > 0 for s in value)
    if not sizes or math.prod(value) > _MOST_VALUES:
        raise FileError(f"{value!r:.80} is not a shape")
    return tuple(value)


def _constant(text: str) -> float:
    if text == "NaN":
        raise ValueError("NaN is not a setting")
    return float(text)
