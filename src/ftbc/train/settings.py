"""Everything that decides the final weights, apart from the network and the images."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ftbc.errors import InputError

POLICIES = ("none", "cifar10", "imagenet", "svhn")
"""Of AutoAugment."""


@dataclass(frozen=True)
class TrainSettings:
    """SGD with momentum and a cosine learning rate, and how images are varied.

    warm_up: the share of all steps in which the learning rate rises to its peak; 0 is the plain cosine (`schedule.py`).
    padding, flip: random crop and mirror; cutout: side of the square that is blanked, 0 for none; auto_augment: a
    policy of AutoAugment, which needs the extra ``train``. compile: let torch.compile make one program of the network,
    which is faster after a minute and rounds differently in the last bits; it needs a C++ compiler. teacher_weight,
    temperature: how much the answers of teachers count, if there are any, and how far they are smoothed (`teacher.py`).
    """

    epochs: int = 40
    batch: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    warm_up: float = 0.15
    label_smoothing: float = 0.0
    seed: int = 0
    nesterov: bool = True
    padding: int = 4
    flip: bool = True
    cutout: int = 0
    auto_augment: str = "none"
    compile: bool = False
    teacher_weight: float = 0.9
    temperature: float = 4.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            _require_type(field.name, value, str(field.type))
            fits, words = _RANGES.get(field.name, (lambda value: True, ""))
            if not fits(value):
                raise InputError(f"{field.name}={value!r}: it must be {words}")


_AT_LEAST_ONE = (lambda value: value >= 1, "at least 1")
_NOT_NEGATIVE = (lambda value: 0 <= value < math.inf, "at least 0")
_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "epochs": _AT_LEAST_ONE,
    "batch": _AT_LEAST_ONE,
    "learning_rate": (lambda value: 0 < value < math.inf, "above 0"),
    "momentum": (lambda value: 0 < value < 1, "above 0 and below 1"),
    "weight_decay": _NOT_NEGATIVE,
    "warm_up": (lambda value: 0 <= value < 1, "at least 0 and below 1"),
    "label_smoothing": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "seed": _NOT_NEGATIVE,
    "padding": _NOT_NEGATIVE,
    "cutout": _NOT_NEGATIVE,
    "teacher_weight": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "temperature": (lambda value: 0 < value < math.inf, "above 0"),
    "auto_augment": (lambda value: value in POLICIES, f"one of {', '.join(POLICIES)}"),
}


def _require_type(name: str, value: Any, wanted: str) -> None:
    """Settings come from files: a word in the place of a number must not get further than this."""
    kinds, words = _TYPES[wanted]
    if not isinstance(value, kinds) or (isinstance(value, bool) and wanted != "bool"):
        raise InputError(f"{name}={value!r}: give {words}")


_TYPES: dict[str, tuple[Any, str]] = {
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "bool": (bool, "true or false"),
    "str": (str, "text"),
}
