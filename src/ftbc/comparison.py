"""What `ftbc.compare` gives back: a row for each recipe and T, in every form that people want them in."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ftbc.atomic import replacing
from ftbc.protocol.rows import Row, best
from ftbc.report import html
from ftbc.report.comparison import as_csv, as_text
from ftbc.report.comparison_page import comparison_page
from ftbc.report.latex import as_latex
from ftbc.report.plot import compared_curves, energy_curves


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one network.

    rows: one for each recipe and T, in the order in which they were asked for. recipes: each in full, as plain data.
    ann: the accuracy of the network itself at each T, on the test images of that T. kept, measured: how many
    measurements were there already and how many were made now. made: where the figures come from; several states of the
    code are listed under "codes".
    """

    model: str
    data: str
    protocol: str
    engine: str
    steps: tuple[int, ...]
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    recipes: tuple[dict[str, Any], ...]
    ann: dict[int, float | None]
    kept: int
    measured: int
    made: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """The recipes by name, in their order."""
        return [recipe["name"] for recipe in self.recipes]

    def row(self, recipe: str, steps: int) -> Row:
        """The row of a recipe at a T."""
        return next(row for row in self.rows if (row.recipe, row.steps) == (recipe, steps))

    def best(self) -> dict[tuple[str, int], str]:
        """Which rows are best at their T; see `protocol.rows.best`."""
        return best(self.rows)

    def refused(self) -> dict[str, str]:
        """The recipes without a single figure, and why."""
        reasons: dict[str, str] = {}
        for name in self.names:
            own = [row for row in self.rows if row.recipe == name]
            if all(row.accuracy is None for row in own):
                reasons[name] = own[0].reason
        return reasons

    def __str__(self) -> str:
        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        marks = self.best()
        rows = [{**asdict(row), "best": marks.get((row.recipe, row.steps))} for row in self.rows]
        return {**asdict(self), "rows": rows}

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything, for programs; also into a file, if a path is given. So do the other forms."""
        return _written(json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n", path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """A line for each recipe and T."""
        return _written(as_csv(self), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The table of accuracies for a paper, with the package booktabs: the best of each T in bold."""
        return _written(as_latex(self), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with curves and energy, in one file."""
        return _written(html.render(comparison_page(self)), path)

    def plot(self, path: str | Path) -> None:
        """Accuracy against T, a line for each recipe, as PNG, SVG or PDF by suffix."""
        compared_curves(path, self)

    def plot_energy(self, path: str | Path) -> None:
        """Accuracy against energy, a line for each recipe, as PNG, SVG or PDF by suffix."""
        energy_curves(path, self)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        with replacing(Path(path)) as file:
            file.write(text.encode())
    return text
