"""What a comparison has to measure: which conversions, each run for how long and on which test images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ftbc.errors import InputError, RecipeError
from ftbc.recipe import Recipe
from ftbc.recipes import recipe as recipe_by_name

PROTOCOLS = {
    "per-t": "each T with a calibration of its own",
    "anytime": "one calibration for the largest T, read at each t",
}
"""The first is the paper's; the second is what a network does that must answer at any time."""


@dataclass(frozen=True)
class Run:
    """A converted network run for ``steps`` steps, on all test images or (``few``) on a part of them."""

    steps: int
    few: bool = False


@dataclass(frozen=True)
class Conversion:
    """One calibration, and the runs of the network that it gives."""

    recipe: Recipe
    steps: int
    seed: int
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Plan:
    """A table: a row for each recipe, a column for each T, each cell over several seeds.

    Above ``full_up_to`` steps a part of the test images must do. A recipe that is timeless (`facts.py`) is the same
    network at every T, so that one conversion for the largest is read at each, whatever the protocol.
    """

    recipes: tuple[Recipe, ...]
    steps: tuple[int, ...]
    seeds: tuple[int, ...]
    protocol: str = "per-t"
    full_up_to: int | None = None

    def at(self, recipe: Recipe, t: int) -> tuple[int, Run]:
        """Where the cell of ``t`` is read: for how many steps the network was converted, and in which run."""
        few = self.few(t)
        if self.protocol == "per-t" and not recipe.facts.timeless:
            return t, Run(t, few)
        # A run on more images need not be longer than its columns: what follows a step does not change it.
        return max(self.steps), Run(max(other for other in self.steps if self.few(other) == few), few)

    def conversions(self) -> list[Conversion]:
        """All the work, cheap before dear: few steps first, and of these one seed of every recipe before the next."""
        runs: dict[tuple[int, str], dict[Run, None]] = {}
        for recipe in self.recipes:
            for t in self.steps:
                steps, run = self.at(recipe, t)
                runs.setdefault((steps, recipe.name), {})[run] = None
        return [
            Conversion(recipe, steps, seed, tuple(runs[steps, recipe.name]))
            for steps in self.steps
            for seed in self.seeds
            for recipe in self.recipes
            if (steps, recipe.name) in runs
        ]

    def tests(self) -> list[bool]:
        """Which sets of test images are needed: all of them (False), a part (True), or both."""
        return sorted({self.few(t) for t in self.steps})

    def few(self, t: int) -> bool:
        """Whether the column of ``t`` is measured on a part of the test images."""
        return self.full_up_to is not None and t > self.full_up_to


def plan_of(
    recipes: Sequence[str | Recipe] | str | Recipe,
    steps: int | Sequence[int],
    seeds: int | Sequence[int],
    protocol: str,
    limit: int | None,
    full_up_to: int | None,
) -> Plan:
    """The plan that a user asks for, checked."""
    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol {protocol!r:.80}: choose one of {', '.join(PROTOCOLS)}")
    if (limit is None) != (full_up_to is None):
        raise InputError("limit and full_up_to belong together: so many test images above so many steps; give both")
    times = tuple(sorted(set(_whole_numbers(steps, "steps", 1))))
    chosen = _whole_numbers(range(seeds) if type(seeds) is int else seeds, "seeds", 0)
    if not chosen:
        raise InputError(f"seeds={seeds!r}: give how many calibrations to draw, at least 1, or their seeds")
    return Plan(methods_of(recipes), times, tuple(dict.fromkeys(chosen)), protocol, full_up_to)


def methods_of(recipes: Any) -> tuple[Recipe, ...]:
    """Each method once; two that differ must have names that do."""
    given = [recipes] if isinstance(recipes, str | Recipe) else list(recipes)
    found: dict[str, Recipe] = {}
    for entry in given:
        method = recipe_by_name(entry) if isinstance(entry, str) else entry
        if not isinstance(method, Recipe):
            raise RecipeError(
                f"a recipe is a {type(method).__name__}: give names (see: ftbc methods) or objects of ftbc.Recipe"
            )
        if found.setdefault(method.name, method) != method:
            raise RecipeError(f"two recipes are called '{method.name}': give each a name of its own")
    if not found:
        raise RecipeError("no recipes: name those to compare (see: ftbc methods)")
    return tuple(found.values())


def _whole_numbers(values: Any, name: str, least: int) -> list[int]:
    try:
        listed = [values] if isinstance(values, int) else list(values)
    except TypeError:
        listed = [values]
    for value in listed:
        if type(value) is not int or value < least:
            raise InputError(f"{name}={value!r:.40}: give whole numbers, at least {least}")
    if not listed and name == "steps":
        raise InputError("no steps: give the numbers of time steps to compare at, such as 1, 2, 4, 8")
    return listed
