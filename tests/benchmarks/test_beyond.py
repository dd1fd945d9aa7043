"""The ladder of pieces: which recipes, on which images, and the tables made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("benchmarks", reason="not part of a source distribution")

import ftbc
from benchmarks import beyond
from ftbc.calibrate import Gain, ReadOut
from ftbc.data import NORMALISATIONS, Images

PAGE = Path(__file__).parents[2] / "docs" / "beyond-ftbc.md"


def test_the_ladder_ends_in_best_and_every_rung_adds_something() -> None:
    rungs = list(beyond.LADDER.values())
    assert rungs[0] == () and rungs[-1] == ftbc.recipe("best").calibrate
    assert len(set(map(str, rungs))) == len(rungs)
    assert not any(isinstance(piece, ReadOut) for piece in rungs[-3]) and isinstance(rungs[-2][-1], ReadOut)
    assert not any(isinstance(piece, Gain) for piece in beyond.LEFT_OUT["without gain"])
    assert all(len(pieces) == len(rungs[-1]) - 1 for pieces in beyond.LEFT_OUT.values())
    assert len({recipe.name for recipe in beyond.recipes()}) == 1 + len(rungs) + len(beyond.LEFT_OUT)


def test_halves_have_nothing_in_common() -> None:
    pixels = torch.arange(60, dtype=torch.uint8).view(60, 1, 1, 1).expand(60, 3, 2, 2).contiguous()
    train = Images(pixels, torch.arange(60) % 4, NORMALISATIONS["unit"], "numbers")
    calibration, held = beyond.halves(train, 20)
    one, other = (set(part.images[:, 0, 0, 0].tolist()) for part in (calibration, held))
    assert len(one) == 40 and len(other) == 20 and not one & other
    again = beyond.halves(train, 20)[1]
    assert torch.equal(again.images, held.images)


def test_tables_are_put_into_the_page(tmp_path: Path) -> None:
    rows = [{"recipe": name, "steps": t, "accuracy": 50.0 + t} for name in ("ftbc", "a piece") for t in (1, 4)]
    (tmp_path / "beyond-net.json").write_text(json.dumps({"steps": [1, 4], "rows": rows}))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table net: a command -->\nold\n<!-- end -->\nafter\n")
    beyond.write(page, tmp_path)
    text = page.read_text()
    assert "| a piece | 51.0 | 54.0 |" in text and "old" not in text and text.startswith("before") and "after" in text


def test_the_page_shows_what_is_kept() -> None:
    text = PAGE.read_text()
    for match in beyond._BLOCK.finditer(text):
        assert beyond.block(match["name"], PAGE.parents[1] / "results") in text
