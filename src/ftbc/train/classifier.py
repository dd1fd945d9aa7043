"""Train a classifier: SGD with momentum, resumable after a kill, in one process or several."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.atomic import make_folder
from ftbc.data import Images, Normalise, Pictures
from ftbc.errors import InputError, NotFiniteError, first_line
from ftbc.processes import Team
from ftbc.progress import Progress, silent
from ftbc.train.ahead import ahead
from ftbc.train.checkpoint import Checkpoint
from ftbc.train.compiled import compiled, failing_to_compile
from ftbc.train.log import Epoch, write_log
from ftbc.train.narrow import safe_gradients
from ftbc.train.schedule import learning_rate
from ftbc.train.settings import TrainSettings
from ftbc.train.source import InFiles, Source, source_of
from ftbc.train.teacher import Objective

_LOOK_EVERY = 20
"""Steps between two looks at the loss: on a GPU a look waits for all work that is under way."""


def train_classifier(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    normalise: Normalise,
    settings: TrainSettings,
    checkpoint: Path,
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> nn.Module:
    """Train ``model`` on images in memory, in place, and return it; see `fit`.

    images: uint8 ``[N, C, H, W]``; labels: int64 ``[N]``.
    """
    return fit(model, Images(images, labels, normalise, "images"), settings, checkpoint, report)


def fit(
    model: nn.Module,
    images: Images | Pictures,
    settings: TrainSettings,
    checkpoint: Path,
    report: Callable[[Epoch], None] = lambda epoch: None,
    *,
    about: dict[str, Any] | None = None,
    log: Path | None = None,
    ready: Callable[[], None] = lambda: None,
    teachers: Sequence[nn.Module] = (),
    team: Team | None = None,
    progress: Progress = silent,
) -> nn.Module:
    """Train ``model`` in place and return it; the state after each epoch is kept in ``checkpoint``.

    A run that finds its own checkpoint goes on from there and ends with the weights an unbroken run would have: order,
    augmentation, dropout and learning rate of an epoch depend on the seed and its number alone.

    report: called after each epoch; ready: before the first, when all is known to fit together and nothing is written
    yet. about: see `Checkpoint`. log: a CSV file with a row for each epoch. teachers: see `Objective`. team: the
    processes that share the work.
    """
    team = team or Team()
    source, steps = source_of(images, settings), len(images) // settings.batch
    if not steps:
        raise InputError(f"{len(images)} images do not fill a batch of {settings.batch}: choose a smaller batch")
    part = team.part(settings.batch)
    _require_runs(model, source.examples(1))
    model.to(team.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(
        _decayed(model, settings.weight_decay), settings.learning_rate, settings.momentum, nesterov=settings.nesterov
    )
    state = Checkpoint(checkpoint, settings, steps * settings.epochs, about or {})
    history = state.resume(model, optimiser)
    make_folder(checkpoint.parent)
    if team.leads:
        ready()
    if team.leads and log is not None:
        write_log(log, history)  # of a run that was killed after its checkpoint and before its log
    together = compiled(team.join(model)) if settings.compile else team.join(model)
    objective = Objective(settings, [each.to(team.device) for each in teachers])
    first, begun = len(history), time.perf_counter()
    for epoch in range(first, settings.epochs):
        started = time.perf_counter()
        with failing_to_compile(), safe_gradients(model):
            loss, right = _run_epoch(together, source, settings, objective, optimiser, epoch, part, team, progress)
        now = time.perf_counter()
        left = (now - begun) / (epoch + 1 - first) * (settings.epochs - epoch - 1)
        seen = steps * settings.batch
        row = Epoch(epoch + 1, loss, 100 * right, optimiser.param_groups[0]["lr"], seen / (now - started), left)
        history.append(row)
        if team.leads:
            state.keep(model, optimiser, history)
            if log is not None:
                write_log(log, history)
            report(row)
        team.wait()
    return model.eval()


def _run_epoch(
    model: nn.Module,
    source: Source,
    settings: TrainSettings,
    objective: Objective,
    optimiser: torch.optim.Optimizer,
    epoch: int,
    part: slice,
    team: Team,
    progress: Progress,
) -> tuple[float, float]:
    """One epoch; the mean loss, and the share of images that were classified rightly as they were seen."""
    steps = len(source) // settings.batch
    loss_sum, right = (torch.zeros((), dtype=torch.float64, device=team.device) for _ in range(2))
    with torch.random.fork_rng():
        torch.manual_seed((settings.seed * 100_003 + epoch) * 1009 + team.rank)  # for dropout
        model.train()
        for step, (x, y) in enumerate(_batches(source, settings, epoch, part)):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(settings, epoch * steps + step, steps * settings.epochs)
            x, y = x.to(team.device), y.to(team.device)
            outputs = model(x)
            loss = objective(x, outputs, y)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            loss_sum += loss.detach()
            right += (outputs.detach().argmax(1) == y).sum()
            if (step + 1) % _LOOK_EVERY == 0 or step + 1 == steps:
                _require_finite(float(loss_sum), epoch, step)
                progress(f"epoch {epoch + 1}", step + 1, steps)
    loss_total, right_total = team.total(float(loss_sum), float(right))
    return loss_total / (steps * team.size), right_total / (steps * settings.batch)


def _batches(source: Source, settings: TrainSettings, epoch: int, part: slice) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of an epoch, or a part of each; those from files are read while the one before is learnt from."""
    generator = torch.Generator().manual_seed(settings.seed * 100_003 + epoch)
    order = torch.randperm(len(source), generator=generator)
    chosen = order[: len(source) // settings.batch * settings.batch].split(settings.batch)
    made = ((source.batch(each, part, generator), source.labels[each[part]]) for each in chosen)
    return ahead(made) if isinstance(source, InFiles) else made


def _require_runs(model: nn.Module, x: Tensor) -> None:
    try:
        with torch.no_grad():
            model.eval()(x)
    except Exception as error:  # whatever the network's own code raises
        raise InputError(f"the network does not run on images {list(x.shape[1:])}: {first_line(error)}") from error


def _require_finite(loss: float, epoch: int, step: int) -> None:
    if not math.isfinite(loss):
        raise NotFiniteError(f"the loss is {loss} in epoch {epoch + 1} by step {step + 1}: lower the learning rate")


def _decayed(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups: weights and thresholds decay, biases and BatchNorm parameters (all one-dimensional) do not.

    Thresholds are single numbers. Nothing but decay pulls one down that no activation reaches.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    decayed, others = [p for p in trained if p.ndim != 1], [p for p in trained if p.ndim == 1]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
