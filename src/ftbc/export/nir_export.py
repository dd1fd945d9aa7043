"""`ftbc.export.nir`: a network as a NIR file, which is read back and run before it is put in its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ftbc.atomic import replacing, require_ending, require_writable
from ftbc.errors import RecipeError
from ftbc.export.agreement import Agreement, agreement, recorded
from ftbc.export.dialect import Dialect, dialect_named
from ftbc.export.nir_draw import Drawing
from ftbc.export.nir_file import require_nir, to_bytes
from ftbc.export.nir_read import network_of
from ftbc.export.relay import relayed
from ftbc.export.rewrite import fully_convolutional, in_units, mean_bias, pads_into_weights, require_plain, windows
from ftbc.export.sample import require_network, sample
from ftbc.graph.ir import Graph
from ftbc.graph.spec import describe
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire

BIASES = ("clock", "mean")


@dataclass(frozen=True)
class NirReport:
    """How faithful a NIR file is: what was found when it was read back and run.

    lost: with bias="mean", how much of b[t] the mean leaves out, in thresholds, by layer; checked_on: which images.
    """

    path: str
    dialect: str
    bias: str
    bytes: int
    nodes: int
    agreement: Agreement
    checked_on: str
    lost: dict[str, float]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.path}: NIR, dialect {self.dialect}, {self.nodes} nodes, {self.bytes / 1e6:.2f} MB"]
        lines += [f"read back and run on {self.checked_on}: {self.agreement}"]
        return "\n".join([*lines, *self.notes])


@torch.no_grad()
def nir(
    snn: SpikingNetwork,
    path: str | Path,
    *,
    dialect: str = "nir",
    bias: str = "clock",
    images: Tensor | None = None,
) -> NirReport:
    """Write a network as a NIR file and say how faithful it is.

    dialect: for which program, see `DIALECTS`; the default has NIR's own words for every neuron. bias: "clock" carries
    b[t] exactly, by T more input channels; "mean" puts the mean over time in its place, which loses accuracy. images:
    ``[N, ...]``, on which the file is run before it is called done; by default noise. Thresholds are scaled to 1. The
    file gives the output of single steps; means over time, or the network's readout, are the reader's to take.

    """
    package, words = require_nir(), dialect_named(dialect)
    require_network(snn)
    if bias not in BIASES:
        raise RecipeError(f"bias={bias!r:.40}: choose 'clock' (exact) or 'mean' (without time, and so less accurate)")
    path = Path(path)
    require_writable(path)
    require_ending(path, ".nir")
    require_plain(snn, "NIR")
    graph, lost = _prepared(snn, words, bias)
    steps = snn.extra_steps + snn.steps
    relay = bias == "clock" and not words.joins
    if relay:
        graph = relayed(graph, steps, words.name)
    drawing = Drawing(graph, words, clock=steps if bias == "clock" and not relay else 0, nir=package)
    content = to_bytes(drawing.words.nodes, drawing.words.edges, _header(snn, drawing, words, relay), words.old)
    back = network_of(content, path)
    x, checked_on = sample(snn, images)
    found = agreement(recorded(snn.graph, x, steps), recorded(back.graph.to(x.device), x, steps))
    with replacing(path) as file:
        file.write(content)
    notes = tuple(_notes(snn, words, drawing, bias, lost))
    return NirReport(str(path), dialect, bias, len(content), len(drawing.words.nodes), found, checked_on, lost, notes)


def _prepared(snn: SpikingNetwork, words: Dialect, bias: str) -> tuple[Graph, dict[str, float]]:
    graph = in_units(snn, sum_pools=not words.averages)
    windows(graph)
    pads_into_weights(graph)
    lost = mean_bias(graph) if bias == "mean" else {}
    relay = bias == "clock" and not words.joins  # the clock passes channels, not features
    if (relay or not words.flattens) and len(graph.input_shape) > 1:
        fully_convolutional(graph)
    return graph, lost


def _header(snn: SpikingNetwork, drawing: Drawing, words: Dialect, relay: bool) -> dict[str, Any]:
    """What NIR has no place for; the numbers and the wiring are in the nodes and edges alone."""
    return {
        "dialect": words.name,
        "dt": words.dt,
        "steps": snn.steps,
        "extra_steps": snn.extra_steps,
        "clock": bool(drawing.clock),
        "relay": {node.name: node.shape[0] for node in snn.graph.of_type(IntegrateFire)} if relay else None,
        "dtype": str(drawing.words.dtype).removeprefix("torch."),
        "input_shape": snn.graph.input_shape,
        "output_shape": snn.graph.shape(snn.graph.output),
        "neurons": drawing.names,
        "head": None if snn.head is None else describe(snn.head),
        "readout": None if snn.readout is None else snn.readout.tolist(),
        "recipe": snn.recipe.to_dict(),
    }


def _notes(snn: SpikingNetwork, words: Dialect, drawing: Drawing, bias: str, lost: dict[str, float]) -> list[str]:
    steps = snn.extra_steps + snn.steps
    found = []
    if bias == "clock":
        found.append(
            f"input: the image with {steps} more channels; at step t (from 0) channel t of these is all ones, the "
            f"others are zero; the file is for {steps} steps"
        )
    else:
        worst = max(lost, key=lambda name: lost[name])
        found.append(
            f"lossy: b[t] became its mean over time, which is off by {lost[worst]:.3f} thresholds (root mean square) "
            f"in '{worst}', the worst layer; bias='clock' is exact"
        )
    if words.soft:
        found.append(f"read it with {words.read_by}: else with {words.semantics.in_words}, which is another network")
    elif words.semantics.in_words != "soft reset":
        found.append(
            f"{words.semantics.name} reads these neurons with {words.semantics.in_words}: it runs another network; "
            "ftbc export verify tells its accuracy"
        )
    if drawing.words.unchecked:
        found.append(
            "read it with nir.read(path, type_check=False): nir takes every convolution for one without groups, with "
            f"a square kernel, and '{drawing.words.unchecked[0]}' is not"
        )
    if snn.readout is not None:
        found.append("the network weighs its steps: the matrix is in the file's metadata, and the reader's to apply")
    if snn.head is not None:
        found.append(f"the file ends before the network's {type(snn.head).__name__}, which the reader is to apply")
    return found
