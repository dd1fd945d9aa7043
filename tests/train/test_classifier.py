"""Training goes on after a kill as if nothing had happened, and says what is wrong with a checkpoint."""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ftbc.data import Images, Normalise
from ftbc.errors import FileError, InputError
from ftbc.train import Epoch, TrainSettings, accuracy, train_classifier

from ..conftest import Refused

SETTINGS = TrainSettings(epochs=3, batch=8, learning_rate=0.05)
NORMALISE = Normalise((0.5,), (0.25,))


def network() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(16, 2),
    )  # fmt: skip


def images(count: int = 40) -> tuple[Tensor, Tensor]:
    """Bright and dark squares."""
    labels = torch.arange(count) % 2
    noise = torch.randint(0, 60, (count, 1, 16, 16), generator=torch.Generator().manual_seed(0))
    return (noise + 150 * labels.view(-1, 1, 1, 1)).to(torch.uint8), labels


def run(checkpoint: Path, report: Callable[[Epoch], None] = lambda epoch: None, **changes: Any) -> nn.Module:
    model = changes.pop("model", None) or network()
    pixels, labels = changes.pop("data", None) or images()
    settings = dataclasses.replace(SETTINGS, **changes)
    return train_classifier(model, pixels, labels, NORMALISE, settings, checkpoint, report)


class Killed(Exception):
    pass


def killed_after(last: int) -> Callable[[Epoch], None]:
    def report(epoch: Epoch) -> None:
        if epoch.epoch == last:
            raise Killed

    return report


@pytest.mark.parametrize("last", [1, 2, 3])
def test_resumes_bit_equal(last: int, tmp_path: Path) -> None:
    wanted = run(tmp_path / "whole.checkpoint").state_dict()
    with pytest.raises(Killed):
        run(tmp_path / "broken.checkpoint", killed_after(last))
    seen: list[int] = []
    found = run(tmp_path / "broken.checkpoint", lambda epoch: seen.append(epoch.epoch)).state_dict()
    assert seen == list(range(last + 1, 4))
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)


def test_learns_and_reports(tmp_path: Path) -> None:
    epochs: list[Epoch] = []
    pixels, labels = images()
    model = run(tmp_path / "net.checkpoint", epochs.append, epochs=8)
    assert not model.training and [epoch.epoch for epoch in epochs] == list(range(1, 9))
    assert epochs[-1].loss < epochs[0].loss and epochs[-1].accuracy > 90
    calls: list[tuple[str, int, int]] = []
    test = Images(pixels, labels, NORMALISE, "squares", batch=16)
    assert accuracy(model, test, lambda *call: calls.append(call)) > 90
    assert calls == [("evaluating", 16, 40), ("evaluating", 32, 40), ("evaluating", 40, 40)]


def test_the_seed_decides(tmp_path: Path) -> None:
    first, second, other = (
        run(tmp_path / f"{i}.checkpoint", seed=seed, epochs=1).state_dict() for i, seed in enumerate((1, 1, 2))
    )
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


def test_a_foreign_checkpoint(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "net.checkpoint"
    with pytest.raises(Killed):
        run(path, killed_after(1))
    kept = path.read_bytes()
    remedy = "delete it"
    refused(FileError, ("net.checkpoint", "epochs=3", remedy), run, path, epochs=4)
    refused(FileError, ("learning_rate=0.05", "seed=0", remedy), run, path, learning_rate=0.5, seed=1)
    refused(FileError, ("another number of images", remedy), run, path, data=images(60))
    refused(FileError, ("another network", remedy), run, path, model=nn.Sequential(nn.Flatten(), nn.Linear(256, 2)))
    assert path.read_bytes() == kept


def test_what_is_no_checkpoint(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "net.checkpoint"
    with pytest.raises(Killed):
        run(path, killed_after(1))
    whole = path.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(content)
        refused(FileError, ("net.checkpoint", "delete it"), run, path)
    for content in ([], {"settings": {}}, {"settings": 3, "schedule": {"total_steps": 1}}, network().state_dict()):
        torch.save(content, path)
        refused(FileError, ("net.checkpoint", "delete it"), run, path)


def test_a_failed_write_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    path = tmp_path / "net.checkpoint"
    with pytest.raises(Killed):
        run(path, killed_after(1))
    kept = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ftbc.atomic.os.fsync", full)
    refused(FileError, "net.checkpoint", run, path)
    monkeypatch.undo()
    assert path.read_bytes() == kept and list(tmp_path.iterdir()) == [path]
    wanted = run(tmp_path / "whole.checkpoint").state_dict()
    assert all(torch.equal(value, wanted[key]) for key, value in run(path).state_dict().items())


def test_folders_are_made(tmp_path: Path, refused: Refused) -> None:
    run(tmp_path / "a" / "b" / "net.checkpoint", epochs=1)
    assert (tmp_path / "a" / "b" / "net.checkpoint").is_file()
    (tmp_path / "file").write_text("")
    refused(FileError, "file", run, tmp_path / "file" / "net.checkpoint")


@pytest.mark.parametrize(
    "settings",
    [{"epochs": 0}, {"batch": 0}, {"learning_rate": 0.0}, {"learning_rate": float("nan")}, {"momentum": 1.0},
     {"warm_up": 0.0}, {"weight_decay": -1.0}, {"label_smoothing": 2.0}],
    ids=str,
)  # fmt: skip
def test_wrong_settings(settings: dict[str, Any], refused: Refused) -> None:
    refused(InputError, next(iter(settings)), lambda: TrainSettings(**settings))


def test_images_that_do_not_fit(tmp_path: Path, refused: Refused) -> None:
    refused(InputError, ("5 images", "batch of 8"), run, tmp_path / "net.checkpoint", data=images(5))
    wide = (torch.zeros(40, 1, 9, 9, dtype=torch.uint8), images()[1])
    model = nn.Sequential(nn.Flatten(), nn.Linear(256, 2))
    refused(InputError, "[1, 9, 9]", run, tmp_path / "net.checkpoint", data=wide, model=model)
    assert not list(tmp_path.iterdir())
