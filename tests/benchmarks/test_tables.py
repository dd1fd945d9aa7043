"""The page on speed: its tables are made of results, all of them, and no figure of it is typed by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="not part of a source distribution")

from benchmarks import results, tables
from benchmarks.page import BLOCK, filled
from benchmarks.settings import Settings
from benchmarks.speed_tables import BLOCKS, block, table
from ftbc.measure.speed import ENGINES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "speed.md").read_text()


def spread(value: float) -> dict[str, float]:
    return {"median": value, "low": value - 0.01, "high": value + 0.01}


def engine_rows(**more: Any) -> list[dict[str, Any]]:
    return [
        {
            "network": "Net", "weights": "trained", "pictures": "CIFAR-10", "recipe": "ftbc", "engine": engine,
            "steps": steps, "batch": batch, "threads": threads, "density": 0.125, "repeats": 5,
            "over_ann": spread(steps + index / 10), "steps_over_ann": spread(steps * 2.0),
            "ann": {"batch": 8, "layout": "plain layout", "images_per_second": spread(900)}, **more,
        }
        for threads in (1, 2)
        for steps in (4, 8)
        for index, engine in enumerate(ENGINES)
        for batch in (64, 1)
    ]  # fmt: skip


ROWS: dict[str, list[dict[str, Any]]] = {
    "engines": engine_rows(),
    "anns": [
        {
            "what": what, "steps": steps, "threads": 1, "one_image_at_a_time": alone, "n": 64, "recipe": "ftbc",
            "density": None if steps is None else 0.1, "over_ann": spread(1.5), "same_class_as_ann": 0.5, "repeats": 5,
        }
        for what, steps in (("ANN, torch, float32", None), ("SNN, events, int16", 4), ("SNN, events, int16", 8))
        for alone in (False, True)
    ],
    "peers": [
        {
            "program": program, "steps": 8, "threads": 1, "n": 64, "recipe": "mean-square", "density": 0.2,
            "ours_over_this": {"ftbc, layerwise": spread(1.25)} if "ftbc" not in program else {}, "same_class": 1.0,
            "rival_versions": {"snntorch": "1.0.0"}, "repeats": 5,
        }
        for program in ("ftbc, layerwise", "snnTorch, same network")
    ],
    "growth": [
        {**row, "growth": what, **more}
        for what, more in (
            ("T", {}), ("batch", {}), ("width", {"width": 2}), ("density", {"wanted_density": 0.05}),
            ("density", {"wanted_density": 0.5}),
        )
        for row in engine_rows()[:16]
    ],
    "calibration": [
        {"what": "a over b", "steps": 4, "n": 32, "threads": threads, "ratio": spread(21.5), "repeats": 5}
        for threads in (1, 2)
    ],
    "kinds": [
        {"kind": kind, "steps": 16, "n": 64, "threads": threads, "over": spread(2.5 * threads),
         "over_usual": spread(0.5), "repeats": 5}
        for threads in (1, 2)
        for kind in ("signed", "burst")
    ],
    "sparing": [
        {"kind": kind, "network": "Net", "steps": steps, "n": 8, "threads": 1, "over": spread(steps / 8), "repeats": 5}
        for steps in (16, 64)
        for kind in ("signed", "burst")
    ],
    "memory": [
        {
            "network": "Net", "engine": engine, "steps": steps, "n": 64, "threads": 2, "grown_mb": spread(steps * 3.0),
            "repeats": 5,
        }
        for steps in (8, 128)
        for engine in ENGINES
    ],
    "calibration-memory": [
        {
            "network": "Net", "recipe": "best", "steps": steps, "n": n, "threads": 2, "grown_mb": spread(n * 2.0),
            "repeats": 5,
        }
        for steps, n in ((4, 256), (4, 1024), (32, 256))
    ],
    "profiles": [
        {
            "network": "Net", "engine": engine, "work": work, "steps": 8, "n": 64, "density": 0.1,
            "percent": spread(50.0), "time_over_layerwise": spread(2.0), "repeats": 5,
        }
        for engine in ("plain", *ENGINES)
        for work in ("one", "other")
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part, rows in ROWS.items():
        results.write(Settings(to=tmp_path), part, rows, ["x was left out"] if part == "peers" else [])
    return tmp_path


def test_a_table() -> None:
    assert table(["a", "b"], [["1", "2"], ["3", "4"]]) == "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_a_table_with_its_command(name: str, folder: Path) -> None:
    made = block(name, folder)
    assert f"`python -m benchmarks {BLOCKS[name][0]}`" in made and "median of 5 interleaved rounds" in made
    if name != "plot":
        lines = [line for line in made.splitlines() if line.startswith("|")]
        assert len(lines) > 2 and "None" not in made and "nan" not in made
    for text in made.split("\n\n"):
        columns = {line.count("|") for line in text.splitlines() if line.startswith("|")}
        assert len(columns) <= 1, "every line of a table has as many cells"


def test_cells_are_found_where_they_belong(folder: Path) -> None:
    made = block("engines", folder)
    assert "| events, int16 (rounded), 2 threads | 4.30 (4.29..4.31) | 8.30 (8.29..8.31) | 4.30" in made
    assert "12.5 % at T = 4, 12.5 % at T = 8" in made and "1 thread: batch 8, plain layout" in made
    assert "| layerwise | 24.0 (24.0..24.0) | 384 (384..384) | 16.00 |" in block("memory", folder)
    row = "| burst | 2.50 (2.49..2.51) | 5.00 (4.99..5.01) | 0.50 (0.49..0.51) | 0.50 (0.49..0.51) |"
    assert row in block("kinds", folder)
    assert "| signed | 2.00 (1.99..2.01) | 8.00 (7.99..8.01) |" in block("sparing", folder)
    assert "| 1,024 images | 2048 (2048..2048) | - |" in block("calibration-memory", folder)
    assert "| snnTorch, same network | 8 | 1 | 1.25 (1.24..1.26) | 100.0 % |" in block("peers", folder)
    assert "*x was left out*" in block("peers", folder) and "\n| ftbc, layerwise |" not in block("peers", folder)
    assert "| SNN, events, int16, T = 8 | 1.50 (1.49..1.51) | 1.50 (1.49..1.51) | 50.0 % |" in block("anns", folder)


def test_without_results_the_blocks_say_so(tmp_path: Path) -> None:
    for name, (part, _) in BLOCKS.items():
        assert "Not measured yet" in block(name, tmp_path) and f"bench-{part}.json" in block(name, tmp_path)
    results.write(Settings(to=tmp_path), "growth", ROWS["growth"][:4])
    assert "Not measured: density" in block("growth-density", tmp_path) + block("plot", tmp_path)
    results.write(Settings(to=tmp_path), "memory", [], ["left out: no /proc"])
    assert "left out: no /proc" in block("memory", tmp_path)


def test_the_page_has_every_block_once() -> None:
    assert sorted(re.findall(r"<!-- table ([a-z-]+):", PAGE)) == sorted(BLOCKS)
    assert PAGE.count("<!-- end -->") == len(BLOCKS)


def test_the_page_shows_the_results_of_the_repository() -> None:
    assert filled(PAGE, tables.blocks(ROOT / "results")) == PAGE, "run python -m benchmarks.tables --write"


def test_the_page_has_no_figures_of_speed_outside_its_blocks() -> None:
    prose = BLOCK.sub("", PAGE).replace("3 x 3", "")
    assert not re.search(r"\d(\.\d+)? ?(x|%|times|ms|images/s)\b", prose)


def test_filling_in_keeps_the_prose_and_can_be_repeated(folder: Path) -> None:
    page = filled(PAGE, tables.blocks(folder))
    assert page != PAGE and filled(page, tables.blocks(folder)) == page
    assert BLOCK.sub("", page) == BLOCK.sub("", PAGE)
    with pytest.raises(SystemExit, match="no table 'nothing'"):
        filled("<!-- table nothing: x -->\n<!-- end -->", tables.blocks(folder))


def test_writing_the_page_draws_the_plot(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    root = tmp_path / "copy"
    (root / "docs").mkdir(parents=True)
    for page in tables.pages(folder):
        (root / page).write_text("" if page != tables.PAGE else PAGE)
    tables.write(folder, root)
    page = root / tables.PAGE
    assert page.read_text() == filled(PAGE, tables.blocks(folder))
    picture = page.parent / "speed-density.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000
    assert f"]({picture.name})" in page.read_text()


def test_every_page_shows_the_results_of_the_repository() -> None:
    for page, blocks in tables.pages(ROOT / "results").items():
        text = (ROOT / page).read_text()
        assert sorted(match["name"] for match in BLOCK.finditer(text)) == sorted(blocks)
        assert filled(text, blocks) == text, "run python -m benchmarks.tables --write"


def test_tables_of_accuracy_pass_over_the_benchmarks(folder: Path) -> None:
    assert tables.tables(folder) == ""


def test_kept_measurements_stand_beside_results(tmp_path: Path) -> None:
    row = {"recipe": {"name": "ftbc"}, "steps": 2, "accuracy": [30.0, 40.0], "images": 100, "reference_accuracy": 90.0}
    (tmp_path / "resnet20-cifar10.json").write_text(json.dumps({"results": [row]}))
    (tmp_path / "beyond").mkdir()
    made = {"model": "resnet20-pad with resnet20-12fca82f.th", "recipe": "best"}
    kept = {"made": made, "result": {"accuracy": [10.0, 60.0], "images": 50}}
    (tmp_path / "beyond" / "t2.json").write_text(json.dumps(kept))
    shown = tables.tables(tmp_path).splitlines()
    assert shown[0] == "**ResNet-20 on CIFAR-10 (`resnet20-pad`, public weights)**, ANN 90.00 % (100 test images)"
    assert shown[-2:] == ["| FTBC | 40.00 |", "| `best` | 60.00 (50) |"]
    (tmp_path / "beyond" / "t2-again.json").write_text(json.dumps(kept))
    with pytest.raises(ValueError, match="best at T = 2 was measured twice"):
        tables.tables(tmp_path)


def test_the_headline_has_ratios_of_medians() -> None:
    lines = tables.headline(ROOT / "results").splitlines()
    assert lines[0].startswith("| images/s of | over | T = 4 |") and "None" not in "".join(lines)
    assert len({line.count("|") for line in lines}) == 1
