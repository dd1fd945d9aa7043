"""A table or figure of the paper as data: its settings at full and at small scale, its networks, and what it says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ftbc.calibrate import FTBC, ReleasedFTBC
from ftbc.data import NORMALISATIONS
from ftbc.errors import FileError, RecipeError
from ftbc.recipe import Recipe
from ftbc.recipes import recipe
from ftbc.reproduce.toml_table import TomlTable
from ftbc.zoo import Blueprint

SCALES = ("full", "small")
DATA = ("cifar10", "cifar100", "imagenet")
TABLE = "table"
KINDS = (TABLE, "stability", "membranes", "overview", "bias-search")
"""What is drawn or measured; all but the first are figures, one file of this folder each."""
_MEASURED = (FTBC, ReleasedFTBC)


@dataclass(frozen=True)
class Scale:
    """How much is measured: T, draws of calibration images, their number, and test images (None: all).

    limit, full_up_to: as for `ftbc.compare`. data: of a figure; tables name the data of each part.
    """

    steps: tuple[int, ...]
    seeds: int = 1
    images: int = 256
    test_images: int | None = None
    limit: int | None = None
    full_up_to: int | None = None
    data: str | None = None


@dataclass(frozen=True)
class Source:
    """Where a trained network is: in the zoo under ``zoo``, or in a file of ``weights`` of the network ``blueprint``.

    train: the settings in `experiments/train` that it is trained with, for who has to train it.
    """

    zoo: str | None = None
    blueprint: Blueprint | None = None
    weights: str | None = None
    normalise: str | None = None
    train: str | None = None

    def __str__(self) -> str:
        return self.zoo or f"{self.blueprint.architecture if self.blueprint else '?'} with {self.weights}"


@dataclass(frozen=True)
class PaperRow:
    """A line of a table: what the paper says, by T, and how it is measured here.

    ann: the accuracy of the network before conversion; network: a key of `Experiment.networks`; settings: of FTBC, as
    in the configuration table of the paper; calibrate: pieces in the place of those of the recipe, as a recipe's TOML
    has them; small_recipe: in the place of ``recipe`` at small scale; trained: how, for methods that ftbc does not
    have: they train the spiking network, and are quoted.
    """

    method: str
    paper: Mapping[int, float]
    ann: float | None = None
    network: str | None = None
    recipe: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    calibrate: tuple[Mapping[str, Any], ...] | None = None
    small_recipe: str | None = None
    trained: str | None = None

    def method_here(self, scale: str) -> Recipe:
        """The recipe under the name of the row, with the settings of the paper."""
        assert self.recipe is not None
        base = recipe((scale == "small" and self.small_recipe) or self.recipe)
        if self.calibrate is not None:
            base = Recipe.from_dict({**base.to_dict(), "calibrate": list(self.calibrate)})
        try:
            pieces = tuple(
                dataclasses.replace(piece, **self.settings) if isinstance(piece, _MEASURED) else piece  # type: ignore
                for piece in base.calibrate
            )
        except TypeError as error:
            raise RecipeError(f"'{self.method}': FTBC has no setting {str(error).rpartition(' ')[2]}") from error
        if self.settings and pieces == base.calibrate and not any(isinstance(p, _MEASURED) for p in pieces):
            raise RecipeError(f"'{self.method}': recipe '{base.name}' has no FTBC that settings could be for")
        return dataclasses.replace(base, calibrate=pieces, name=self.method)


@dataclass(frozen=True)
class Part:
    """The lines of a table that belong to one architecture and one data set."""

    title: str
    data: str
    rows: tuple[PaperRow, ...]
    steps: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Experiment:
    """A table or a figure. source: its label in the paper, if it is there; figure: settings of a figure."""

    name: str
    title: str
    source: str
    kind: str
    about: str
    scales: Mapping[str, Scale]
    networks: Mapping[str, Mapping[str, Source]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    figure: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The title, with the place in the paper."""
        return self.title + (f" ({self.source})" if self.source else "")

    @classmethod
    def from_dict(cls, content: dict[str, Any], name: str, place: str) -> Experiment:
        """The experiment that a TOML file describes; place: the file, for errors."""
        table = TomlTable(content, place)
        kind = table.get("kind", str)
        if kind not in KINDS:
            raise FileError(f"{place}: kind = {kind!r:.60} must be one of {', '.join(KINDS)}")
        networks = {key: _sources(entry) for key, entry in table.named("networks").items()}
        parts: dict[str, Part] = {}
        for entry in table.tables("part"):
            part = _part(entry, networks, parts)
            parts[part.title] = part
        found = cls(
            name=name,
            title=table.get("title", str),
            source=table.get("source", str, ""),
            kind=kind,
            about=table.get("about", str),
            notes=tuple(table.texts("notes")),
            scales={scale: _scale(TomlTable(table.get(scale, dict), f"{place}, {scale}")) for scale in SCALES},
            networks=networks,
            parts=tuple(parts.values()),
            figure=table.get("figure", dict, {}),
        )
        table.close()
        if (kind == TABLE) != bool(found.parts):
            raise FileError(f"{place}: a table has parts and a figure has none; it is of kind '{kind}'")
        return found


