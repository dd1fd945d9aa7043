"""The ANN in ONNX Runtime, in float32 and quantised to int8 (static, per channel, calibrated on the images)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.rivals.task import Offer, Task, in_batches, sizes

BATCHES = (1, 8, 64)


def offers(task: Task) -> tuple[dict[str, Offer], dict[str, str]]:
    """Both, in batches of several sizes."""
    runtime, quantization = importlib.import_module("onnxruntime"), importlib.import_module("onnxruntime.quantization")
    prepare = importlib.import_module("onnxruntime.quantization.shape_inference").quant_pre_process
    paths = {name: task.folder / f"{name}.onnx" for name in ("float32", "prepared", "int8")}
    with torch.no_grad():
        torch.onnx.export(
            task.ann, (task.images[:2],), paths["float32"], dynamo=True, dynamic_shapes=({0: "n"},), input_names=["x"]
        )
    prepare(str(paths["float32"]), str(paths["prepared"]))
    quantization.quantize_static(
        str(paths["prepared"]),
        str(paths["int8"]),
        _reader(quantization.CalibrationDataReader, task.images),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    found = {}
    for numbers in ("float32", "int8"):
        run = _session(runtime, paths[numbers], task.threads)
        for batch in sizes(BATCHES, task.images):
            found[f"ANN, ONNX Runtime {numbers}, batch {batch}"] = in_batches(run, task.images, batch)
    return found, {"onnxruntime": runtime.__version__, "torch": str(torch.__version__)}


def _session(runtime: Any, path: Path, threads: int):  # type: ignore[no-untyped-def]
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(x: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {"x": x.numpy()})[0])

    return run


def _reader(base: type, images: Tensor):  # type: ignore[no-untyped-def]
    class Reader(base):
        """The images, once."""

        def __init__(self) -> None:
            self.parts = iter(images.split(8))

        def get_next(self) -> dict[str, Any] | None:
            part = next(self.parts, None)
            return None if part is None else {"x": part.numpy()}

    return Reader()
