"""A method is a recipe: how thresholds are chosen, where membranes start, which neurons fire, what is calibrated."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftbc import pieces
from ftbc.calibrate import Calibrator
from ftbc.errors import FileError, RecipeError
from ftbc.facts import Facts
from ftbc.graph.pool import POLICIES
from ftbc.initial import Half
from ftbc.neuron import Kind, Plain
from ftbc.threshold import MeanSquare, Threshold

_PARTS = ("threshold", "initial", "neuron")


@dataclass(frozen=True)
class Recipe:
    """One conversion method, composed of the pieces of `threshold/`, `initial/`, `neuron/` and `calibrate/`.

    pool: what becomes of max-pools, one of "spiking", "before", "average" (see `graph/pool.py`).

    >>> from ftbc.calibrate import FTBC
    >>> Recipe(calibrate=[FTBC(alpha=0.2)]).calibrate[0].alpha
    0.2
    """

    threshold: Threshold = field(default_factory=MeanSquare)
    initial: Any = field(default_factory=Half)
    neuron: Kind = field(default_factory=Plain)
    calibrate: tuple[Calibrator, ...] = ()
    pool: str = "spiking"
    name: str = "custom"
    summary: str = ""

    def __post_init__(self) -> None:
        for word in ("name", "summary", "pool"):
            if not isinstance(getattr(self, word), str):
                raise RecipeError(f"recipe {self.name!r}: {word}={getattr(self, word)!r} must be text")
        if not self.name.strip() or not self.name.isprintable():
            raise RecipeError(f"name={self.name!r}: give a recipe a name of one line")
        if not isinstance(self.calibrate, tuple | list):
            raise RecipeError(f"recipe '{self.name}': calibrate={self.calibrate!r} must be a list of calibrations")
        object.__setattr__(self, "calibrate", tuple(self.calibrate))
        for part in _PARTS:
            if not pieces.fits(getattr(self, part), part):
                given = getattr(self, part)
                raise RecipeError(f"recipe '{self.name}': {part}={given!r} is not one of {pieces.names(part)}")
        for piece in self.calibrate:
            if not pieces.fits(piece, "calibrate"):
                raise RecipeError(f"recipe '{self.name}': {piece!r} is not one of {pieces.names('calibrate')}")
        for place, piece in enumerate(self.calibrate):
            if place and getattr(piece, "moves_thresholds", False):
                raise RecipeError(
                    f"recipe '{self.name}': {type(piece).__name__} moves the thresholds that "
                    f"{type(self.calibrate[place - 1]).__name__} before it has learnt for: put it first in calibrate"
                )
        if self.pool not in POLICIES:
            raise RecipeError(f"recipe '{self.name}': pool={self.pool!r} is not one of {', '.join(POLICIES)}")

    @property
    def facts(self) -> Facts:
        """What the method needs, and what its neurons send."""
        return Facts.of(self.pieces)

    @property
    def pieces(self) -> tuple[Any, ...]:
        """All that it is made of."""
        return self.threshold, self.initial, self.neuron, *self.calibrate

    def key(self) -> dict[str, Any]:
        """All that decides what it does: its pieces, and the code of those that are not of this package."""
        settings = {name: value for name, value in self.to_dict().items() if name not in ("name", "summary")}
        own = pieces.own_code(self.pieces)
        return {**settings, "code": own} if own else settings

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML, JSON and saved networks."""
        return {
            "name": self.name,
            "summary": self.summary,
            "pool": self.pool,
            "threshold": pieces.record(self.threshold),
            "initial": pieces.record(self.initial),
            "neuron": pieces.record(self.neuron),
            "calibrate": [pieces.record(piece) for piece in self.calibrate],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, elsewhere: bool = False) -> Recipe:
        """The recipe of `to_dict`; elsewhere: also one with pieces that are not known here, as a record."""
        data = dict(data)
        made = {part: pieces.named(data.pop(part), elsewhere=elsewhere) for part in _PARTS if part in data}
        calibrations = data.pop("calibrate", [])
        if not isinstance(calibrations, list | tuple):
            raise RecipeError(f"calibrate={calibrations!r} must be a list of calibrations")
        made["calibrate"] = tuple(pieces.named(piece, elsewhere=elsewhere) for piece in calibrations)
        try:
            return cls(**made, **data)
        except TypeError as error:
            raise RecipeError(f"a recipe has no setting {str(error).rpartition(' ')[2]}") from error

    def to_toml(self) -> str:
        """The recipe as TOML text that `read_recipe` reads."""
        data = self.to_dict()
        lines = [f"{key} = {json.dumps(data.pop(key), ensure_ascii=False)}" for key in ("name", "summary", "pool")]
        for part in _PARTS:
            lines += ["", f"[{part}]", *(f"{key} = {json.dumps(value)}" for key, value in data[part].items())]
        for piece in data["calibrate"]:
            lines += ["", "[[calibrate]]", *(f"{key} = {json.dumps(value)}" for key, value in piece.items())]
        return "\n".join(lines) + "\n"


def read_recipe(path: str | Path) -> Recipe:
    """A recipe from a TOML file."""
    try:
        return Recipe.from_dict(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except RecipeError as error:
        raise RecipeError(f"{Path(path).name}: {error}") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"recipe {path} cannot be read: {error}") from error
