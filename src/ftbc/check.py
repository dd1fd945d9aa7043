"""What converts and what does not, said before any work is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ftbc.calibration_data import check_model, gather_images
from ftbc.errors import UnsupportedError
from ftbc.graph.canonical import Cleaned, Problem, canonical
from ftbc.graph.fold import fold
from ftbc.graph.ops import Activation, Affine, MaxPool, Synapses
from ftbc.graph.trace import trace


@dataclass(frozen=True)
class Row:
    """One operation of the network as it will be converted."""

    name: str
    kind: str
    becomes: str
    shape: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`: a row for each operation, and everything that stands in the way."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether `convert` will accept the network."""
        return not self.problems

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows] + [4])
        lines = [f"{row.name:{width}}  {row.kind:18} {row.becomes:16} {row.source}".rstrip() for row in self.rows]
        neurons = sum(row.becomes == "neurons" for row in self.rows)
        lines += ["", *self.notes]
        if self.ok:
            return "\n".join([*lines, f"This network converts: {neurons} spiking layers."])
        count = len(self.problems)
        lines.append(f"This network does not convert: {count} problem{'s' if count > 1 else ''}.")
        return "\n".join([*lines, *(f"  {problem}" for problem in self.problems)])


@torch.no_grad()
def check(model: nn.Module, example: Any) -> CheckReport:
    """Say what each operation of a network becomes, and list what cannot be converted, where, and the remedy.

    example: as the calibration of `convert`; one image is enough.

    >>> print(check(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.rand(1, 4)).ok)
    True
    """
    check_model(model)
    cleaned = canonical(trace(model, gather_images(example, model)))
    if not cleaned.problems:
        fold(cleaned.graph)
    rows = tuple(
        Row(node.name, type(node.module).__name__, _becomes(node.module), node.shape, node.source)
        for node in cleaned.graph
    )
    problems = tuple(cleaned.problems)
    if not problems and not cleaned.graph.of_type(Activation):
        problems = (_no_activation(),)
    notes = []
    if cleaned.head is not None:
        notes.append(f"The final {type(cleaned.head).__name__} is applied to the averaged output.")
    sites = [node.module for node in cleaned.graph.of_type(Activation)]
    if sites and all(site.upper is not None for site in sites):
        levels = sorted({site.levels for site in sites if site.levels is not None})  # type: ignore[type-var]
        steps = f" in {', '.join(map(str, levels))} steps" if levels else ""
        notes.append(f"Every activation was trained with a threshold{steps}: the recipe 'qcfs' takes these.")
    return CheckReport(rows, problems, tuple(notes))


def require_activation(cleaned: Cleaned) -> None:
    """A network in which no activation was found would convert into itself: an error."""
    if not cleaned.graph.of_type(Activation):
        raise UnsupportedError(str(_no_activation()))


def _no_activation() -> Problem:
    return Problem(
        "network", "no ReLU found", "", "nothing in it would become spiking; convert a network with ReLU activations"
    )


def _becomes(module: nn.Module) -> str:
    if isinstance(module, Activation):
        return "neurons"
    if isinstance(module, Synapses):
        return "synapses"
    if isinstance(module, MaxPool):
        return "spiking max-pool"
    return "affine" if isinstance(module, Affine) else "linear"
