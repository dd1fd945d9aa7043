"""Other people's programs: the network they are given is ours, and one that does not work is left out in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ftbc

pytest.importorskip("benchmarks", reason="not part of a source distribution")

from benchmarks.processes import Rival, RivalError, alone, group, opened, race
from benchmarks.rivals.straight import plain_ann, stem_and_body
from benchmarks.rivals.task import Task, in_batches, sizes
from benchmarks.settings import Settings
from ftbc.measure.speed import folded

OWN = Path(sys.executable)


class Neuron(nn.Module):
    """Integrate and fire, as one writes it in a hurry."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.v: Tensor | float = start

    def forward(self, x: Tensor) -> Tensor:
        self.v = self.v + x
        spikes = (self.v >= 1).float()
        self.v = self.v - spikes
        return spikes


@pytest.fixture
def task() -> Task:
    images = ftbc.data.load("cifar10-sample")[0].take(4).tensor()
    ann = ftbc.zoo.load("resnet20-cifar10")
    return Task(ann, ftbc.convert(ann, images, 3, "mean-square"), images, Path(), 1)


@torch.no_grad()
def test_straight_code_is_the_same_network(task: Task) -> None:
    stem, body = stem_and_body(task.snn.with_unit_thresholds().graph, Neuron, lambda module: module)
    current = stem(task.images)
    mean = sum(body(current) for _ in range(3)) / 3
    assert torch.allclose(mean, task.snn(task.images)[-1], atol=1e-4)


@torch.no_grad()
def test_plain_ann_is_the_same_network_of_modules_of_torch(task: Task) -> None:
    ann = plain_ann(folded(task.ann, task.images))
    assert torch.allclose(ann(task.images), task.ann(task.images), atol=1e-4)
    assert {type(module).__module__.partition(".")[0] for module in ann.modules() if not list(module.children())} == {
        "torch"
    }


def test_what_cannot_be_written_as_straight_code_is_refused(task: Task) -> None:
    biased = ftbc.convert(task.ann, task.images, 2, ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1, batch=2),)))
    with pytest.raises(ValueError, match="temporal bias"):
        stem_and_body(biased.with_unit_thresholds().graph, Neuron, lambda module: module)
    with pytest.raises(ValueError, match="thresholds of 1"):
        stem_and_body(task.snn.graph, Neuron, lambda module: module)
    clamped = folded(nn.Sequential(nn.Linear(4, 4), nn.ReLU6(), nn.Linear(4, 2)), torch.rand(2, 4))
    with pytest.raises(ValueError, match="Activation"):
        plain_ann(clamped)


def test_a_task_comes_back_as_it_was(task: Task, tmp_path: Path) -> None:
    Task.write(tmp_path, task.snn, task.images)
    read = Task.read(tmp_path, 1)
    assert torch.equal(read.images, task.images) and read.threads == 1 and read.folder == tmp_path
    assert torch.equal(read.snn(read.images), task.snn(task.images))
    assert torch.equal(read.ann(read.images), task.ann(task.images))


def test_batches(task: Task) -> None:
    assert sizes((1, 8, 64), task.images) == [1, 4] and sizes((2, 3), task.images) == [2, 3]
    offer = in_batches(lambda x: x.flatten(1), task.images, 3)
    assert offer.items == 4 and torch.equal(offer.run(), task.images.flatten(1))


@pytest.mark.parametrize(
    ("name", "what", "single"),
    [
        ("own: ANN, torch, batch 1, plain layout", "own: ANN, torch", True),
        ("own: ANN, torch, batch 16, plain layout", "own: ANN, torch", False),
        ("own: event, batch 1", "own: event", True),
        ("own: event, batch 128", "own: event", False),
        ("jelly: ann2snn, batch 8, multi-step", "jelly: ann2snn", False),
    ],
)
def test_names_of_offers(name: str, what: str, single: bool) -> None:
    assert group(name) == what and alone(name) == single


def test_a_rival_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RivalError, match="make peers"):
        Rival("jelly", tmp_path / "python", tmp_path, 1)


def test_a_rival_that_does_not_work_says_why(task: Task, tmp_path: Path) -> None:
    Task.write(tmp_path, task.snn, task.images)
    with pytest.raises(RivalError, match="no_such"):
        Rival("no_such", OWN, tmp_path, 1)


def test_a_rival_that_ends_without_a_word(task: Task, tmp_path: Path) -> None:
    with pytest.raises(RivalError, match="ended without an answer"):
        Rival("own", Path("/bin/true"), tmp_path, 1)


def test_a_rival_that_never_answers_is_ended(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    with pytest.raises(RivalError, match="did not answer"):
        Rival("own", sleeper, tmp_path, 1, limit=0.2)


@pytest.mark.slow
def test_rivals_run_in_turn_and_those_that_fail_are_noted(task: Task, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    settings = Settings(peers=tmp_path / "none", repeats=2)
    with opened(("own", "jelly"), task.snn, task.images, 1, settings) as (rivals, notes):
        assert list(rivals) == ["own"] and notes == [f"jelly was left out: there is no {settings.peers}: make peers"]
        names = ["own: ANN, torch, batch 4, plain layout", "own: layerwise, batch 4"]
        timings = race(rivals, 2, names)
        assert list(timings) == names and all(len(timing.seconds) == 2 for timing in timings.values())
        assert all(timing.items == 4 for timing in timings.values())
        output = rivals["own"].output("layerwise, batch 4")
        assert torch.allclose(output, task.snn(task.images)[-1], atol=1e-4)
        process = rivals["own"].process
        assert process.poll() is None
    assert process.poll() is not None, "no process is left behind"
