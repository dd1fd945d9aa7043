"""`ftbc bench`: a few images, one round."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import ftbc
from ftbc.measure.speed import ENGINES

from .conftest import Outcome

pytest.importorskip("numba")

Command = Callable[..., Outcome]
FEW = ("--data", "squares", "--images", "8", "--batch", "4", "--repeats", "1")
QUICK = (*FEW, "--recipe", "mean-square")


def test_bench_measures_every_engine_beside_the_ann(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("bench", "nets.py:good", *QUICK, "--steps", "1,2", "--threads", "1,2", "--json", "b.json")
    assert outcome.status == 0 and not outcome.err
    report = json.loads((folder / "b.json").read_text())
    rows = report["rows"]
    assert [(row["steps"], row["threads"], row["engine"], row["batch"]) for row in rows] == [
        (t, threads, engine, batch) for t in (1, 2) for threads in (1, 2) for engine in ENGINES for batch in (4, 1)
    ]
    assert report["model"] == "nets.py:good" and report["recipe"] == ftbc.recipe("mean-square").to_dict()
    assert report["seed"] == 0 and report["calibration_images"] == 8
    assert report["machine"]["cpu"] in outcome.out and report["machine"]["versions"]["torch"] in outcome.out
    for row in rows:
        assert 0 < row["density"] < 1 and row["repeats"] == 1 and row["ann"]["images_per_second"]["median"] > 0
        assert row["steps_over_ann"]["median"] == pytest.approx(row["steps"] * row["over_ann"]["median"])
        assert f"{100 * row['density']:.1f} % at T = {row['steps']}" in outcome.out
    lines = outcome.out.splitlines()
    assert sum(line.split()[:2] == ["1", "2"] for line in lines) == len(ENGINES), "a line an engine: T, threads"
    assert "second" not in outcome.out and "4 images at once" in outcome.out, "ratios, never bare times"
    assert torch.get_num_threads() == 1


def test_bench_of_a_saved_network(ftbc_command: Command, folder: Path) -> None:
    assert ftbc_command(
        "convert", "nets.py:good", "--data", "squares", "--images", "8", "--recipe", "maximum", "--steps", "3",
        "--to", "net.snn",
    ).status == 0  # fmt: skip
    outcome = ftbc_command(
        "bench", "nets.py:good", *FEW, "--snn", "net.snn", "--engines", "event,layerwise", "--threads", "1",
        "--json", "b.json",
    )  # fmt: skip
    assert outcome.status == 0 and "net.snn" in outcome.out
    report = json.loads((folder / "b.json").read_text())
    assert [(row["engine"], row["steps"]) for row in report["rows"][::2]] == [("event", 3), ("layerwise", 3)]
    assert report["recipe"]["name"] == "maximum" and report["calibration_images"] is None


def test_fewer_calibration_images_than_asked_for(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command(
        "bench", "resnet20-cifar10", "--images", "1", "--batch", "2", "--recipe", "maximum", "--steps", "1",
        "--repeats", "1", "--threads", "1", "--engines", "layerwise", "--json", "b.json",
    )  # fmt: skip
    assert outcome.status == 0
    report = json.loads((folder / "b.json").read_text())
    assert report["calibration_images"] == 1 and [row["batch"] for row in report["rows"]] == [2, 1]


def test_without_its_extra_the_event_engine_is_left_out(
    ftbc_command: Command, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = ftbc_command("bench", "nets.py:good", *QUICK, "--steps", "1", "--threads", "1")
    assert outcome.status == 0
    assert "event was left out" in outcome.out and "event-int16 was left out" in outcome.out
    assert "pip install 'ftbc[fast]'" in outcome.out
    assert "ftbc[fast]" in fails("bench", "nets.py:good", *QUICK, "--engines", "event")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--steps", "0"), ("--steps 0",)),
        (("--steps", "4,x"), ("--steps 4,x",)),
        (("--threads", "0"), ("--threads 0", "all")),
        (("--threads", "many"), ("--threads many", "all")),
        (("--threads", ""), ("--threads",)),
        (("--engines", "evnt"), ("evnt", "event-int16")),
        (("--engines", ""), ("engine", "event-int16")),
        (("--batch", "0"), ("--batch", "ftbc bench --help")),
        (("--repeats", "0"), ("--repeats",)),
        (("--recipe", "fbtc"), ("fbtc", "ftbc")),
        (("--snn", "none.snn"), ("--snn", "--recipe")),
        (("--json", "none/b.json"), ("none",)),
        (("--images", "999"), ("999", "24")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_goes_wrong_is_one_line(
    arguments: tuple[str, ...], words: tuple[str, ...], fails: Callable[..., str], folder: Path
) -> None:
    line = fails("bench", "nets.py:good", *QUICK, *arguments)
    assert all(word in line for word in words), line
    assert not (folder / "b.json").exists()


def test_a_network_that_does_not_fit_its_images(fails: Callable[..., str], folder: Path) -> None:
    with (folder / "nets.py").open("a") as file:
        file.write("\n\ndef double():\n    return good().double()\n")
    assert "float64" in fails("bench", "nets.py:double", *QUICK)
    assert "32" in fails("bench", "nets.py:good", *QUICK[2:])
    assert "sin" in fails("bench", "nets.py:Bad", *QUICK)


def test_no_progress_bar_in_a_pipe(ftbc_command: Command) -> None:
    outcome = ftbc_command("bench", "nets.py:good", *QUICK, "--steps", "1", "--threads", "1", "--engines", "layerwise")
    assert outcome.err == "" and "\x1b" not in outcome.out and "\r" not in outcome.out
