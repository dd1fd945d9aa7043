"""`ftbc.export.onnx`: a network as an ONNX model, which onnxruntime runs before it is put in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ftbc.atomic import replacing, require_ending, require_writable
from ftbc.export.agreement import Agreement, agreement, recorded
from ftbc.export.onnx_model import all_steps, description, one_step
from ftbc.export.onnx_run import VERSION, OnnxNetwork, require_runtime
from ftbc.export.onnx_sheet import OPSET, require_onnx
from ftbc.export.rewrite import require_plain
from ftbc.export.sample import require_network, sample
from ftbc.network import SpikingNetwork


@dataclass(frozen=True)
class OnnxReport:
    """How faithful an ONNX model is: what onnxruntime found; difference: the largest of an output, relative to it."""

    path: str
    form: str
    bytes: int
    operations: int
    agreement: Agreement
    checked_on: str
    opset: int = OPSET
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.path}: ONNX, opset {self.opset}, {self.form}, {self.operations} operations, "
                f"{self.bytes / 1e6:.2f} MB",
                f"run by onnxruntime on {self.checked_on}: {self.agreement}; outputs differ by "
                f"{self.agreement.largest:.1e} at most",
                *self.notes,
            ]
        )


@torch.no_grad()
def onnx(
    snn: SpikingNetwork, path: str | Path, *, all_at_once: bool = False, images: Tensor | None = None
) -> OnnxReport:
    """Write a network as an ONNX model and say how faithful it is.

    By default the model is one step, ``(x, t, state) -> (y, t, state)``, whose state is zero at the start. all_at_once:
    all T steps, ``x -> means [T, N, ...]``, what ``snn(x)`` gives, in plain operations. The number of images is free;
    numbers are float32. images: ``[N, ...]``, on which the model is run before it is called done; by default noise.
    """
    require_onnx()
    require_runtime()
    require_network(snn)
    path = Path(path)
    require_writable(path)
    require_ending(path, ".onnx")
    require_plain(snn, "ONNX")
    drawn = all_steps(snn) if all_at_once else one_step(snn)
    header = {"version": VERSION, **description(snn, drawn, all_at_once)}
    content = drawn.sheet.to_bytes(_in_words(snn, all_at_once), json.dumps(header))
    x, checked_on = sample(snn, images)
    found = agreement(recorded(snn.graph, x, snn.extra_steps + snn.steps), OnnxNetwork(content, path).recorded(x))
    with replacing(path) as file:
        file.write(content)
    return OnnxReport(
        str(path),
        header["form"],
        len(content),
        len(drawn.sheet.nodes),
        found,
        checked_on,
        notes=tuple(_notes(snn, all_at_once)),
    )


def _in_words(snn: SpikingNetwork, all_at_once: bool) -> str:
    if all_at_once:
        return f"x [N, ...] -> mean [{snn.steps}, N, ...]: entry t is the mean output of the first t + 1 steps"
    return "One time step. Begin with t = 0 and every state zero; feed each *_next back. y is the output of this step."


def _notes(snn: SpikingNetwork, all_at_once: bool) -> list[str]:
    if all_at_once:
        return []
    found = []
    if snn.readout is not None:
        found.append("the network weighs its steps: the matrix is in the model's metadata, and the caller's to apply")
    if snn.head is not None:
        found.append(f"the model ends before the network's {type(snn.head).__name__}, which the caller is to apply")
    return found
