"""Images to measure on, in any form a user has them in, and how processes share them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ftbc.errors import InputError, NotFiniteError
from ftbc.processes import Team

_AT_ONCE = 100
Batch = tuple[Tensor, Tensor | None]
"""Images and their labels, if they have any."""


@dataclass(frozen=True)
class Turn:
    """What a process does while the others do as much: its batch, or None, and where it begins among all images.

    seen: how many images all have seen together when the turn is over.
    """

    own: Batch | None
    begins: int
    seen: int


def turns(batches: Iterable[Batch], team: Team, before: int = 0) -> Iterator[Turn]:
    """One batch after another, each to the next process: every image is seen once, by one of them.

    All processes must be given the same batches. before: so many images are known already, whose batches are left out;
    where all are, one empty turn says how many they were.

    >>> pairs = [(torch.zeros(2, 1), torch.zeros(2))] * 3
    >>> [(turn.own is not None, turn.begins, turn.seen) for turn in turns(pairs, Team(rank=1, size=2))]
    [(True, 2, 4), (False, 4, 6)]
    """
    own, begins, seen, taken = None, 0, 0, 0
    for x, y in batches:
        if seen < before < seen + len(x):
            raise InputError(f"{before} images are known, but a batch ends elsewhere: give batches of the same size")
        if seen >= before:
            if taken == team.rank:
                own, begins = (x, y), seen
            taken += 1
        seen += len(x)
        if taken == team.size:
            yield Turn(own, begins, seen)
            own, begins, taken = None, seen, 0
    if taken or 0 < seen <= before:
        yield Turn(own, begins, seen)


def any_batches(data: Any) -> Iterator[Batch]:
    """Yield images, with labels or without, of any form that `evaluate` takes, checked."""
    if isinstance(data, Tensor):
        _check_images(data)
        yield from ((part, None) for part in (data.split(_AT_ONCE) if len(data) else ()))
        return
    if isinstance(data, Iterable) and not isinstance(data, tuple | str):
        for entry in data:
            if isinstance(entry, Tensor):
                _check_images(entry)
                if len(entry):
                    yield entry, None
            else:
                yield from labelled_batches([entry])
        return
    yield from labelled_batches(data)


def labelled_batches(data: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (images, labels), checked."""
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        _check_pair(*data)
        if len(data[0]):
            yield from zip(data[0].split(_AT_ONCE), data[1].split(_AT_ONCE), strict=True)
        return
    if not isinstance(data, Iterable) or isinstance(data, Tensor | str):
        raise InputError("the data to evaluate on must give (images, labels) batches, or be a pair of two tensors")
    for entry in data:
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise InputError("the data to evaluate on must give (images, labels) pairs")
        _check_pair(*entry)
        if len(entry[0]):
            yield entry[0], entry[1]


def _check_pair(x: Any, y: Any) -> None:
    if not isinstance(x, Tensor):
        raise InputError(f"the images to evaluate on are a {type(x).__name__}, not a tensor")
    if not isinstance(y, Tensor) or y.ndim != 1 or len(y) != len(x) or y.is_floating_point() or y.is_complex():
        kind = f"{y.dtype} of shape {list(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
        raise InputError(
            f"the labels of {len(x)} images are {kind}: give one whole number for each image, or, to compare outputs "
            "with the reference's, images alone"
        )
    _check_images(x)


def _check_images(x: Tensor) -> None:
    if x.is_floating_point() and x.device.type != "meta" and not bool(torch.isfinite(x).all()):
        raise NotFiniteError("the images to evaluate on hold NaN or infinity: check how they are read and normalised")