def _scale(table: TomlTable) -> Scale:
    numbers = {key: table.get(key, int, None) for key in ("test_images", "limit", "full_up_to")}
    if (numbers["limit"] is None) != (numbers["full_up_to"] is None):
        raise FileError(f"{table.place}: limit and full_up_to belong together; give both")
    data = table.get("data", str, None)
    _require_data(data, table.place)
    scale = Scale(
        steps=tuple(table.numbers("steps")),
        seeds=table.get("seeds", int, 1),
        images=table.get("images", int, 256),
        data=data,
        **numbers,
    )
    table.close()
    return scale


def _sources(table: TomlTable) -> dict[str, Source]:
    found = {}
    for scale in SCALES:
        value = table.content.pop(scale, None)
        if isinstance(value, str):
            found[scale] = Source(zoo=value)
        elif value is not None:
            found[scale] = _source(TomlTable(value if isinstance(value, dict) else {}, f"{table.place}, {scale}"))
    table.close()
    return found


def _source(table: TomlTable) -> Source:
    weights, train = table.get("weights", str), table.get("train", str, None)
    normalise = table.get("normalise", str, None)
    if normalise is not None and normalise not in NORMALISATIONS:
        raise FileError(f"{table.place}: normalise = {normalise!r:.40} must be one of {', '.join(NORMALISATIONS)}")
    return Source(None, Blueprint.from_dict(table.content), weights, normalise, train)


def _part(table: TomlTable, networks: Mapping[str, Any], before: Mapping[str, Part]) -> Part:
    """A part with rows of its own, or with those of a part before it, on another network: ``like`` and ``network``."""
    steps, title = table.numbers("steps", None), table.get("title", str)
    if title in before:
        raise FileError(f"{table.place}: there are two parts '{title}': give each a title of its own")
    part = Part(
        title=title,
        data=table.get("data", str),
        rows=_rows_like(table, networks, before) or tuple(_row(entry, networks) for entry in table.tables("row")),
        steps=None if steps is None else tuple(steps),
    )
    table.close()
    _require_data(part.data, table.place)
    names = [row.method for row in part.rows]
    if not names or len(set(names)) < len(names):
        raise FileError(f"{table.place}: give rows, each with a method of its own")
    return part


def _rows_like(table: TomlTable, networks: Mapping[str, Any], before: Mapping[str, Part]) -> tuple[PaperRow, ...]:
    like, network = table.get("like", str, None), table.get("network", str, None)
    if like is None and network is None:
        return ()
    if like is None or like not in before or network is None:
        raise FileError(
            f"{table.place}: 'like' names a part before this one, 'network' what it is measured on; give both"
        )
    _require_network(network, networks, table.place)
    rows = before[like].rows
    return tuple(row if row.recipe is None else dataclasses.replace(row, network=network) for row in rows)


def _require_network(network: str, networks: Mapping[str, Any], place: str) -> None:
    if network not in networks:
        raise FileError(f"{place}: there is no network '{network}': describe it under [networks.{network}]")


def _row(table: TomlTable, networks: Mapping[str, Any]) -> PaperRow:
    network, known = table.get("network", str, None), table.get("recipe", str, None)
    pieces = table.get("calibrate", list, None)
    if (network is None) != (known is None):
        raise FileError(f"{table.place}: a row that is measured has a network and a recipe; give both or none")
    if network is not None:
        _require_network(network, networks, table.place)
    row = PaperRow(
        method=table.get("method", str),
        paper=_figures(table.get("paper", dict), table.place),
        ann=table.get("ann", float, None),
        network=network,
        recipe=known,
        settings=table.get("settings", dict, {}),
        calibrate=None if pieces is None else tuple(pieces),
        small_recipe=table.get("small_recipe", str, None),
        trained=table.get("trained", str, None),
    )
    table.close()
    return row


def _figures(paper: dict[str, Any], place: str) -> dict[int, float]:
    for t, accuracy in paper.items():
        if not t.isdecimal() or int(t) < 1 or type(accuracy) not in (int, float) or not 0 <= accuracy <= 100:
            raise FileError(f"{place}: paper = {{ {t} = {accuracy!r:.20} }} must be percents by numbers of steps")
    return {int(t): float(accuracy) for t, accuracy in paper.items()}


def _require_data(data: str | None, place: str) -> None:
    if data is not None and data not in DATA:
        raise FileError(f"{place}: data = {data!r:.40} must be one of {', '.join(DATA)}")
