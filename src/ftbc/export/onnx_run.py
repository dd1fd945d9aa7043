"""ONNX models run by onnxruntime, with their spikes laid open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import FileError, InputError, first_line
from ftbc.export.agreement import Spikes
from ftbc.export.header import header_of, package
from ftbc.export.onnx_sheet import require_onnx
from ftbc.simulate.readout import read

VERSION = 1


def require_runtime() -> Any:
    """The package `onnxruntime`, or an error that says how to get it."""
    return package("onnxruntime", "running ONNX", "onnx")


class OnnxNetwork:
    """A model that `ftbc.export.onnx` wrote, in onnxruntime; the spikes of its layers are made outputs of it."""

    def __init__(self, content: bytes, path: Path) -> None:
        onnx, runtime = require_onnx(), require_runtime()
        try:
            model = onnx.load_model_from_string(content)
            texts = {entry.key: entry.value for entry in model.metadata_props}
        except Exception as error:  # of protobuf, for files that are cut or of something else
            raise FileError(f"'{path}' is not a complete ONNX model ({first_line(error)}): write it again") from error
        if "ftbc" not in texts:
            raise FileError(f"'{path}' is an ONNX model of another program: give one that ftbc export onnx wrote")
        self.header = header_of(texts["ftbc"], path, VERSION)
        self.whole = self.header["form"] == "all steps"
        self.layers: dict[str, list[str]] = self.header["spikes"]
        self.outputs: list[str] = self.header["outputs"]
        self.states: list[tuple[str, str, list[int]]] = self.header["states"]
        self.steps, self.extra = int(self.header["steps"]), int(self.header["extra_steps"])
        readout = self.header["readout"]
        self.readout = None if readout is None else torch.tensor(readout)
        values = [name for names in [self.outputs, *self.layers.values()] for name in names]
        try:
            for name in dict.fromkeys(values):
                model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
            options = runtime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = torch.get_num_threads()
            self.session = runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise FileError(f"onnxruntime cannot load '{path}' ({first_line(error)}): write it again") from error

    def means(self, x: Tensor, outputs: Tensor) -> Tensor:
        """The answers after each step, ``[T, N, ...]``; outputs: those of all steps, for a model of one step."""
        if self.whole:
            return torch.from_numpy(self._run(["mean"], {"x": _array(x)})[0])
        return read(outputs, self.readout)

    def recorded(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        """Yield the output and the spikes of each layer at each step, from rest."""
        return self._all_at_once(x) if self.whole else self._one_by_one(x)

    def _one_by_one(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        values = {"x": _array(x), "t": torch.zeros(1, dtype=torch.int64).numpy()}
        values |= {name: torch.zeros(len(x), *shape).numpy() for name, _, shape in self.states}
        before = ["t", *(name for name, _, _ in self.states)]
        after = ["t_next", *(name for _, name, _ in self.states)]
        spikes = [names[0] for names in self.layers.values()]
        for _ in range(self.extra + self.steps):
            found = self._run(["y", *after, *spikes], values)
            values = {"x": values["x"], **dict(zip(before, found[1 : 1 + len(after)], strict=True))}
            sent = map(torch.from_numpy, found[1 + len(after) :])
            yield torch.from_numpy(found[0]), dict(zip(self.layers, sent, strict=True))

    def _all_at_once(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        names = list(dict.fromkeys([*self.outputs, *(name for names in self.layers.values() for name in names)]))
        found = dict(zip(names, map(torch.from_numpy, self._run(names, {"x": _array(x)})), strict=True))
        for t, output in enumerate(self.outputs):
            yield found[output], {layer: found[names[t]] for layer, names in self.layers.items()}

    def _run(self, outputs: list[str], values: dict[str, Any]) -> list[Any]:
        try:
            return self.session.run(outputs, values)
        except Exception as error:
            raise InputError(f"onnxruntime cannot run the model on this input: {first_line(error)}") from error


def _array(x: Tensor) -> Any:
    return x.detach().float().cpu().contiguous().numpy()
