"""A network file and a data set of a few bytes, in a folder that is the working directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from ftbc.cli.app import run
from ftbc.data import Images, Normalise, write_npz

NETWORKS = """
import torch
from torch import nn
import neighbour


def good():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 8), nn.ReLU(), nn.Linear(8, 4)]
    return nn.Sequential(*layers)


def plane():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))


class Bad(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 36, 4)

    def forward(self, x):
        x = torch.sin(self.conv(x))
        return self.head(torch.relu(x).flatten(1))


def broken():
    raise RuntimeError("no weights\\nat all")


def leaves():
    raise SystemExit(0)


def number():
    return 3


instance = good()
"""


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nets.py").write_text(NETWORKS)
    (tmp_path / "neighbour.py").write_text("here = True\n")
    (tmp_path / "squares").mkdir()
    for split, count in (("train", 24), ("test", 12)):
        pixels = torch.randint(0, 256, (count, 3, 6, 6), dtype=torch.uint8)
        write_npz(
            tmp_path / "squares" / f"squares_{split}.npz",
            Images(pixels, torch.arange(count) % 4, Normalise((0.5,) * 3, (0.25,) * 3), split),
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ftbc_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command in this process; give its exit status and what it wrote."""

    def command(*arguments: object) -> Outcome:
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return command


@pytest.fixture
def fails(ftbc_command: Callable[..., Outcome]) -> Callable[..., str]:
    """Run a command that must fail with status 2 and one line; give the line."""

    def command(*arguments: object) -> str:
        outcome = ftbc_command(*arguments)
        assert outcome.status == 2, outcome
        assert outcome.err.startswith("ftbc: ") and outcome.err.count("\n") == 1 and outcome.err.endswith("\n"), (
            outcome.err
        )
        assert outcome.err.strip().isprintable() and not outcome.out
        return outcome.err

    return command
