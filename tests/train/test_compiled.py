"""Training by torch.compile: the same network up to rounding, and one line where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from ftbc.train.compiled import failing_to_compile

TRAINING = """
import sys, torch
from pathlib import Path
from torch import nn
from ftbc.data import Normalise
from ftbc.train import TrainSettings, train_classifier

images = torch.randint(0, 256, (64, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
labels = torch.arange(64) % 2
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
settings = TrainSettings(epochs=2, batch=16, learning_rate=0.01, compile="compile" in sys.argv)
normalise = Normalise((0.5,) * 3, (0.25,) * 3)
train_classifier(model, images, labels, normalise, settings, Path(sys.argv[1]) / "run.checkpoint")
torch.save(model.state_dict(), Path(sys.argv[1]) / "weights.pt")
"""


def _train(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    return subprocess.run(
        [sys.executable, "-c", TRAINING, str(folder), *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_same_weights_up_to_rounding(tmp_path: Path) -> None:
    for name, arguments in (("plain", ()), ("compiled", ("compile",))):
        done = _train(tmp_path / name, *arguments)
        assert done.returncode == 0, done.stderr
    plain, compiled = (torch.load(tmp_path / name / "weights.pt") for name in ("plain", "compiled"))
    assert plain.keys() == compiled.keys()
    for name in plain:
        torch.testing.assert_close(compiled[name], plain[name], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_without_a_compiler(tmp_path: Path) -> None:
    nowhere = {"CXX": "/nowhere/c++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = _train(tmp_path / "run", "compile", **nowhere)
    assert done.returncode != 0
    assert "the network cannot be compiled" in done.stderr and "leave --compile out" in done.stderr
    assert not list((tmp_path / "run").iterdir())


def test_other_failures_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="mat1"), failing_to_compile():
        nn.Linear(2, 2)(torch.rand(3))
    with pytest.raises(ValueError, match="mine"), failing_to_compile():
        raise ValueError("mine")
