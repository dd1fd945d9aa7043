"""What an experiment gave: the lines of a table, or a figure, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftbc.reproduce.experiment import Experiment
from ftbc.reproduce.table import Line


@dataclass(frozen=True)
class Figure:
    """A figure: what it shows, as rows of a table, in sentences, and drawn.

    rows: each with the same keys; said: what a reader sees in it, with figures; draw: writes PNG, SVG or PDF by suffix.
    """

    rows: Sequence[Mapping[str, Any]]
    said: Sequence[str]
    draw: Callable[[Path], None]
    network: str = ""
    data: str = ""


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of the paper as it came out here.

    made: command, code, machine and time, as `protocol.origin` tells them; measured, kept: how many measurements were
    made now, and how many were in the folder.
    """

    experiment: Experiment
    scale: str
    made: Mapping[str, Any]
    lines: tuple[Line, ...] = ()
    figure: Figure | None = None
    measured: int = 0
    kept: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)

    def lacking(self) -> dict[str, list[str]]:
        """Lines without figures, by reason."""
        found: dict[str, list[str]] = {}
        for line in self.lines:
            if line.reason and not line.rows:
                found.setdefault(line.reason, []).append(f"{line.paper.method} ({line.part.title})")
        return found
