"""The pieces that recipes are made of, by role and name, and how to bring one of your own.

A piece is a frozen dataclass that inherits from `Piece`; its fields are numbers, True or False, or one of some words.
What it must do depends on its role:

    threshold   choose(ann, images, steps, generator, progress, team) -> theta of each site     `threshold/base.py`
    initial     (theta, steps) -> initial potential and temporal bias                           `initial/charge.py`
    calibrate   (calibration) -> None: changes calibration.snn in place                         `calibrate/base.py`
    neuron      a kind of neuron: those of this package alone, because engines and files must know them

Saved networks hold a recipe as a record. One with pieces that are not known where it is read is `Elsewhere`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ftbc import calibrate, initial, neuron, threshold
from ftbc.errors import RecipeError
from ftbc.settings import Piece

Own = TypeVar("Own", bound=type)

_OURS: dict[str, dict[str, type]] = {
    role: {
        name: kind
        for name, kind in ((name, getattr(package, name)) for name in package.__all__)
        if dataclasses.is_dataclass(kind) and issubclass(kind, Piece)  # type: ignore[arg-type]
    }
    for role, package in {"threshold": threshold, "initial": initial, "neuron": neuron, "calibrate": calibrate}.items()
}
_OWN: dict[str, dict[str, type]] = {"threshold": {}, "initial": {}, "calibrate": {}}
_NOBODY_ELSE = uuid.uuid4().hex
"""In the place of code that cannot be read: what it gave is taken for the same in this process alone."""


def piece(role: str) -> Callable[[Own], Own]:
    """Make a class of your own known as a piece of recipes, under its name.

    role: "threshold", "initial" or "calibrate".

    >>> @piece("calibrate")
    ... @dataclass(frozen=True)
    ... class Raise(Piece):
    ...     by: float = 0.1
    ...
    ...     def __call__(self, calibration):
    ...         for node in calibration.neurons():
    ...             node.module.bias.add_(self.by * node.module.threshold)
    >>> named({"type": "Raise", "by": 0.2})
    Raise(by=0.2)
    """
    if role not in _OWN:
        raise RecipeError(f"there are no own pieces of role {role!r}: choose one of {', '.join(_OWN)}")

    def known(kind: Own) -> Own:
        name = kind.__name__
        settings = getattr(kind, "__dataclass_params__", None)
        if settings is None or not settings.frozen or Piece not in kind.__mro__:
            raise RecipeError(f"piece '{name}' must be a dataclass(frozen=True) that inherits from ftbc.Piece")
        method = "choose" if role == "threshold" else "__call__"
        if not any(method in vars(base) for base in kind.__mro__):
            raise RecipeError(f"piece '{name}' has no {method}: see ftbc.pieces for what a {role} must do")
        if (name in _all() and _role(_all()[name]) != role) or any(name in found for found in _OURS.values()):
            raise RecipeError(f"there is a piece '{name}' already: choose another name")
        _OWN[role][name] = kind  # again, where a file or a cell of a notebook is run again
        return kind

    return known


def names(role: str) -> str:
    """All pieces of a role, in words."""
    return ", ".join({**_OURS[role], **_OWN.get(role, {})})


def fits(given: object, role: str) -> bool:
    """Whether something can be that part of a recipe."""
    return isinstance(given, Elsewhere) or _role(type(given)) == role


def record(given: Any) -> dict[str, Any]:
    """A piece as plain data."""
    if isinstance(given, Elsewhere):
        return {"type": given.type, **dict(given.settings)}
    return {"type": type(given).__name__, **dataclasses.asdict(given)}


def named(data: Any, *, elsewhere: bool = False) -> Any:
    """The piece of a `record`; elsewhere: where there is none of that name, keep the record as it is."""
    if not isinstance(data, Mapping):
        raise RecipeError(f"{data!r} is not a piece of a recipe: give its type and settings")
    settings = dict(data)
    name = settings.pop("type", None)
    kind = _all().get(str(name))
    if kind is None and elsewhere and isinstance(name, str):
        return Elsewhere(name, tuple(settings.items()))
    if kind is None:
        raise RecipeError(f"a recipe has no piece of type {data.get('type')!r}; there are {', '.join(_all())}")
    try:
        return kind(**settings)
    except TypeError as error:
        raise RecipeError(f"{kind.__name__} has no setting {str(error).rpartition(' ')[2]}") from error


def own_code(pieces: Iterable[object]) -> dict[str, str]:
    """A checksum of the code of each piece that is not of this package, for which alone its results hold."""
    return {type(each).__name__: _checksum(type(each)) for each in pieces if not _ours(type(each))}


@dataclass(frozen=True)
class Elsewhere:
    """A piece of a saved network whose class is not known here: its name and settings, to be shown and saved again."""

    type: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.settings:
            if not isinstance(value, bool | int | float | str):
                raise RecipeError(f"setting {name!r:.80} of piece {self.type!r:.80} is a {type(value).__name__}")

    def __call__(self, *_: Any) -> NoReturn:
        """Refuse to do what only its class can."""
        raise RecipeError(f"the piece '{self.type}' is not known here: import the file that defines it")

    choose = __call__


def _all() -> dict[str, type]:
    return {name: kind for known in (_OURS, _OWN) for found in known.values() for name, kind in found.items()}


def _role(kind: type) -> str | None:
    """The part of a recipe that a class is made for."""
    found = (role for known in (_OURS, _OWN) for role, kinds in known.items() if kinds.get(kind.__name__) is kind)
    return next(found, None)


def _ours(kind: type) -> bool:
    return any(kinds.get(kind.__name__) is kind for kinds in _OURS.values())


def _checksum(kind: type) -> str:
    try:
        # The whole file, where there is one: a piece may call what stands beside it.
        file = inspect.getsourcefile(kind)
        code = Path(file).read_bytes() if file and Path(file).is_file() else inspect.getsource(kind).encode()
    except (OSError, TypeError):
        return _NOBODY_ELSE
    return hashlib.sha256(code).hexdigest()
