"""The settings to search over, written in TOML.

    base = "ftbc"                          # a recipe by name, or a file with one
    steps = [4, 8]                         # what counts is the mean accuracy at these T

    [space]
    "calibrate.0.alpha" = { low = 0.01, high = 1.0, log = true }
    "calibrate.0.iterations" = { low = 1, high = 20 }
    "calibrate.0.batch" = { choices = [32, 64, 128] }
    "threshold" = { choices = [{ type = "MeanSquare" }, { type = "Percentile", percent = 99.9 }] }

A name leads to a setting of the recipe, piece by piece; a whole piece can be a choice as well. Whole bounds give whole
numbers.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftbc.errors import FileError, RecipeError
from ftbc.recipe import Recipe, read_recipe
from ftbc.recipes import recipe as recipe_by_name

Value = str | int | float


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, whole if both are; log: as many between 1 and 10 as between 10 and 100."""

    low: int | float
    high: int | float
    log: bool = False

    def __post_init__(self) -> None:
        numbers = all(type(bound) in (int, float) and math.isfinite(bound) for bound in (self.low, self.high))
        if not numbers or type(self.log) is not bool or not self.low < self.high or (self.log and self.low <= 0):
            raise RecipeError(
                f"low = {self.low!r:.40}, high = {self.high!r:.40}, log = {self.log!r:.40}: give two numbers, the "
                "lower first, above zero with log = true"
            )

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return type(self.low) is int and type(self.high) is int

    def chosen(self, value: Value) -> Any:
        """The setting that a proposal stands for."""
        return value


@dataclass(frozen=True)
class Choices:
    """One of several settings, which may be whole pieces; texts: each as JSON, by which proposals name them."""

    texts: tuple[str, ...]

    def chosen(self, value: Value) -> Any:
        """The setting that a proposal stands for."""
        return json.loads(str(value))


@dataclass(frozen=True)
class Space:
    """A recipe, the T that count, and where each setting may lie."""

    base: Recipe
    steps: tuple[int, ...]
    places: Mapping[str, Range | Choices]

    def recipe(self, proposal: Mapping[str, Value]) -> Recipe:
        """The recipe with the settings of a proposal.

        >>> space = Space(recipe_by_name("ftbc"), (4,), {"calibrate.0.alpha": Range(0.1, 0.9)})
        >>> space.recipe({"calibrate.0.alpha": 0.25}).calibrate[0].alpha
        0.25
        """
        data = self.base.to_dict()
        # Whole pieces before what is inside them.
        for name in sorted(proposal, key=lambda name: name.count(".")):
            _put(data, name, self.places[name].chosen(proposal[name]))
        return Recipe.from_dict({**data, "name": "searched", "summary": f"found by ftbc search from {self.base.name}"})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, to tell one search from another."""
        places = {name: {"type": type(place).__name__, **vars(place)} for name, place in self.places.items()}
        return {"base": self.base.to_dict(), "steps": list(self.steps), "space": places}


def read_space(path: str | Path) -> Space:
    """A space from a TOML file."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"space '{path}' cannot be read: {error}") from error
    unknown = [name for name in content if name not in ("base", "steps", "space")]
    if unknown:
        raise FileError(f"space '{path}' has {unknown[0]!r:.40}: it takes base, steps and [space]")
    base, steps, places = content.get("base", "ftbc"), content.get("steps", [8]), content.get("space")
    if not isinstance(steps, list) or not steps or not all(type(t) is int and t >= 1 for t in steps):
        raise FileError(f"space '{path}': steps = {steps!r:.40} must be a list of whole numbers, at least 1")
    if not isinstance(places, dict) or not places:
        raise FileError(f"space '{path}' has no [space]: name at least one setting and where it may lie")
    if not isinstance(base, str):
        raise FileError(f"space '{path}': base = {base!r:.40} must name a recipe, or a file with one")
    chosen = read_recipe(path.parent / base) if base.endswith(".toml") else recipe_by_name(base)
    found: dict[str, Range | Choices] = {}
    try:
        for name, given in places.items():
            found[name] = _place(given)
            _put(chosen.to_dict(), name, None)
    except RecipeError as error:
        raise FileError(f"space '{path}', {name!r:.60}: {error}") from error
    return Space(chosen, tuple(sorted(set(steps))), found)


def _place(given: Any) -> Range | Choices:
    if (
        isinstance(given, dict)
        and set(given) == {"choices"}
        and isinstance(given["choices"], list)
        and given["choices"]
    ):
        try:
            return Choices(tuple(dict.fromkeys(json.dumps(choice, sort_keys=True) for choice in given["choices"])))
        except TypeError as error:
            raise RecipeError("a date or time cannot be a setting") from error
    if isinstance(given, dict) and {"low", "high"} <= set(given) <= {"low", "high", "log"}:
        return Range(**given)
    raise RecipeError(f"{given!r:.60} is no range: give low and high, and perhaps log, or a list of choices")


def _put(data: Any, name: str, value: Any) -> None:
    """Set one entry of a recipe as plain data, given by its path."""
    *way, last = name.split(".")
    for step in way:
        data = _inside(data, step, name)
    _inside(data, last, name)
    data[int(last) if isinstance(data, list) else last] = value


def _inside(data: Any, step: str, name: str) -> Any:
    if isinstance(data, dict) and step in data:
        return data[step]
    if isinstance(data, list) and step.isascii() and step.isdigit() and int(step) < len(data):
        return data[int(step)]
    known = (
        list(data) if isinstance(data, dict) else [str(i) for i in range(len(data))] if isinstance(data, list) else []
    )
    raise RecipeError(f"the recipe has no {step!r:.40} there; there is {', '.join(known) or 'nothing inside'}")
