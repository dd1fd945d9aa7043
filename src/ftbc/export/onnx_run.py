"""ONNX models run by onnxruntime, with their spikes laid open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import FileError, InputError, MissingExtraError, first_line
from ftbc.export.agreement import Spikes
from ftbc.export.onnx_sheet import BATCH, OPSET, require_onnx
from ftbc.simulate.readout import read

VERSION = 1


def require_runtime() -> Any:
    """The package `onnxruntime`, or an error that says how to get it."""
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise MissingExtraError("onnxruntime", "running ONNX", "onnx") from error
    return onnxruntime


class OnnxNetwork:
    """A model that `ftbc.export.onnx` wrote, in onnxruntime.

    spikes: also give the spikes of each layer, for which they are made outputs of the model.
    """

    def __init__(self, content: bytes, path: Path, spikes: bool = False) -> None:
        onnx, runtime = require_onnx(), require_runtime()
        try:
            model = onnx.load_model_from_string(content)
            texts = {entry.key: entry.value for entry in model.metadata_props}
        except Exception as error:  # of protobuf, for files that are cut or of something else
            raise FileError(f"'{path}' is not a complete ONNX model ({first_line(error)}): write it again") from error
        self.header = _header(texts.get("ftbc"), path)
        self.layers: dict[str, list[str]] = self.header["spikes"] if spikes else {}
        try:
            for values in self.layers.values():
                for value in values:
                    model.graph.output.append(onnx.helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None))
            options = runtime.SessionOptions()
            options.log_severity_level = 3
            self.session = runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise FileError(f"onnxruntime cannot load '{path}' ({first_line(error)}): write it again") from error
        self.steps, self.extra = int(self.header["steps"]), int(self.header["extra_steps"])
        readout = self.header["readout"]
        self.readout = None if readout is None else torch.tensor(readout)
        self.whole = self.header["form"] == "all steps"

    def run(self, x: Tensor) -> Tensor:
        """The mean output after each step, ``[T, N, ...]``; before the head, for the model of one step."""
        if self.whole:
            return torch.from_numpy(self._run({"x": _array(x)}, ["mean"])[0])
        return read(torch.stack([output for output, _ in self.recorded(x)]), self.readout)

    def recorded(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        """Yield the output and the spikes at each step; the model of all steps gives the last mean as its output."""
        if self.whole:
            yield from self._all_at_once(x)
            return
        states = {entry[0]: torch.zeros(len(x), *entry[2]).numpy() for entry in self.header["states"]}
        values = {"x": _array(x), "t": torch.zeros(1, dtype=torch.int64).numpy(), **states}
        after = ["t_next", *(entry[1] for entry in self.header["states"])]
        for _ in range(self.extra + self.steps):
            names = [name for values in self.layers.values() for name in values]
            output, *found = self._run(values, ["y", *after, *names])
            values = {"x": values["x"], **dict(zip(["t", *states], found[: len(after)], strict=True))}
            spikes = dict(zip(self.layers, map(torch.from_numpy, found[len(after) :]), strict=True))
            yield torch.from_numpy(output), spikes

    def _all_at_once(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        names = [name for values in self.layers.values() for name in values]
        _, *found = self._run({"x": _array(x)}, ["mean", *names])
        by_name = dict(zip(names, map(torch.from_numpy, found), strict=True))
        for t in range(self.extra + self.steps):
            yield x.new_zeros(len(x), 1), {layer: by_name[values[t]] for layer, values in self.layers.items()}

    def _run(self, values: dict[str, Any], outputs: list[str]) -> list[Any]:
        try:
            return self.session.run(outputs, values)
        except Exception as error:
            raise InputError(f"onnxruntime cannot run the model on this input: {first_line(error)}") from error


def _header(text: str | None, path: Path) -> dict[str, Any]:
    if text is None:
        raise FileError(f"'{path}' is an ONNX model of another program: give one that ftbc export onnx wrote")
    try:
        header = json.loads(text)
        version = header["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"'{path}' is damaged: its header cannot be read ({first_line(error)})") from error
    if version != VERSION:
        raise FileError(
            f"'{path}' has format version {version!r:.20}, this ftbc reads {VERSION}: use the ftbc that wrote it"
        )
    return header


def _array(x: Tensor) -> Any:
    return x.detach().float().cpu().contiguous().numpy()
