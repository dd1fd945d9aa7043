"""Long commands that are killed at any moment and run again: they end with what an unbroken run gives."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ftbc import zoo
from ftbc.data import Images, Normalise, write_npz
from tests.team import torchrun

KILLS = 6
"""Of each command: with five commands thirty."""
# Counts are kept after every batch, so that a kill falls between two of them.
MAIN = "from ftbc.protocol import kept_evaluation as k; k.EVERY = 0.0; from ftbc.cli import main; main()"
NET = "nets.py:make"
NETS = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 32), nn.ReLU(), nn.Linear(32, 4)]
    return nn.Sequential(*layers)
"""
TABLE = """
title = "Squares"
kind = "table"
about = "Two methods on squares."
[full]
steps = [1, 4, 8]
seeds = 2
images = 32
[small]
steps = [1]
[networks.net]
full = { architecture = "resnet20", classes = 10, weights = "net.safetensors" }
[[part]]
title = "Squares"
data = "cifar10"
[[part.row]]
method = "thresholds alone"
network = "net"
recipe = "mean-square"
paper = {}
[[part.row]]
method = "FTBC"
network = "net"
recipe = "ftbc"
paper = {}
"""
SPACE = 'steps = [2]\n[space]\n"calibrate.0.alpha" = { low = 0.1, high = 0.9 }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "table.toml").write_text(TABLE)
    blueprint = zoo.Blueprint("resnet20", classes=10, width=0.125)
    zoo.save_weights(blueprint.build(), tmp_path / "net.safetensors", blueprint)
    (tmp_path / "squares").mkdir()
    for split, count in (("train", 96), ("test", 2000)):
        labels = torch.arange(count) % 4
        noise = torch.randint(0, 50, (count, 3, 6, 6), generator=torch.Generator().manual_seed(count))
        pixels = (noise + 60 * labels.view(-1, 1, 1, 1)).to(torch.uint8)
        images = Images(pixels, labels, Normalise((0.5,) * 3, (0.25,) * 3), split)
        write_npz(tmp_path / "squares" / f"squares_{split}.npz", images)
    return tmp_path


def _json(path: Path) -> Any:
    """A result without the times that it took."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            words = ("seconds", "made", "kept", "measured", "per_second", "images_per_second", "seconds_left")
            return {k: timeless(v) for k, v in value.items() if not any(word in k for word in words)}
        return [timeless(entry) for entry in value] if isinstance(value, list) else value

    return timeless(json.loads(path.read_text()))


def _trained(folder: Path, name: str) -> Any:
    return (folder / f"{name}.safetensors").read_bytes()


COMMANDS: dict[str, tuple[Callable[[str], list[str]], Callable[[Path, str], Any]]] = {
    "train": (
        lambda name: ["train", "resnet20", "--data", "squares", "--epochs", "12", "--batch", "16", "--width", "0.25",
                      "--to", f"{name}.safetensors"],
        _trained,
    ),
    "evaluate": (
        lambda name: ["evaluate", NET, "--data", "squares", "--images", "32", "--steps", "8,16", "--recipe",
                      "mean-square,ftbc", "--results", f"{name}-kept", "--json", f"{name}.json"],
        lambda folder, name: _json(folder / f"{name}.json"),
    ),
    "compare": (
        lambda name: ["compare", NET, "--data", "squares", "--images", "32", "--steps", "1,4,16", "--seeds", "2",
                      "--results", f"{name}-kept", "--json", f"{name}.json"],
        lambda folder, name: _json(folder / f"{name}.json"),
    ),
    "search": (
        lambda name: ["search", NET, "--space", "space.toml", "--data", "squares", "--images", "16", "--held-out", "48",
                      "--trials", "8", "--results", f"{name}-kept", "--json", f"{name}.json"],
        lambda folder, name: [(t["settings"], t["value"]) for t in _json(folder / f"{name}.json")["trials"]],
    ),
    "reproduce": (
        lambda name: ["reproduce", "table.toml", "--data", "cifar10=squares", "--weights", ".", "--test-images", "200",
                      "--to", name],
        lambda folder, name: (folder / name / "table.csv").read_text(),
    ),
}  # fmt: skip


def _started(folder: Path, environment: dict[str, str], arguments: list[str]) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", MAIN, *arguments], cwd=folder, env=environment, **pipes)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_at_any_moment(command: str, folder: Path, environment: dict[str, str]) -> None:
    if command == "search":
        pytest.importorskip("optuna")
    arguments, result = COMMANDS[command]
    begun = time.monotonic()
    whole = _started(folder, environment, arguments("whole"))
    _, errors = whole.communicate(timeout=600)
    seconds = time.monotonic() - begun
    assert whole.returncode == 0, errors
    chance, kills = random.Random(command), 0
    for _ in range(4 * KILLS):
        process = _started(folder, environment, arguments("broken"))
        time.sleep(chance.uniform(0.2, 0.9) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        if kills == KILLS:
            break
        if process.returncode == 0:  # it was faster this time: begin anew, there is nothing left to kill
            _forget(folder)
    last = _started(folder, environment, arguments("broken"))
    _, errors = last.communicate(timeout=600)
    assert last.returncode == 0 and kills == KILLS, errors
    assert result(folder, "broken") == result(folder, "whole")


def _forget(folder: Path) -> None:
    for path in folder.glob("broken*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_dead_process_ends_the_job_and_a_rerun_goes_on(
    command: str, folder: Path, environment: dict[str, str]
) -> None:
    arguments, result = COMMANDS[command]
    whole = _started(folder, environment, arguments("whole"))
    _, errors = whole.communicate(timeout=600)
    assert whole.returncode == 0, errors
    endless = ["--recipes" if command == "compare" else "--recipe", "endless.toml", "--steps", "2"]
    (folder / "endless.toml").write_text(
        'name = "endless"\n[threshold]\ntype = "MeanSquare"\n[[calibrate]]\ntype = "FTBC"\niterations = 1000000\n'
    )
    job = torchrun(2, "ftbc", *arguments("broken"), *endless, folder=folder, environment=environment)
    victim = _child(job.pid, "RANK=1")
    time.sleep(10)
    begun = time.monotonic()
    victim.send_signal(signal.SIGKILL)
    out, errors = job.communicate(timeout=120)
    assert job.returncode != 0 and time.monotonic() - begun < 60, errors
    assert "SIGKILL" in errors or "Signal 9" in errors, errors
    job = torchrun(2, "ftbc", *arguments("broken"), folder=folder, environment=environment)
    out, errors = job.communicate(timeout=600)
    assert job.returncode == 0, errors
    assert result(folder, "broken") == result(folder, "whole") and out.count("ANN") >= 1


class _Process:
    def __init__(self, number: int) -> None:
        self.number = number

    def send_signal(self, kind: int) -> None:
        import os

        os.kill(self.number, kind)


def _child(parent: int, word: str) -> _Process:
    """The process below another that has a word in its environment."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(status[1]) == parent and word.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    return _Process(int(folder.name))
            except (OSError, IndexError):
                continue
        time.sleep(0.1)
    raise AssertionError("the job has no such process")
