"""Real processes: one that is killed and goes on, two that share the work, and the recipe for ImageNet."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ftbc.cli.app import run as command_line
from ftbc.data import Images, Normalise, write_npz
from ftbc.train.log import read_log
from ftbc.zoo import blueprint_of

from .pictures import write_pictures

EXPERIMENTS = Path(__file__).parents[2] / "experiments" / "train"


@pytest.fixture
def squares(tmp_path: Path) -> Path:
    """Four shades of grey, 6 x 6 pixels."""
    folder = tmp_path / "squares"
    folder.mkdir()
    for split, count in (("train", 32), ("test", 12)):
        labels = torch.arange(count) % 4
        noise = torch.randint(0, 50, (count, 3, 6, 6), generator=torch.Generator().manual_seed(count))
        pixels = (noise + 60 * labels.view(-1, 1, 1, 1)).to(torch.uint8)
        write_npz(folder / f"squares_{split}.npz", Images(pixels, labels, Normalise((0.5,) * 3, (0.25,) * 3), split))
    return folder


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ftbc", "train", *map(str, arguments)]


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(
    squares: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    options = ("resnet20", "--data", squares, "--epochs", 8, "--batch", 8, "--width", 0.25, "--activation", "qcfs",
               "--levels", 2, "--cutout", 2)  # fmt: skip
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    _run(_command(*options, "--to", whole), environment)
    process = subprocess.Popen(_command(*options, "--to", broken), env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None and not broken.with_suffix(".checkpoint").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not broken.exists()
    done = torch.load(broken.with_suffix(".checkpoint"), weights_only=True)["history"]
    assert 1 <= len(done) < 8

    out = _run(_command("--resume", "--to", broken), environment)  # all settings are in the file beside the weights
    assert f"epoch {len(done) + 1:3}/8" in out and f"epoch {len(done):3}/8" not in out
    assert broken.read_bytes() == whole.read_bytes()
    assert [row.epoch for row in read_log(broken.with_suffix(".csv"))] == list(range(1, 9))
    written = {path.name for path in tmp_path.glob("broken*")}
    assert written == {f"broken.{kind}" for kind in ("safetensors", "toml", "csv", "png", "checkpoint")}


@pytest.mark.slow
def test_two_processes_are_as_one(squares: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """Without BatchNorm, whose statistics each process takes for itself."""
    options = ("resnet20", "--data", squares, "--epochs", 3, "--batch", 8, "--width", 0.25, "--no-batch-norm",
               "--cutout", 2, "--learning-rate", 0.05)  # fmt: skip
    alone, together = tmp_path / "alone.safetensors", tmp_path / "together.safetensors"
    _run(_command(*options, "--to", alone), environment)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    out = _run([*torchrun, *_command(*options, "--to", together)[1:]], environment)
    assert out.count("epoch   3/3") == 1 and out.count("test accuracy") == 1  # the first process speaks for both
    found, wanted = load_file(together), load_file(alone)
    gaps = [float((found[key] - wanted[key]).abs().max()) for key in wanted]
    moved = [float((wanted[key] - value).abs().max()) for key, value in _beginning(alone).items()]
    assert max(gaps) < 1e-5 < 1e-2 < max(moved), (max(gaps), max(moved))
    rows = [read_log(path.with_suffix(".csv")) for path in (alone, together)]
    for one, two in zip(*rows, strict=True):
        assert (one.epoch, one.accuracy) == (two.epoch, two.accuracy) and one.loss == pytest.approx(two.loss, abs=1e-5)


def _beginning(path: Path) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    blueprint = blueprint_of(path)
    assert blueprint is not None
    return blueprint.build().state_dict()


def test_the_recipe_for_imagenet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a few pictures in the folders of ImageNet, with crops of 32 pixels and a narrow network."""
    classes = ("n01440764", "n01443537", "n01484850")
    counts = {f"{split}/{name}": count for split, count in (("train", 5), ("val", 2)) for name in classes}
    folder = write_pictures(tmp_path / "imagenet", counts)
    options = ("--settings", EXPERIMENTS / "imagenet.toml", "--data", folder, "--epochs", 2, "--batch", 4, "--side", 32,
               "--width", 0.125, "--to", tmp_path / "net.safetensors")  # fmt: skip
    assert command_line(_command(*options)[3:]) == 0
    out = capsys.readouterr().out
    assert "epoch   2/2" in out and "on 6 images" in out
    blueprint = blueprint_of(tmp_path / "net.safetensors")
    assert blueprint is not None and (blueprint.architecture, blueprint.classes) == ("resnet34-deep-stem", 3)
    text = (tmp_path / "net.toml").read_text()
    assert "label_smoothing = 0.1" in text and "epochs = 2" in text and "weight_decay = 0.0001" in text
