"""A method is a recipe: how thresholds are chosen, where membranes start, which neurons fire, what is calibrated."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftbc import calibrate, initial, neuron, threshold
from ftbc.calibrate import Calibrator
from ftbc.errors import FileError, RecipeError
from ftbc.facts import Facts
from ftbc.graph.pool import POLICIES
from ftbc.initial import Half
from ftbc.neuron import Kind, Plain
from ftbc.threshold import MeanSquare, Threshold

_PIECES = {
    name: getattr(package, name)
    for package in (threshold, initial, neuron, calibrate)
    for name in package.__all__
    if dataclasses.is_dataclass(getattr(package, name)) and name not in ("Activations", "Calibration")
}
_PARTS = {"threshold": threshold, "initial": initial, "neuron": neuron}


@dataclass(frozen=True)
class Recipe:
    """One conversion method, composed of the pieces of `threshold/`, `initial/`, `neuron/` and `calibrate/`.

    pool: what becomes of max-pools, one of "spiking", "before", "average" (see `graph/pool.py`).

    >>> Recipe(calibrate=[calibrate.FTBC(alpha=0.2)]).calibrate[0].alpha
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
        if not isinstance(self.calibrate, tuple | list):
            raise RecipeError(f"recipe '{self.name}': calibrate={self.calibrate!r} must be a list of calibrations")
        object.__setattr__(self, "calibrate", tuple(self.calibrate))
        for part, package in _PARTS.items():
            piece = getattr(self, part)
            if type(piece).__name__ not in _PIECES or type(piece).__name__ not in package.__all__:
                raise RecipeError(f"recipe '{self.name}': {part}={piece!r} is not one of {_names(package)}")
        for piece in self.calibrate:
            if type(piece).__name__ not in calibrate.__all__:
                raise RecipeError(f"recipe '{self.name}': {piece!r} is not one of {_names(calibrate)}")
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
        return Facts.of([self.threshold, self.initial, self.neuron, *self.calibrate])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for TOML, JSON and saved networks."""
        return {
            "name": self.name,
            "summary": self.summary,
            "pool": self.pool,
            "threshold": _piece_to_dict(self.threshold),
            "initial": _piece_to_dict(self.initial),
            "neuron": _piece_to_dict(self.neuron),
            "calibrate": [_piece_to_dict(piece) for piece in self.calibrate],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Recipe:
        """The recipe of `to_dict`."""
        data = dict(data)
        pieces: dict[str, Any] = {part: _piece_from_dict(data.pop(part)) for part in _PARTS if part in data}
        calibrations = data.pop("calibrate", [])
        if not isinstance(calibrations, list | tuple):
            raise RecipeError(f"calibrate={calibrations!r} must be a list of calibrations")
        pieces["calibrate"] = tuple(_piece_from_dict(piece) for piece in calibrations)
        try:
            return cls(**pieces, **data)
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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"recipe {path} cannot be read: {error}") from error


def _piece_to_dict(piece: Any) -> dict[str, Any]:
    return {"type": type(piece).__name__, **dataclasses.asdict(piece)}


def _piece_from_dict(data: dict[str, Any]) -> Any:
    if not isinstance(data, dict):
        raise RecipeError(f"{data!r} is not a piece of a recipe: give its type and settings")
    settings = dict(data)
    kind = _PIECES.get(str(settings.pop("type", None)))
    if kind is None:
        raise RecipeError(f"a recipe has no piece of type {data.get('type')!r}; there are {', '.join(_PIECES)}")
    try:
        return kind(**settings)
    except TypeError as error:
        raise RecipeError(f"{kind.__name__} has no setting {str(error).rpartition(' ')[2]}") from error


def _names(package: Any) -> str:
    return ", ".join(name for name in package.__all__ if name in _PIECES)
