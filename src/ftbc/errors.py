"""Every error a user can meet. Each message is one line that names the thing, the place and the remedy."""

from __future__ import annotations

from typing import ClassVar

_LONGEST = 2000


class FtbcError(Exception):
    """Base of all errors meant for a user; the command line shows its text alone and exits with status 2.

    Whatever a file or a name brings into a message, it stays one line without control characters.
    """

    _kept: ClassVar[str] = ""
    """Letters that stay although they cannot be printed."""

    def __init__(self, message: object = "") -> None:
        letters = str(message)[: _LONGEST + 1]
        text = "".join(letter if letter.isprintable() or letter in self._kept else " " for letter in letters)
        super().__init__(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ...")


class TraceError(FtbcError):
    """The network's forward could not be followed."""


class UnsupportedError(FtbcError):
    """The network holds something that spikes cannot pass: a line for each such thing."""

    _kept = "\n"


class InputError(FtbcError):
    """Data of the wrong shape, type, device or content."""


class NotFiniteError(FtbcError):
    """NaN or infinity in inputs, weights or activations."""


class RecipeError(FtbcError):
    """An unknown recipe, a wrong setting, or pieces that do not go together."""


class FileError(FtbcError):
    """A file that is missing, damaged, foreign or cannot be written."""


class ModelError(FtbcError):
    """A model that is not in the zoo, a setting that it does not have, or weights that do not fit it."""


class ProcessError(FtbcError):
    """Other processes of the same job are gone."""


class MissingExtraError(FtbcError):
    """An optional package is needed that is not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}': install it with pip install 'ftbc[{extra}]'")


def first_line(error: BaseException) -> str:
    """What an error of other people's code says, fit to be part of a message of ours: one short line, printable."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "".join(letter if letter.isprintable() else " " for letter in lines[0][:300])
