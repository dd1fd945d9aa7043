"""Spaces of settings: what a file may say, and the recipes that proposals stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

import ftbc
from ftbc.errors import FileError
from ftbc.search.space import Choices, Range, read_space
from ftbc.threshold import MeanSquare, Percentile
from tests.conftest import Refused

GOOD = """
base = "ftbc"
steps = [8, 2, 8]

[space]
"calibrate.0.alpha" = { low = 0.01, high = 1.0, log = true }
"calibrate.0.iterations" = { low = 1, high = 20 }
"threshold" = { choices = [{ type = "MeanSquare" }, { type = "Percentile", percent = 99.9 }] }
"pool" = { choices = ["spiking", "average"] }
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_space(tmp_path: Path) -> None:
    space = read_space(written(tmp_path / "space.toml", GOOD))
    assert space.steps == (2, 8) and space.base == ftbc.recipe("ftbc")
    alpha, iterations = space.places["calibrate.0.alpha"], space.places["calibrate.0.iterations"]
    assert alpha == Range(0.01, 1.0, True) and not alpha.whole and iterations == Range(1, 20) and iterations.whole
    threshold = space.places["threshold"]
    assert isinstance(threshold, Choices) and len(threshold.texts) == 2
    made = space.recipe({"calibrate.0.alpha": 0.3, "threshold": threshold.texts[1], "pool": '"average"'})
    assert made.calibrate == (ftbc.FTBC(alpha=0.3),) and made.threshold == Percentile(99.9) and made.pool == "average"
    assert space.recipe({}).threshold == MeanSquare() and space.base == ftbc.recipe("ftbc"), "the base stays as it is"


def test_a_base_from_a_file_beside_it(tmp_path: Path) -> None:
    own = ftbc.recipe("ftbc", name="own", calibrate=(ftbc.FTBC(iterations=3), ftbc.FTBC(alpha=0.1)))
    written(tmp_path / "own.toml", own.to_toml())
    text = 'base = "own.toml"\n[space]\n"calibrate.1.alpha" = { low = 0.1, high = 0.9 }\n'
    space = read_space(written(tmp_path / "space.toml", text))
    assert space.base == own and space.steps == (8,)
    assert space.recipe({"calibrate.1.alpha": 0.5}).calibrate == (ftbc.FTBC(iterations=3), ftbc.FTBC(alpha=0.5))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base = [", "cannot be read"),
        ("seed = 3", "'seed'"),
        ("steps = [0]\n[space]\npool = { choices = ['average'] }", "steps"),
        ("steps = 4\n[space]\npool = { choices = ['average'] }", "steps"),
        ("base = 'ftbc'", "no [space]"),
        ("base = 3\n[space]\npool = { choices = ['average'] }", "base"),
        ("[space]\n'calibrate.0.alhpa' = { low = 0, high = 1 }", "'alhpa' there; there is type, alpha"),
        ("[space]\n'calibrate.7.alpha' = { low = 0, high = 1 }", "'7'"),
        ("[space]\n'calibrate.0.alpha.more' = { low = 0, high = 1 }", "nothing inside"),
        ("[space]\n'calibrate.0.alpha' = { low = 1, high = 0 }", "lower first"),
        ("[space]\n'calibrate.0.alpha' = { low = 0, high = 1, log = true }", "above zero"),
        ("[space]\n'calibrate.0.alpha' = { low = 0, high = inf }", "two numbers"),
        ("[space]\n'calibrate.0.alpha' = { low = '0', high = 1 }", "two numbers"),
        ("[space]\n'calibrate.0.alpha' = { choices = [] }", "no range"),
        ("[space]\n'calibrate.0.alpha' = 0.5", "no range"),
        ("[space]\n'calibrate.0.alpha' = { choices = [1979-05-27] }", "date"),
    ],
)
def test_wrong_spaces(text: str, words: str, tmp_path: Path, refused: Refused) -> None:
    refused(FileError, ("space.toml", words), read_space, written(tmp_path / "space.toml", text))


def test_the_space_of_the_paper() -> None:
    space = read_space(Path(__file__).parents[2] / "experiments" / "search" / "ftbc.toml")
    assert set(space.places) == {"calibrate.0.alpha", "calibrate.0.iterations", "calibrate.0.batch"}
