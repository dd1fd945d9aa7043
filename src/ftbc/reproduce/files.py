"""The files of all experiments: in the repository beside `src`, in an installed package inside of it."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path

from ftbc.errors import FileError, FtbcError
from ftbc.reproduce.experiment import Experiment

_PACKAGE = Path(__file__).parents[1]
FOLDERS = (_PACKAGE / "experiments", _PACKAGE.parents[1] / "experiments")


def folder() -> Path:
    """Where the files are."""
    for place in FOLDERS:
        if place.is_dir():
            return place
    raise FileError("this installation has no experiments: install ftbc again")


def experiments() -> dict[str, Experiment]:
    """Every table and figure of the paper, tables first.

    >>> experiments()["cifar10"].source
    'tab:ann-snn-cifar10'
    """
    found = [read_experiment(path) for path in sorted(folder().glob("*.toml"))]
    return {each.name: each for each in sorted(found, key=lambda each: each.kind != "table")}


def find_experiment(name: str) -> Experiment:
    """An experiment by name, or that of a .toml file."""
    if name.endswith(".toml"):
        return read_experiment(Path(name))
    known = experiments()
    if name not in known:
        nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
        raise FileError(f"there is no experiment '{name}'; did you mean '{nearest}'? All: {', '.join(known)}")
    return known[name]


def read_experiment(path: Path) -> Experiment:
    """The experiment of a TOML file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FileError(f"experiment '{path}' cannot be read: {error}") from error
    try:
        return Experiment.from_dict(content, path.stem, path.name)
    except FileError:
        raise
    except FtbcError as error:
        raise FileError(f"{path.name}: {error}") from error
