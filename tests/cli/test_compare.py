"""`ftbc compare`: what it writes, what goes wrong, and what a kill leaves."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ftbc
from ftbc.cli.app import run
from ftbc.protocol import work

from .conftest import Outcome

Command = Callable[..., Outcome]
Fails = Callable[..., str]
GOOD = "nets.py:good"
DATA = ("--data", "squares", "--images", "16")
QUICK = (*DATA, "--recipes", "rmp,mean-square", "--steps", "1,2", "--seeds", "2")
FILES = ("--csv", "t.csv", "--json", "t.json", "--latex", "t.tex", "--plot", "t.png")


def test_table_and_files(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("compare", GOOD, *QUICK, *FILES)
    assert outcome.status == 0 and not outcome.err, outcome
    assert "protocol per-t: each T with a calibration of its own; 16 calibration images, seeds 0, 1" in outcome.out
    assert "8 measured now, 0 taken from comparison" in outcome.out and "nets.py:good on " in outcome.out
    content = json.loads((folder / "t.json").read_text())
    network = ftbc.cli.options.find_model(GOOD, None, None)
    test = ftbc.data.read("squares", "test")
    for row in content["rows"]:
        for seed, accuracy in zip(row["seeds"], row["accuracies"], strict=True):
            images = ftbc.data.read("squares", "train", limit=16, seed=seed)
            snn = ftbc.convert(network, images, row["steps"], row["recipe"], seed=seed)
            assert accuracy == ftbc.evaluate(snn, test).accuracy[-1]
        assert f"{row['accuracy']:.2f} +-{row['spread']:.2f}" in outcome.out
    lines = list(csv.DictReader((folder / "t.csv").read_text().splitlines()))
    assert [(line["recipe"], line["steps"], line["test_images"]) for line in lines] == [
        ("rmp", "1", "12"), ("rmp", "2", "12"), ("mean-square", "1", "12"), ("mean-square", "2", "12"),
    ]  # fmt: skip
    assert all(line["protocol"] == "per-t" and line["engine"] == "layerwise" for line in lines)
    latex = (folder / "t.tex").read_text()
    assert "Protocol per-t" in latex and r"\toprule" in latex and "made by ftbc" in latex.splitlines()[0]
    assert (folder / "t.png").read_bytes().startswith(b"\x89PNG")
    assert content["made"]["command"].startswith("ftbc") and content["made"]["machine"]["cpu"]


def test_a_second_run_and_other_protocols(ftbc_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ftbc_command("compare", GOOD, *QUICK, "--results", "kept")
    assert "8 measured now" in first.out

    def never(*_: object, **__: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(work, "convert", never)
    second = ftbc_command("compare", GOOD, *QUICK, "--results", "kept")
    assert second.status == 0 and "0 measured now, 8 taken from kept" in second.out
    assert second.out.split("\n\n")[:4] == first.out.split("\n\n")[:4]
    anytime = ftbc_command("compare", GOOD, *QUICK, "--results", "kept", "--protocol", "anytime", "--json", "a.json")
    assert anytime.status == 0 and "protocol anytime: one calibration for the largest T" in anytime.out
    assert {row["calibrated_for"] for row in json.loads((folder / "a.json").read_text())["rows"]} == {2}
    shown = ftbc_command("compare", GOOD, *QUICK, "--results", "kept", "--seeds", "3", "--only-kept")
    assert shown.status == 0 and "not measured (2 of 3 draws)" in shown.out


def test_fewer_test_images_above_a_number_of_steps(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("compare", GOOD, *QUICK, "--limit", "8", "--full-up-to", "1", "--json", "t.json")
    assert outcome.status == 0 and ["test", "images", "12", "8"] in [line.split() for line in outcome.out.splitlines()]
    rows = json.loads((folder / "t.json").read_text())["rows"]
    assert [row["test_images"] for row in rows] == [12, 8, 12, 8]
    again = ftbc_command("compare", GOOD, *QUICK, "--test-images", "8", "--json", "u.json")
    assert again.status == 0
    # The eight are those that a run on eight alone takes.
    eight = json.loads((folder / "u.json").read_text())["rows"]
    assert [row["accuracies"] for row in eight[1::2]] == [row["accuracies"] for row in rows[1::2]]


def test_a_recipe_that_does_not_apply(ftbc_command: Command, fails: Fails, folder: Path) -> None:
    outcome = ftbc_command("compare", GOOD, *QUICK, "--recipes", "qcfs,maximum", "--csv", "t.csv")
    assert outcome.status == 0 and "qcfs: " in outcome.out and "plain ReLU" in outcome.out
    lines = list(csv.DictReader((folder / "t.csv").read_text().splitlines()))
    assert [bool(line["accuracy"]) for line in lines] == [False, False, True, True] and "ReLU" in lines[0]["reason"]
    line = fails("compare", GOOD, *QUICK, "--recipes", "qcfs", "--csv", "none.csv")
    assert "none of the recipes applies" in line and not (folder / "none.csv").exists()


def test_a_recipe_from_a_file(ftbc_command: Command, folder: Path) -> None:
    own = ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=2, batch=8),), name="my_own", summary="two iterations")
    (folder / "mine.toml").write_text(own.to_toml())
    outcome = ftbc_command("compare", GOOD, *QUICK, "--recipes", "mine.toml,maximum", "--seeds", "1", "--seed", "5")
    assert outcome.status == 0 and "my_own" in outcome.out and "seed 5" in outcome.out and "+-" not in outcome.out


def test_nothing_but_text_in_a_pipe(ftbc_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    outcome = ftbc_command("compare", GOOD, *QUICK)
    assert outcome.status == 0 and outcome.err == ""
    assert outcome.out.isascii() and "\x1b" not in outcome.out and "\r" not in outcome.out


def test_the_shipped_data_is_drawn_by_seed(folder: Path) -> None:
    from ftbc.cli.options import find_draws

    draws = find_draws(None, None, ftbc.data.NORMALISATIONS["unit"], 64)
    assert not bool((draws(0).images == draws(1).images).all()) and len(draws(0)) == 64
    assert bool((draws(0).images == draws(0).images).all()) and draws(0).normalise.mean == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--recipes", "fbtc"), ("fbtc", "ftbc")),
        (("--recipes", ""), ("recipe", "ftbc methods")),
        (("--recipes", "none.toml"), ("none.toml",)),
        (("--steps", "0"), ("--steps 0",)),
        (("--steps", "1,two"), ("1,two", "1,2,4,8")),
        (("--protocol", "best"), ("best", "per-t, anytime")),
        (("--seeds", "0"), ("--seeds",)),
        (("--seed", "-1"), ("--seed",)),
        (("--limit", "5"), ("--limit", "--full-up-to")),
        (("--full-up-to", "5"), ("--limit", "--full-up-to")),
        (("--limit", "99", "--full-up-to", "1"), ("99", "12")),
        (("--images", "99"), ("99", "24")),
        (("--test-images", "99"), ("99", "12")),
        (("--engine", "evnt"), ("evnt", "layerwise")),
        (("--results", "nets.py"), ("nets.py", "not a folder")),
        (("--csv", "no/t.csv"), ("no/t.csv",)),
        (("--latex", "squares"), ("squares",)),
        (("--plot", "t.txt"), ("t.txt", ".png")),
        (("--plot", "no/t.png"), ("no/t.png",)),
        (("--data", "circles"), ("circles",)),
        (("--data", "squares/squares_test.npz"), ("--calibration",)),
        (("--normalise", "cifra10"), ("cifra10",)),
        (("--weights", "x.pt"), ("x.pt",)),
        (("--only-kept",), ("comparison", "none of these measurements")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_goes_wrong_is_one_line_and_nothing_is_written(
    arguments: tuple[str, ...], words: tuple[str, ...], fails: Fails, folder: Path
) -> None:
    before = sorted(folder.iterdir())
    line = fails("compare", GOOD, *QUICK, *FILES, *arguments)
    assert all(word in line for word in words), line
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


def test_networks_that_do_not_convert(fails: Fails, folder: Path) -> None:
    assert "sin" in fails("compare", "nets.py:Bad", *QUICK)
    assert "32" in fails("compare", GOOD, "--recipes", "maximum")  # the shipped images are larger
    assert not (folder / "comparison").exists()


def test_a_full_disk(fails: Fails, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    calls: list[int] = []

    def full(_: int) -> None:
        calls.append(1)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ftbc.atomic.os.fsync", full)
    assert "cannot write" in fails("compare", GOOD, *QUICK, *FILES)
    kept = sorted(path.name for path in (folder / "comparison").iterdir())
    assert len([name for name in kept if name.endswith(".json")]) == 3 and not any("partial" in name for name in kept)
    assert not (folder / "t.csv").exists()


def test_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made: list[int] = []
    real = work.convert

    def interrupt(*args: Any, **named: Any) -> ftbc.SpikingNetwork:
        made.append(1)
        if len(made) == 4:
            raise KeyboardInterrupt
        return real(*args, **named)

    monkeypatch.setattr(work, "convert", interrupt)
    assert run(["compare", GOOD, *QUICK, *FILES]) == 130
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.splitlines() == [
        "ftbc: 4 measurements are kept in 'comparison': the same command goes on from there, and with --only-kept it "
        "shows what there is",
        "ftbc: interrupted",
    ]  # fmt: skip
    assert not list(folder.glob("t.*"))
    assert run(["compare", GOOD, *QUICK]) == 0 and len(made) == 4 + 5
    assert "5 measured now, 3 taken" in capsys.readouterr().out


# ---- processes -------------------------------------------------------------------------------------------


def started(folder: Path, environment: dict[str, str], *arguments: str, **pipes: Any) -> subprocess.Popen[str]:
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    command = [sys.executable, "-m", "ftbc", "compare", GOOD, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **settings)


def slow_recipe(folder: Path, iterations: int) -> None:
    own = ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=iterations, batch=8),), name="slow")
    (folder / "slow.toml").write_text(own.to_toml())


def figures(folder: Path) -> dict[str, Any]:
    """What was measured, but for the time it took."""
    found = {}
    for path in folder.glob("t*.json"):
        result = json.loads(path.read_text())["result"]
        found[path.name] = {name: value for name, value in result.items() if name != "calibration_seconds"}
    return found


def test_a_killed_run_goes_on(ftbc_command: Command, folder: Path, environment: dict[str, str]) -> None:
    slow_recipe(folder, 30)
    options = (*DATA, "--recipes", "mean-square,slow.toml", "--steps", "1,2,3", "--seeds", "2")
    terminal, screen = pty.openpty()
    process = started(folder, environment, *options, stderr=screen)
    os.close(screen)
    place = folder / "comparison"
    shown = ""
    os.set_blocking(terminal, False)
    while process.poll() is None and len(list(place.glob("t*.json"))) < 3:
        with contextlib.suppress(OSError):  # nothing to read yet; a full terminal would stop it
            shown += os.read(terminal, 1 << 16).decode(errors="replace")
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL and out == ""
    os.close(terminal)
    assert "comparing" in shown and " %" in shown
    kept = figures(place)
    assert 3 <= len(kept) < 12
    outcome = ftbc_command("compare", *(GOOD, *options))
    assert outcome.status == 0 and f"{12 - len(kept)} measured now, {len(kept)} taken" in outcome.out
    assert ftbc_command("compare", GOOD, *options, "--results", "unbroken").status == 0
    assert figures(place) == figures(folder / "unbroken") and len(figures(place)) == 12


@pytest.mark.slow
def test_two_runs_in_one_folder_share_the_work(folder: Path, environment: dict[str, str]) -> None:
    slow_recipe(folder, 200)
    options = (*DATA, "--recipes", "mean-square,slow.toml", "--steps", "1,2,3", "--seeds", "3")
    runs = [started(folder, environment, *options) for _ in range(2)]
    ended = [run.communicate(timeout=240) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ended
    measured = [int(out.rpartition(" measured now")[0].rpartition("\n")[2]) for out, _ in ended]
    assert sum(measured) == 18 and min(measured) > 0, measured
    first, second = (out.split("\n\n")[1] for out, _ in ended)
    assert first == second


# ---- held-out training images --------------------------------------------------------------------------------


@pytest.mark.parametrize("mirrored", [(), ("--mirrored",)])
def test_held_out_images_are_training_images_that_no_calibration_draws(
    ftbc_command: Command, folder: Path, mirrored: tuple[str, ...]
) -> None:
    options = ("--data", "squares", "--images", "8", "--held-out", "12", *mirrored)
    few = ("--recipes", "mean-square", "--steps", "2", "--seeds", "2", "--json", "t.json")
    outcome = ftbc_command("compare", GOOD, *options, *few)
    assert outcome.status == 0 and "held out" in outcome.out, outcome
    divided = ftbc.cli.options.find_held_out("squares", None, 8, 12, 0)
    pixels = {image.numpy().tobytes() for image in divided.held_out.images}
    for seed in (0, 1):
        assert not pixels & {image.numpy().tobytes() for image in divided.draw(seed).images}
    (row,) = json.loads((folder / "t.json").read_text())["rows"]
    network = ftbc.cli.options.find_model(GOOD, None, None)
    for seed, accuracy in zip(row["seeds"], row["accuracies"], strict=True):
        drawn = divided.draw(seed).with_mirrored() if mirrored else divided.draw(seed)
        snn = ftbc.convert(network, drawn, 2, "mean-square", seed=seed)
        assert accuracy == ftbc.evaluate(snn, divided.held_out).accuracy[-1]
    assert row["test_images"] == 12 and row["calibration_images"] == 8 * (1 + len(mirrored))


def test_held_out_images_may_come_from_a_file_of_calibration_images(ftbc_command: Command, folder: Path) -> None:
    options = ("--data", "squares/squares_test.npz", "--calibration", "squares/squares_train.npz")
    few = ("--images", "8", "--held-out", "12", "--recipes", "mean-square", "--steps", "2", "--seeds", "1")
    assert ftbc_command("compare", GOOD, *options, *few).status == 0


def test_held_out_images_that_cannot_be_had(fails: Fails) -> None:
    few = ("--recipes", "mean-square", "--steps", "2")
    said = fails("compare", GOOD, *DATA, "--held-out", "9", *few)
    assert "16 images to calibrate on and 9 held out are more than the 24 training images" in said
    said = fails("compare", GOOD, *DATA, "--held-out", "4", "--test-images", "4", *few)
    assert "--held-out" in said and "--test-images" in said
    said = fails("compare", GOOD, "--data", "squares/squares_test.npz", "--held-out", "4", *few)
    assert "is one file" in said
