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
        """Lines without figures, by reason; a part of which every line is without them, by its title alone."""
        found: dict[str, list[str]] = {}
        for part in self.experiment.parts:
            lines = [line for line in self.lines if line.part is part]
            without: dict[str, list[str]] = {}
            for line in lines:
                if line.reason and not line.rows:
                    without.setdefault(line.reason, []).append(f"{line.paper.method} ({part.title})")
            for reason, named in without.items():
                found.setdefault(reason, []).extend([part.title] if len(named) == len(lines) > 1 else named)
        return found
