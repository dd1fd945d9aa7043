"""A table of the paper, measured: each part by `ftbc.compare`, a comparison for each network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ftbc.calibration_data import placed
from ftbc.compare import compare
from ftbc.errors import FileError, InputError, RecipeError
from ftbc.protocol.rows import Row
from ftbc.reproduce.experiment import PaperRow, Part, Source
from ftbc.reproduce.material import Lack
from ftbc.reproduce.setting import Setting


@dataclass(frozen=True)
class Line:
    """A line of a table: that of the paper, and what was measured of it here, by T; reason: why it was not.

    network, data: what it was measured on; recipe: the settings in full, as plain data.
    """

    part: Part
    paper: PaperRow
    network: str = ""
    data: str = ""
    rows: Mapping[int, Row] = field(default_factory=dict)
    recipe: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""

    @property
    def ann(self) -> float | None:
        """The accuracy of the network itself, on the test images of the smallest T."""
        return next((row.ann_accuracy for row in self.rows.values()), None)

    def here(self, t: int) -> float | None:
        """What was measured at T, in percent."""
        return self.rows[t].accuracy if t in self.rows else None

    def difference(self, t: int) -> float | None:
        """What was measured here less the paper's, if there are both."""
        here, paper = self.here(t), self.paper.paper.get(t)
        return None if here is None or paper is None else here - paper


def measure_table(setting: Setting) -> tuple[Line, ...]:
    """Every line of the table of an experiment, in its order."""
    found: dict[tuple[str, str], Line] = {}
    for part in setting.experiment.parts:
        for line in _part(setting, part):
            found[part.title, line.paper.method] = line
    lines = tuple(found[part.title, row.method] for part in setting.experiment.parts for row in part.rows)
    if not any(line.rows for line in lines):
        reasons = dict.fromkeys(line.reason for line in lines if line.reason)
        raise InputError(f"nothing of '{setting.experiment.name}' can be measured: it lacks {'; '.join(reasons)}")
    return lines


def lacks(setting: Setting, data: str, source: Source | None) -> list[Lack]:
    """What is missing to measure a network on a data set; nothing if all is there."""
    missing = setting.material.lacks_network(source, setting.name)
    return missing if source is None else [*missing, *setting.material.lacks_data(data)]


def by_network(part: Part) -> dict[str, list[PaperRow]]:
    """The lines of a part that are measured, by network."""
    groups: dict[str, list[PaperRow]] = {}
    for row in part.rows:
        if row.network is not None:
            groups.setdefault(row.network, []).append(row)
    return groups


def _part(setting: Setting, part: Part) -> Iterable[Line]:
    yield from (Line(part, row) for row in part.rows if row.network is None)
    for key, rows in by_network(part).items():
        source = setting.experiment.networks[key].get(setting.name)
        missing = lacks(setting, part.data, source)
        if missing or source is None:
            yield from (Line(part, row, reason=", ".join(map(str, missing))) for row in rows)
        else:
            yield from _network(setting, part, source, rows)


def _network(setting: Setting, part: Part, source: Source, rows: list[PaperRow]) -> Iterable[Line]:
    scale, material, team = setting.scale, setting.material, setting.team
    draws = material.draws(part.data, source, scale.images)
    test = material.test(part.data, source, scale.test_images)
    fewer = scale.limit is not None and scale.limit < len(test)
    recipes = [row.method_here(setting.name) for row in rows]
    try:
        table = compare(
            material.network(source).to(team.device), lambda seed: placed(draws(seed), team), test, recipes,
            setting.steps(part.steps), seeds=setting.seeds, limit=scale.limit if fewer else None,
            full_up_to=scale.full_up_to if fewer else None, engine=setting.engine, results=setting.folder,
            measure=setting.measure, name=str(source), command=setting.command, progress=setting.progress,
            team=team,
        )  # fmt: skip
    except RecipeError as error:
        yield from (Line(part, row, str(source), test.name, reason=str(error)) for row in rows)
        return
    except FileError:
        if setting.measure:
            raise
        yield from (Line(part, row, str(source), test.name, reason="not measured yet") for row in rows)
        return
    setting.count(table.measured, table.kept)
    for row, method in zip(rows, recipes, strict=True):
        own = {cell.steps: cell for cell in table.rows if cell.recipe == method.name}
        known = {t: cell for t, cell in own.items() if cell.accuracy is not None}
        reason = next((cell.reason for cell in own.values() if cell.reason), "")
        yield Line(part, row, str(source), test.name, known, method.to_dict(), reason)
