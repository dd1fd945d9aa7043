"""One page that shows what a conversion did: a single file of HTML that needs nothing from outside.

Figures are drawn by the page itself, from data inside it (`page/page.js`), so that one can choose layer and step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ftbc.atomic import replacing
from ftbc.errors import MissingExtraError
from ftbc.measure.energy import energy_models
from ftbc.measure.inside import BINS, HIGH, LOW, Inside
from ftbc.report.series import Baseline, Series


@dataclass(frozen=True)
class Picture:
    """An image of the report: its address (see `report/png.py`), or none, and its true class."""

    address: str | None
    label: int | None


@dataclass(frozen=True)
class Page:
    """What a report shows; parts that are not there are left out.

    per_t: whether each point of a curve is a network of its own, made for that T. inside, pictures: of the network
    ``subject``, the images in the order in which ``inside`` saw them. classes: their names. recipe: as TOML.
    facts: name and value of anything else that belongs to the record, such as seed and versions.
    """

    title: str
    summary: str
    series: Sequence[Series]
    baselines: Sequence[Baseline] = ()
    per_t: bool = False
    subject: str = ""
    inside: Inside | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    pictures: Sequence[Picture] = ()
    classes: Sequence[str] | None = None
    recipe: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()


def render(page: Page) -> str:
    """The text of the file."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ModuleNotFoundError as error:
        raise MissingExtraError("jinja2", "writing a report", "report") from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_part("page.html"))
    shown = {name for series in page.series for point in series.points for name in point.energy}
    models = [model for name, model in energy_models().items() if name in shown]
    return template.render(
        page=page,
        models=models,
        steps=sorted({point.t for series in page.series for point in series.points}),
        layers=[] if page.inside is None else page.inside.layers,
        style=_part("page.css"),
        script=_part("page.js"),
        # Nothing inside a script may look like its end.
        data=json.dumps(_data(page, [model.name for model in models]), allow_nan=False).replace("<", "\\u003c"),
        number=_number,
    )


def write(path: str | Path, page: Page) -> None:
    """Write the page into a file."""
    text = render(page)
    with replacing(Path(path)) as file:
        file.write(text.encode(errors="backslashreplace"))  # a file name may hold bytes that are no text


def _data(page: Page, models: list[str]) -> dict[str, Any]:
    inside = page.inside
    return {
        "series": [asdict(series) for series in page.series],
        "baselines": [asdict(baseline) for baseline in page.baselines],
        "models": models,
        "perT": page.per_t,
        "extra": 0 if inside is None else inside.extra_steps,
        "bins": {"low": LOW, "high": HIGH, "count": BINS},
        "layers": [] if inside is None else [asdict(layer) for layer in inside.layers],
        "errors": dict(page.errors),
        "answers": [] if inside is None else _answers(page, inside),
        "classes": None if page.classes is None else list(page.classes),
    }


def _answers(page: Page, inside: Inside) -> list[dict[str, Any]]:
    rows = []
    for index, picture in enumerate(page.pictures):
        rows.append(
            {
                "address": picture.address,
                "label": picture.label,
                "ann": None if inside.reference is None else inside.reference[index],
                "said": inside.predictions[index],
                "sure": inside.confidences[index],
            }
        )
    return rows


def _part(name: str) -> str:
    return (files("ftbc.report") / "page" / name).read_text(encoding="utf-8")


def _number(value: float | None, digits: int = 4) -> str:
    """A figure for a table.

    >>> _number(1234.5678), _number(None)
    ('1235', '-')
    """
    return "-" if value is None else f"{value:.{digits}g}"
