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

from ftbc.activation import QCFS
from ftbc.data import Images, Normalise
from ftbc.errors import FileError, InputError, NotFiniteError
from ftbc.train import Epoch, Team, TrainSettings, accuracy, fit, train_classifier

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


def test_resumes_bit_equal_with_dropout_and_cutout(tmp_path: Path) -> None:
    def noisy(draws: int) -> nn.Module:
        model = nn.Sequential(*network()[:-1], nn.Dropout(0.5), nn.Linear(16, 2))
        torch.manual_seed(draws)  # each process may have drawn other numbers before it trains
        return model

    wanted = run(tmp_path / "whole.checkpoint", model=noisy(1), cutout=4).state_dict()
    with pytest.raises(Killed):
        run(tmp_path / "broken.checkpoint", killed_after(1), model=noisy(2), cutout=4)
    found = run(tmp_path / "broken.checkpoint", model=noisy(3), cutout=4).state_dict()
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)
    plain = run(tmp_path / "plain.checkpoint", model=noisy(1)).state_dict()
    assert not all(torch.equal(plain[key], wanted[key]) for key in wanted)


def test_a_checkpoint_of_another_network_with_the_same_shapes(tmp_path: Path, refused: Refused) -> None:
    def start(levels: int) -> nn.Module:
        squares = Images(*images(), NORMALISE, "squares")
        return fit(network(), squares, SETTINGS, tmp_path / "net.checkpoint", killed_after(1), about={"levels": levels})

    with pytest.raises(Killed):
        start(4)
    refused(FileError, ("net.checkpoint", "levels=4", "delete it"), start, 8)


def test_thresholds_learn_and_decay(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*network()[:2], QCFS(4, 30.0), *network()[3:])
    run(tmp_path / "net.checkpoint", model=model, weight_decay=0.5)
    assert 0 < model[2].theta < 29  # no activation comes near 30: decay alone can lower it
    kept = nn.Sequential(*network()[:2], QCFS(4, 30.0), *network()[3:])
    run(tmp_path / "kept.checkpoint", model=kept, weight_decay=0.0)
    assert kept[2].theta > 29


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "net.checkpoint"

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.calls = network(), 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += self.training
            return self.net(x) * (float("nan") if self.calls > 7 else 1.0)  # five batches an epoch

    refused(NotFiniteError, ("nan", "epoch 2", "learning rate"), run, path, model=Broken())
    kept = torch.load(path, weights_only=True)
    assert len(kept["history"]) == 1 and all(value.isfinite().all() for value in kept["model"].values())


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
    for content in ([], {"settings": {}}, {"settings": 3, "steps": 1, "about": {}}, network().state_dict()):
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
     {"warm_up": 1.0}, {"weight_decay": -1.0}, {"label_smoothing": 2.0}, {"padding": -1}, {"cutout": -4},
     {"auto_augment": "all"}, {"epochs": 2.5}, {"batch": True}, {"learning_rate": "0.1"}, {"flip": 1},
     {"auto_augment": None}],
    ids=str,
)  # fmt: skip
def test_wrong_settings(settings: dict[str, Any], refused: Refused) -> None:
    refused(InputError, next(iter(settings)), lambda: TrainSettings(**settings))


def test_parts_of_a_team(refused: Refused) -> None:
    parts = [Team(rank, 4).part(20) for rank in range(4)]
    assert [list(range(20))[part] for part in parts] == [list(range(k, k + 5)) for k in (0, 5, 10, 15)]
    assert Team().part(7) == slice(0, 7) and Team().leads and not Team(1, 2).leads
    refused(InputError, ("20", "3 processes"), Team(0, 3).part, 20)


def test_images_that_do_not_fit(tmp_path: Path, refused: Refused) -> None:
    refused(InputError, ("5 images", "batch of 8"), run, tmp_path / "net.checkpoint", data=images(5))
    wide = (torch.zeros(40, 1, 9, 9, dtype=torch.uint8), images()[1])
    model = nn.Sequential(nn.Flatten(), nn.Linear(256, 2))
    refused(InputError, "[1, 9, 9]", run, tmp_path / "net.checkpoint", data=wide, model=model)
    assert not list(tmp_path.iterdir())
