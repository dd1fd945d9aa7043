"""The nodes and constants of an ONNX model as they are added, and how many of each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count
from typing import Any

import numpy as np
from torch import Tensor

from ftbc.export.header import package

OPSET = 17
IR_VERSION = 8
"""What onnxruntime 1.13 of 2022 reads already, and all programs since."""
BATCH = "N"


def require_onnx() -> Any:
    """The package `onnx` with its helpers, or an error that says how to get it."""
    for name in ("onnx.helper", "onnx.numpy_helper"):
        package(name, "ONNX", "onnx")
    return package("onnx", "ONNX", "onnx")


class Sheet:
    """An ONNX graph in the making; floating numbers are float32, which runtimes have all operations for.

    outputs: the names that `gives` will ask for, so that no layer of a network takes one of them.
    """

    def __init__(self, outputs: Iterable[str]) -> None:
        self.onnx = require_onnx()
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._names = set(outputs)

    def constant(self, name: str, values: Any) -> str:
        """Numbers that are part of the model; asked for again under the same name they are kept once."""
        if name not in self.constants:
            unique = self._unique(name)
            array = values.detach().cpu().contiguous().numpy() if isinstance(values, Tensor) else np.asarray(values)
            array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
            self.constants[name] = self.onnx.numpy_helper.from_array(array, unique)
        return str(self.constants[name].name)

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operation that gives the value ``output``, made unique, and return that name."""
        name = self._unique(output)
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def takes(self, name: str, shape: tuple[Any, ...], whole: bool = False) -> str:
        """Add an input of the model."""
        self.inputs.append(self._info(name, shape, whole))
        self._names.add(name)
        return name

    def gives(self, value: str, name: str, shape: tuple[Any, ...], whole: bool = False) -> None:
        """Make a value an output of the model, under a name that was kept for it."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(self._info(name, shape, whole))

    def to_bytes(self, description: str, header: str) -> bytes:
        """The checked model."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "ftbc", self.inputs, self.outputs, list(self.constants.values()))
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="ftbc",
            doc_string=description,
        )  # fmt: skip
        helper.set_model_props(model, {"ftbc": header})
        self.onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()

    def _unique(self, name: str) -> str:
        """The name, or one like it that nothing in the model has, kept for who asks."""
        unique = next(new for new in chain([name], (f"{name}~{i}" for i in count(1))) if new not in self._names)
        self._names.add(unique)
        return unique

    def _info(self, name: str, shape: tuple[Any, ...], whole: bool) -> Any:
        kind = self.onnx.TensorProto.INT64 if whole else self.onnx.TensorProto.FLOAT
        return self.onnx.helper.make_tensor_value_info(name, kind, list(shape))
