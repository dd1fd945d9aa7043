"""An image that is decided stops, and the others go on without it.

After each step the decided images leave with the mean output that they have, and the state of every layer is narrowed
to those that are left: the work falls with the number of images that are still undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import InputError, RecipeError
from ftbc.graph.ir import Graph
from ftbc.settings import Settings
from ftbc.simulate.layerwise import portion
from ftbc.simulate.readout import Reader, extra_steps
from ftbc.simulate.stepwise import Stepper

Rule = Callable[[Tensor, int], Tensor]
"""Which images are decided, ``[N]`` of bool, from their mean output ``[N, classes]`` over the first t steps, and t."""


@dataclass(frozen=True)
class Confidence(Settings):
    """Stop an image when it belongs to one class with probability ``level``, but not before step ``first``.

        max softmax(y[t]) >= level ,   y[t] = mean output of the first t steps, before the network's own head

    Before the head, because there one rule fits all: behind a softmax or log-softmax the probabilities are those that
    the head gives; behind sigmoids they are those of each class, given that exactly one of the classes is right.
    Reference: SEENN-I, Li et al., NeurIPS 2023.

    >>> Confidence(0.9)(torch.tensor([[4.0, 0.0], [1.0, 0.0]]), 1)
    tensor([ True, False])
    """

    level: float
    first: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.level < 1:
            raise RecipeError(f"Confidence(level={self.level}): give a probability above 0 and below 1")
        if self.first < 1:
            raise RecipeError(f"Confidence(first={self.first}): give the number of a step, from 1 on")

    def __call__(self, mean: Tensor, t: int) -> Tensor:
        """Which images are decided after t steps."""
        if mean.ndim != 2 or mean.shape[1] < 2:
            raise InputError(f"confidence needs the scores of two classes or more, not {list(mean.shape[1:])}")
        return (mean.softmax(1).amax(1) >= self.level) & (t >= self.first)


def require_rule(value: Any, argument: str) -> None:
    """Refuse what is no rule: a bare number, above all."""
    if not isinstance(value, Confidence):
        raise InputError(f"{argument} is a {type(value).__name__}, not a rule: give ftbc.Confidence(0.99), for example")


def steps_until(decided: Rule, means: Tensor) -> Tensor:
    """How many steps each image takes, ``[N]``, read from the mean outputs at all steps ``[T, N, classes]``."""
    stops = torch.stack([decided(mean, t) for t, mean in enumerate(means, 1)])
    stops[-1] = True
    return stops.byte().argmax(0) + 1  # the first of the largest


def run_until(
    decided: Rule, graph: Graph, x: Tensor, steps: int, room: int | None = None, readout: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The mean output with which each image leaves, ``[N, ...]``, and how many steps it took, ``[N]``; from rest.

    readout: how the mean weighs the steps, see `simulate/readout.py`.
    """
    images, _ = portion(graph, 1, room)
    means, taken = zip(*[_run_together(decided, graph, part, steps, readout) for part in x.split(images)], strict=True)
    return torch.cat(means), torch.cat(taken)


def _run_together(decided: Rule, graph: Graph, x: Tensor, steps: int, readout: Tensor | None) -> tuple[Tensor, Tensor]:
    stepper = Stepper(graph, constant=True)
    going = torch.arange(len(x), device=x.device)
    taken = torch.empty_like(going)
    means = x.new_empty((len(x), *graph.shape(graph.output)))
    reader = Reader(readout)
    for t in range(1 - extra_steps(readout), steps + 1):
        mean = reader.add(stepper.step(x))
        if mean is None:
            continue
        means[going], taken[going] = mean, t
        stay = (~decided(mean, t)).nonzero().squeeze(1)
        if t == steps or not len(stay):
            break
        if len(stay) < len(going):
            stepper.select(stay)
            reader.select(stay)
            going, x = going[stay], x[stay]
    stepper.reset()
    return means, taken
