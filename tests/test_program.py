"""Programs of torch.export are converted like the networks they were made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import FileError, ModelError
from ftbc.program import read_program
from tests.networks import INPUT_SHAPE, NETWORKS

from .conftest import Refused

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
ANY = ({0: torch.export.Dim.DYNAMIC},)


def saved(model: nn.Module, path: Path, *images: torch.Tensor, **settings: object) -> Path:
    torch.export.save(torch.export.export(model, images, **settings), path)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("name", ["residual", "depthwise"])
def test_a_program_converts_like_its_network(name: str, tmp_path: Path) -> None:
    model, images = NETWORKS[name](), torch.rand(12, *INPUT_SHAPE, dtype=torch.float64)
    program = read_program(saved(model, tmp_path / "net.pt2", images[:2], dynamic_shapes=ANY))
    found, wanted = (ftbc.convert(network, images, 4, "mean-square") for network in (program, model))
    assert torch.allclose(found(images), wanted(images), atol=1e-12) and len(found.layers()) == len(wanted.layers())


class _Two(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + y)


def test_bad_programs(tmp_path: Path, refused: Refused) -> None:
    model, images = NETWORKS["plain"](), torch.rand(2, *INPUT_SHAPE, dtype=torch.float64)
    fixed = saved(model, tmp_path / "fixed.pt2", images)
    refused(ModelError, ("exactly 2 images", "dynamic_shapes"), read_program, fixed)
    refused(ModelError, "2 inputs", read_program, saved(_Two(), tmp_path / "two.pt2", images, images))
    refused(FileError, "gone.pt2", read_program, tmp_path / "gone.pt2")
    content = fixed.read_bytes()
    for share in (0.0, 0.5, 0.9):
        fixed.write_bytes(content[: int(share * len(content))])
        refused(FileError, "fixed.pt2", read_program, fixed)


def test_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("typer")
    from ftbc.cli.app import run

    run_: Callable[[list[str]], int] = run
    monkeypatch.chdir(tmp_path)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)).eval()
    saved(model, tmp_path / "net.pt2", torch.rand(2, 3, 32, 32), dynamic_shapes=ANY)
    arguments = ["--images", "16", "--recipe", "mean-square", "--steps", "2"]
    assert run_(["convert", "net.pt2", *arguments, "--to", "net.snn"]) == 0
    assert run_(["evaluate", "net.pt2", "--snn", "net.snn", "--test-images", "20"]) == 0
    capsys.readouterr()
    for name, words in (("net.onnx", "onnx2torch"), ("gone.pt2", "gone.pt2")):
        assert run_(["convert", name, *arguments, "--to", "x.snn"]) == 2
        assert words in capsys.readouterr().err
    assert run_(["convert", "net.pt2", "--weights", "x.pt", *arguments, "--to", "x.snn"]) == 2
    assert "--weights" in capsys.readouterr().err
