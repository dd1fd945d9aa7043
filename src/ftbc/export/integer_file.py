"""Integers in an .npz file: arrays by the names of layers, and a description as JSON, in it and beside it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ftbc.atomic import replacing
from ftbc.errors import FileError, FtbcError, first_line
from ftbc.export.header import header_of
from ftbc.export.integer import IntegerNetwork
from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Affine, Synapses
from ftbc.graph.spec import describe, rebuild
from ftbc.measure.operations import fan_out
from ftbc.neuron import IntegrateFire

VERSION = 1
_DESCRIPTION = "description"


def write(network: IntegerNetwork, path: Path, bits: int, more: dict[str, Any]) -> int:
    """Write both files, each whole or not at all; the number of bytes of the arrays."""
    arrays = {
        f"{node.name}.{name}": _smallest(tensor)
        for node in network.graph
        for name, tensor in node.module.state_dict().items()
    }
    text = json.dumps({**_description(network, bits), **more}, indent=1, allow_nan=False)
    content = io.BytesIO()
    arrays[_DESCRIPTION] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    with replacing(path.with_suffix(".json")) as file, replacing(path) as numbers:
        file.write(text.encode() + b"\n")
        numbers.write(content.getvalue())
    return len(content.getvalue())


def read_integers(path: str | Path) -> tuple[IntegerNetwork, dict[str, Any]]:
    """The network of a file, and its description."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # of zip, of numpy, of the file system
        raise FileError(f"'{path}' is not a complete .npz file ({first_line(error)}): write it again") from error
    if _DESCRIPTION not in arrays:
        raise FileError(f"'{path}' holds arrays of something else: give a file that ftbc export weights wrote")
    raw = arrays.pop(_DESCRIPTION)
    text = header_of(raw.tobytes() if isinstance(raw, np.ndarray) else raw, path, VERSION)
    try:
        return _network(text, arrays), text
    except FtbcError as error:
        raise FileError(f"'{path}' cannot be read: {first_line(error)}") from error
    except Exception as error:  # a damaged description makes torch and Python raise nearly anything
        raise FileError(
            f"'{path}' is damaged: its description makes no sense ({type(error).__name__}: {first_line(error)})"
        ) from error


def _description(network: IntegerNetwork, bits: int) -> dict[str, Any]:
    graph = network.graph
    return {
        "version": VERSION,
        "bits": bits,
        "steps": network.steps,
        "extra_steps": network.extra_steps,
        "numbers": str(graph.tensors()[0].dtype).removeprefix("torch."),
        "input": {"shape": graph.input_shape, "scale": network.image},
        "output": {"name": graph.output, "scale": network.output.tolist()},
        "readout": None if network.readout is None else network.readout.tolist(),
        "head": None if network.head is None else describe(network.head),
        "nodes": [
            {"name": node.name, "inputs": node.inputs, "shape": node.shape, "module": describe(node.module)}
            for node in graph
        ],
        "layers": [_layer(node, network) for node in graph.of_type(IntegrateFire)],
        "synapses": [_synapses(node, graph) for node in graph.of_type(*Synapses, Affine)],
    }


def _layer(node: Node, network: IntegerNetwork) -> dict[str, Any]:
    neuron = node.module
    assert isinstance(neuron, IntegrateFire)
    scale = network.scales[node.name]
    return {
        "name": node.name,
        "neurons": int(np.prod(node.shape)),
        "scale": scale.tolist(),
        "threshold": sorted({int(value) for value in neuron.threshold.reshape(-1).tolist()}),
        "largest_bias": int(neuron.bias.abs().max()),
    }


def _synapses(node: Node, graph: Graph) -> dict[str, Any]:
    """How many synapses a layer of weights has, and how many of them begin at one neuron."""
    reached = torch.ones(1) if isinstance(node.module, Affine) else fan_out(node, graph.shape(node.inputs[0]))
    weight = node.module.scale if isinstance(node.module, Affine) else node.module.weight
    total = int(np.prod(node.shape)) if isinstance(node.module, Affine) else int(reached.sum())
    return {
        "name": node.name,
        "reads": node.inputs[0],
        "weights": weight.numel(),  # type: ignore[union-attr, operator]
        "largest_weight": int(weight.abs().max()),  # type: ignore[union-attr, operator, arg-type]
        "synapses": total,
        "fan_out": {"largest": int(reached.max()), "mean": float(reached.double().mean())},
    }


def _network(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> IntegerNetwork:
    dtype = {"float32": torch.float32, "float64": torch.float64}[text["numbers"]]
    graph = Graph(tuple(text["input"]["shape"]))
    for entry in text["nodes"]:
        name, inputs = entry["name"], tuple(entry["inputs"])
        if any(read != INPUT and read not in graph.nodes for read in inputs):
            raise FileError(f"{name!r:.80} reads what nothing before it gives")
        own = {key.removeprefix(f"{name}."): key for key in arrays if key.rpartition(".")[0] == name}
        tensors = {part: torch.from_numpy(arrays[key]).to(dtype) for part, key in own.items()}
        graph.append(Node(name, rebuild(entry["module"], tensors), inputs, tuple(entry["shape"])))
    graph.output = text["output"]["name"]
    if graph.output not in graph.nodes:
        raise FileError(f"its output {graph.output!r:.80} is not an operation")
    readout, head = text["readout"], text["head"]
    return IntegerNetwork(
        graph,
        int(text["steps"]),
        {entry["name"]: torch.tensor(entry["scale"], dtype=torch.float64) for entry in text["layers"]},
        float(text["input"]["scale"]),
        torch.tensor(text["output"]["scale"], dtype=torch.float64),
        None if readout is None else torch.tensor(readout, dtype=torch.get_default_dtype()),
        None if head is None else rebuild(head, {}),
    )


def _smallest(tensor: Tensor) -> np.ndarray:
    """Whole numbers in the smallest type that holds them."""
    values = tensor.detach().double().numpy()
    for kind in (np.int8, np.int16, np.int32, np.int64):
        if np.abs(values).max(initial=0) <= np.iinfo(kind).max:
            return values.astype(kind)
    raise FileError(f"a number of {np.abs(values).max():.3g} does not fit 64 bits")
