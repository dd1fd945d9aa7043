"""Accuracy and error at each time step in one pass, with firing rates, operations and energy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ftbc.errors import InputError
from ftbc.measure.batches import any_batches, labelled_batches, turns
from ftbc.measure.evaluation import Evaluation
from ftbc.measure.tally import Tally, answers, require_scores
from ftbc.network import SpikingNetwork
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress, silent
from ftbc.settings import is_whole
from ftbc.simulate import Confidence, require_engine
from ftbc.simulate.early_exit import require_rule

COUNTED_IMAGES = 200
"""Operations and firing rates are counted on the first so many images: they hardly differ between images, and
counting takes time."""


class Kept(Protocol):
    """What keeps the counts of an evaluation that is not at its end; see `protocol/kept_evaluation.py`."""

    def read(self) -> tuple[int, list[float]] | None:
        """How many images were seen, and the counts then."""
        ...

    def due(self) -> bool:
        """Whether it is time to write."""
        ...

    def write(self, images: int, counts: list[float]) -> None:
        """Keep the counts after so many images."""
        ...


@torch.no_grad()
def evaluate(
    snn: SpikingNetwork,
    data: Any,
    reference: nn.Module | None = None,
    *,
    stop: Confidence | None = None,
    engine: str = "layerwise",
    counted_images: int | None = None,
    progress: Progress = silent,
    team: Team = ALONE,
    kept: Kept | None = None,
) -> Evaluation:
    """Run images through a network in one pass, and measure it at every time step.

    data: an iterable of ``(images, labels)`` batches, or a pair of tensors ``(images [N, ...], labels [N])``; for a
    network that is no classifier, images alone, in a tensor or in batches. reference: the ANN, for its accuracy beside
    and for the error of the outputs against its own, which is all that images without labels can tell. stop: also say
    what ``snn.predict(x, until=stop)`` would do. It is read from the outputs at all steps, which are needed anyway: it
    costs nothing, but no time is saved either.
    engine: as for ``snn(x)``. counted_images: operations and firing rates are counted on so many images, the first, by
    default 200; these run on "layerwise" unless the engine is "event" and sees all that is counted. team: the processes
    that share the images (``with ftbc.team() as team``); all must be given the same network and data, and get the same
    figures.
    kept: where counts are kept now and then, from which another call goes on; asked in the leading process alone.
    """
    if not isinstance(snn, SpikingNetwork):
        raise InputError(f"a {type(snn).__name__} cannot be evaluated: give the network that ftbc.convert gave back")
    if reference is not None and not isinstance(reference, nn.Module):
        raise InputError(f"the reference is a {type(reference).__name__}, not an nn.Module")
    if stop is not None:
        require_rule(stop, "stop")
    counted_images = COUNTED_IMAGES if counted_images is None else counted_images
    if not is_whole(counted_images, 1):
        raise InputError(f"counted_images={counted_images!r}: give a whole number, at least 1")
    require_engine(engine)
    tally = Tally(snn, reference, stop, engine, counted_images)
    before, known = _taken_up(tally, team, kept)
    images = 0
    sized = getattr(data, "dataset", data)  # a DataLoader's own length counts batches
    total = len(sized) if hasattr(sized, "__len__") and not isinstance(sized, tuple) else 0
    with _in_eval_mode(reference):
        for turn in turns(any_batches(data), team, before):
            images = turn.seen
            with team.agreed():
                if turn.own is not None:
                    _require_use(turn.own[1], reference, stop)
                    tally.take(*turn.own, turn.begins)
            if kept is not None and team.told(kept.due()):
                counts = known + team.sum(tally.counts)
                if team.leads:
                    kept.write(images, counts.tolist())
            progress("evaluating", images, max(total, images))
    if not images:
        raise InputError("the data to evaluate on holds no images")
    tally.counts.copy_(known + team.sum(tally.counts))
    if kept is not None and team.leads:
        kept.write(images, tally.counts.tolist())
    return tally.evaluation(images)


@torch.no_grad()
def reference_accuracy(model: nn.Module, data: Any, team: Team = ALONE) -> float:
    """Accuracy of the ANN alone, in percent; data and team as for `evaluate`."""
    right = images = 0
    place = next((parameter.device for parameter in model.parameters()), team.device)
    with _in_eval_mode(model):
        for turn in turns(labelled_batches(data), team):
            with team.agreed():
                if turn.own is not None:
                    x, y = turn.own
                    assert y is not None
                    scores = answers(model, x.to(place))
                    require_scores(scores.shape[1:])
                    right += int((scores.argmax(1) == y.to(place)).sum())
            images = turn.seen
    if not images:
        raise InputError("the data to evaluate on holds no images")
    return 100 * int(team.total(right)[0]) / images


def _require_use(labels: Tensor | None, reference: nn.Module | None, stop: Confidence | None) -> None:
    """Refuse images without labels where nothing could be said of them."""
    if labels is None and reference is None:
        raise InputError("images without labels can only be compared: give reference=, the network converted from")
    if labels is None and stop is not None:
        raise InputError("stop= is for classifiers: give (images, labels)")


def _taken_up(tally: Tally, team: Team, kept: Kept | None) -> tuple[int, Tensor]:
    """How many images were counted before, and their counts."""
    images, counts = 0, torch.zeros_like(tally.counts)
    if kept is not None:
        found = team.told(kept.read() if team.leads else None)
        if found is not None and len(found[1]) == len(counts):
            images, counts = found[0], torch.tensor(found[1], dtype=counts.dtype)
    return images, counts


@contextmanager
def _in_eval_mode(model: nn.Module | None) -> Iterator[None]:
    """Put every part of a model into eval mode, and afterwards each back into the mode it was in."""
    modes = {} if model is None else {module: module.training for module in model.modules()}
    for module in modes:
        module.training = False
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
