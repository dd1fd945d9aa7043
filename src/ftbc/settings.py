"""Settings, of the pieces that recipes are made of and of others: checked against their own annotations."""

from __future__ import annotations

import dataclasses
import math
import typing
from numbers import Integral
from typing import Any, ClassVar

from ftbc.errors import RecipeError


class Settings:
    """Base of the frozen dataclasses that hold settings: each must be of its declared type."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            wanted = typing.get_type_hints(type(self))[field.name]
            value = getattr(self, field.name)
            if not _fits(value, wanted):
                raise RecipeError(f"{type(self).__name__}({field.name}={value!r}): give {_in_words(wanted)}")


class Piece(Settings):
    """Base of what recipes are made of, with what a piece asks of the user; `Facts` gathers it.

    trained: the ANN must have been trained for it; gradients: it needs gradients, not forward passes alone;
    moves_thresholds: it changes thresholds, and so must come before what is learnt for given ones; timeless: what it
    gives for T steps begins with what it gives for fewer, so that one conversion serves every T (`protocol/plan.py`).
    """

    trained: ClassVar[bool] = False
    gradients: ClassVar[bool] = False
    moves_thresholds: ClassVar[bool] = False
    timeless: ClassVar[bool] = False


def is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    """Whether something is a whole number in a range, of Python or of NumPy; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most


def _fits(value: Any, wanted: Any) -> bool:
    if typing.get_origin(wanted) is typing.Literal:
        return any(value is option or (type(value) is str and value == option) for option in typing.get_args(wanted))
    if wanted is bool:
        return isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _in_words(wanted: Any) -> str:
    if typing.get_origin(wanted) is typing.Literal:
        return "one of " + ", ".join(repr(option) for option in typing.get_args(wanted))
    return {bool: "True or False", int: "a whole number"}.get(wanted, "a finite number")
