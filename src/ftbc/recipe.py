"""A method is a recipe: how thresholds are chosen, where membranes start, which neurons fire, and what is calibrated."""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftbc import calibrate, initial, neuron, threshold
from ftbc.calibrate import FTBC, Calibrator, DistributionAware
from ftbc.errors import FileError, RecipeError
from ftbc.graph.pool import POLICIES
from ftbc.initial import Half, SpreadHalf, Zero
from ftbc.neuron import Burst, Differential, Kind, Offset, Parallel, Plain, Residual, Signed, Switch
from ftbc.threshold import Maximum, MeanSquare, Percentile, Trained

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

    >>> recipe("ftbc", calibrate=(FTBC(alpha=0.2),)).calibrate[0].alpha
    0.2
    """

    threshold: Any = field(default_factory=MeanSquare)
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
        if self.pool not in POLICIES:
            raise RecipeError(f"recipe '{self.name}': pool={self.pool!r} is not one of {', '.join(POLICIES)}")

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


def recipes() -> dict[str, Recipe]:
    """Every method by name."""
    return {entry.name: entry for entry in _RECIPES}


def recipe(name: str, /, **overrides: Any) -> Recipe:
    """The method of that name, with some of its fields replaced."""
    known = recipes()
    if name not in known:
        nearest = difflib.get_close_matches(name, known, 1, 0.0)
        raise RecipeError(
            f"there is no recipe '{name}'; did you mean '{nearest[0]}'? All: {', '.join(known)} (see: ftbc methods)"
        )
    try:
        return dataclasses.replace(known[name], **overrides)
    except TypeError as error:
        raise RecipeError(f"recipe '{name}' has no setting {str(error).rpartition(' ')[2]}") from error


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


_RECIPES = (
    Recipe(
        name="maximum",
        summary="thresholds at the largest activation of each channel, membranes half charged; no calibration",
        threshold=Maximum(),
    ),
    Recipe(
        name="percentile",
        summary="thresholds at the 99.9th percentile of each channel, membranes half charged; no calibration",
        threshold=Percentile(99.9),
    ),
    Recipe(
        name="mean-square",
        summary="thresholds of least square error per channel, membranes half charged; no calibration",
    ),
    Recipe(
        name="qcfs",
        summary="for networks trained with QCFS: the trained thresholds, membranes half charged; no calibration",
        threshold=Trained(),
    ),
    Recipe(
        name="ftbc",
        summary="mean-square thresholds, then temporal biases b[t] per channel by FTBC",
        calibrate=(FTBC(),),
    ),
    Recipe(
        name="ftbc-cifar",
        summary="FTBC with the settings of the paper's table for CIFAR: alpha 0.2, 10 iterations of 2 x 128 images",
        threshold=MeanSquare("floor"),
        initial=SpreadHalf(),
        calibrate=(FTBC(alpha=0.2, iterations=10, clip=False),),
    ),
    Recipe(
        name="ftbc-imagenet",
        summary="FTBC with the settings of the paper's table for ImageNet: alpha 0.5, 10 iterations of 10 x 128 images",
        threshold=MeanSquare("floor"),
        initial=SpreadHalf(),
        calibrate=(FTBC(alpha=0.5, iterations=10, batches=10, clip=False),),
    ),
    Recipe(
        name="snm",
        summary="signed neurons with memory: spikes that came too early are taken back; a threshold for each neuron",
        threshold=Maximum("neuron"),
        initial=Zero(),
        neuron=Signed(),
    ),
    Recipe(
        name="burst",
        summary="up to 5 spikes of a neuron at each step, thresholds at the 99.9th percentile of each channel",
        threshold=Percentile(99.9),
        initial=Zero(),
        neuron=Burst(5),
    ),
    Recipe(
        name="tsc",
        summary="plain neurons with one threshold a layer, whose synapses are told when currents begin and end",
        threshold=Maximum("layer"),
        initial=Zero(),
        neuron=Switch(),
    ),
    Recipe(
        name="srp",
        summary="for networks trained with QCFS: neurons that owe after 4 extra steps are silent afterwards",
        threshold=Trained(),
        neuron=Residual(4),
    ),
    Recipe(
        name="cos",
        summary="for networks trained with QCFS: 4 extra steps of each layer correct where its neurons begin",
        threshold=Trained(),
        neuron=Offset(4),
    ),
    Recipe(
        name="parallel",
        summary="for networks trained with QCFS: each layer sees all steps at once; exact where T is the levels",
        threshold=Trained(),
        neuron=Parallel(),
        calibrate=(DistributionAware(),),
    ),
    Recipe(
        name="parallel-relu",
        summary="each layer sees all steps at once; currents and spikes corrected in the mean, channel by channel",
        threshold=Maximum(),
        neuron=Parallel(),
        calibrate=(DistributionAware(),),
    ),
)
