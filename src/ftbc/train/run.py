"""A training from a plan to files: the weights, and beside them the plan, a checkpoint and a log."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ftbc import data, zoo
from ftbc.activation import ThresholdActivation
from ftbc.atomic import alone_at, make_folder, require_writable
from ftbc.data import Images, Pictures
from ftbc.errors import FileError, InputError
from ftbc.processes import Team
from ftbc.progress import Progress, silent
from ftbc.train.accuracy import accuracy
from ftbc.train.average import average_weights
from ftbc.train.classifier import fit
from ftbc.train.log import Epoch
from ftbc.train.plan import Plan
from ftbc.train.source import source_of
from ftbc.train.swap import swap_activations
from ftbc.train.teacher import teacher

_EXAMPLES = 512
"""Images whose activations decide the first thresholds."""


@dataclass(frozen=True)
class Outputs:
    """The files of a run, all named after its weights."""

    weights: Path

    def __post_init__(self) -> None:
        if self.weights.suffix in (".checkpoint", ".toml", ".csv", ".png"):
            kind = self.weights.suffix.removeprefix(".")
            raise FileError(f"cannot write the weights to '{self.weights}', where the {kind} goes: give another suffix")

    @property
    def checkpoint(self) -> Path:
        """The state after the last epoch."""
        return self.weights.with_suffix(".checkpoint")

    @property
    def plan(self) -> Path:
        """The settings, with everything filled in."""
        return self.weights.with_suffix(".toml")

    @property
    def log(self) -> Path:
        """A row for each epoch."""
        return self.weights.with_suffix(".csv")

    @property
    def curve(self) -> Path:
        """The picture of the log."""
        return self.weights.with_suffix(".png")

    def prepare(self) -> None:
        """Make the folder, and raise before the work what writing would raise after it."""
        make_folder(self.weights.parent)
        require_writable(self.weights, self.plan, self.log, self.curve)


@dataclass(frozen=True)
class Trained:
    """What a run ended with: the plan with the number of classes, and percent of the test images."""

    plan: Plan
    accuracy: float
    images: int


def run(
    plan: Plan,
    outputs: Outputs,
    team: Team,
    report: Callable[[Epoch], None] = lambda epoch: None,
    progress: Progress = silent,
) -> Trained | None:
    """Train as planned, or go on with it, and write the weights; None in processes that do not lead."""
    with team.agreed():
        outputs.prepare()
    with alone_at(outputs.weights) if team.leads else nullcontext():
        return _run(plan, outputs, team, report, progress)


def _run(
    plan: Plan, outputs: Outputs, team: Team, report: Callable[[Epoch], None], progress: Progress
) -> Trained | None:
    side = plan.side or _side(plan)
    images, test = data.open_to_train(plan.data, side, lambda done, total: progress("reading", done, total))
    classes = plan.network.classes or int(images.labels.max()) + 1
    plan = replace(plan, network=replace(plan.network, classes=classes))
    if plan.average and not isinstance(images, Images):
        raise InputError("--average measures BatchNorm statistics on images in memory: train on CIFAR or an .npz file")
    teachers = [teacher(name, classes, images.normalise) for name in plan.teachers]
    torch.manual_seed(plan.train.seed)
    model = _first(plan, images)
    beginning = copy.deepcopy(model)
    fit(
        model, images, plan.train, outputs.checkpoint, report, about=_about(plan), log=outputs.log, teachers=teachers,
        ready=lambda: plan.write(outputs.plan), team=team, progress=progress,
    )  # fmt: skip
    if not team.leads:
        return None
    if plan.average and isinstance(images, Images):
        average_weights(model.cpu(), beginning, images.images, images.normalise)
    zoo.save_weights(model, outputs.weights, plan.network, float16=plan.float16)
    zoo.load_weights(model, outputs.weights)  # what is measured is what was stored
    return Trained(plan, accuracy(model, test, progress), len(test))


def _about(plan: Plan) -> dict[str, Any]:
    """What the weights depend on besides the settings."""
    return {**plan.network.to_dict(), **({"teachers": list(plan.teachers)} if plan.teachers else {})}


def _side(plan: Plan) -> int:
    known = zoo.architectures()
    if plan.network.architecture not in known:
        raise zoo.unknown(plan.network.architecture)
    return known[plan.network.architecture].side


def _first(plan: Plan, images: Images | Pictures) -> nn.Module:
    """The network as training begins: random, with given weights, or a ReLU network with other activations."""
    if plan.finetune_from is None:
        model = plan.network.build()
        return model if plan.start_from is None else zoo.load_weights(model, plan.start_from)
    plain = replace(plan.network, activation=None, levels=None, slope=None, threshold=None)
    model = zoo.load_weights(plain.build(), plan.finetune_from)
    prototype = plan.network.prototype()
    assert isinstance(prototype, ThresholdActivation)
    return swap_activations(model, prototype, source_of(images, plan.train).examples(_EXAMPLES), plan.fit_steps)
