"""Comparisons in parts: put together they are the whole, and nothing may be missing or there twice."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ftbc
from ftbc.errors import FileError, InputError
from ftbc.protocol.shards import Shard
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, residual

Compare = Callable[..., ftbc.Comparison]


@pytest.fixture(scope="module")
def compare() -> Compare:
    torch.manual_seed(0)
    model = residual()
    pool, x = (torch.randn(count, *INPUT_SHAPE, dtype=torch.float64) for count in (12, 9))
    exam = (x, model(x).argmax(1))

    def run(**named: Any) -> ftbc.Comparison:
        named = {"seeds": 2, "images": 6, "limit": 5, "full_up_to": 1, **named}
        return ftbc.compare(model, pool, exam, ["maximum", "mean-square", "qcfs"], (1, 2), **named)

    return run


@pytest.fixture(scope="module")
def parts(compare: Compare, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("shards")
    for number in (1, 2, 3):
        part = compare(shard=f"{number}/3", results=folder / str(number))
        assert part.measured in (2, 3) and part.kept == 0
    return [folder / str(number) for number in (1, 2, 3)]


def timeless(table: ftbc.Comparison) -> list[Any]:
    return [dataclasses.replace(row, calibration_seconds=None) for row in table.rows]


def test_the_parts_are_the_whole(compare: Compare, parts: list[Path], tmp_path: Path) -> None:
    whole = compare()
    merged = compare(merged=parts, results=tmp_path / "merged")
    assert timeless(merged) == timeless(whole) and merged.ann == whole.ann
    assert (merged.measured, merged.kept) == (0, whole.measured) and merged.refused() == whole.refused()
    files = [path.name for part in parts for path in part.glob("t*.json")]
    assert len(files) == len(set(files)) == whole.measured
    again = compare(results=tmp_path / "merged")
    assert again.measured == 0, "what is merged is kept as if it was measured there"


def test_what_is_missing_or_doubled_is_named(
    compare: Compare, parts: list[Path], tmp_path: Path, refused: Refused
) -> None:
    merged = {"results": tmp_path / "merged"}
    refused(FileError, ("shard 2/3", "missing"), compare, merged=[parts[0], parts[2]], **merged)
    refused(FileError, ("shard 1/3", "'1'".strip("'")), compare, merged=[*parts, parts[0]], **merged)
    refused(FileError, "not a folder", compare, merged=[*parts, tmp_path / "none"], **merged)
    refused(FileError, "same options", compare, merged=parts, engine="stepwise", **merged)
    whole = tmp_path / "whole"
    compare(shard="1/1", results=whole)
    refused(FileError, "shards of 1/1 and 1/3", compare, merged=[*parts, whole], **merged)
    copies = [Path(shutil.copytree(part, tmp_path / part.name)) for part in parts]
    lost = next(copies[1].glob("t2-*.json"))
    kept = lost.read_bytes()
    lost.write_bytes(kept[:-40])
    refused(FileError, ("none of the shards holds", "at T = 2"), compare, merged=copies, **merged)
    lost.write_bytes(kept)
    (copies[0] / lost.name).write_bytes(kept)
    refused(FileError, ("measured twice", str(copies[0])), compare, merged=copies, **merged)
    note = next(copies[2].glob("shard3of3-*.json"))
    note.unlink()
    refused(FileError, ("shard 3/3", "not at its end"), compare, merged=copies, **merged)
    assert not list((tmp_path / "merged").glob("t*.json")) or compare(results=tmp_path / "merged").kept < 8


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "-1/2", "1/2/3", "a/b", "1/ 2", "99999999/1"])
def test_wrong_shards(text: str, refused: Refused) -> None:
    refused(InputError, "such as 1/4", Shard.of, text)


def test_more_shards_than_work(compare: Compare, tmp_path: Path) -> None:
    table = compare(shard="40/50", results=tmp_path)
    assert table.measured == 0 and [path.name[:9] for path in tmp_path.glob("*.json")] == ["shard40of"]
