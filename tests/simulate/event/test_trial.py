"""What charged membranes would send: what the loops that send have them send next."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ftbc.neuron import Burst, Kind, Signed
from ftbc.simulate.event.aligned import aligned, room
from ftbc.simulate.event.neurons import Place, RuledNeurons
from ftbc.simulate.event.packed import Packed
from ftbc.simulate.event.rules import rule_of
from ftbc.simulate.event.trial import Trial
from ftbc.vectors import Block

IMAGES, ROWS, COLUMNS, CHANNELS = 3, 2, 5, 16
PLACE = Place(ROWS, COLUMNS, row=(COLUMNS + 2) * CHANNELS, begin=CHANNELS, cells=3 * (COLUMNS + 2) * CHANNELS, number=0)
BLOCK = Block("float64", CHANNELS)
KINDS: dict[str, Kind] = {
    "signed": Signed(), "signed, lower 0": Signed(lower=0.0), "clamped": Signed(lower=0.5, clamp=True),
    "burst of 1": Burst(1), "burst of 5": Burst(5),
}  # fmt: skip


def numbers(*shape: int) -> np.ndarray:
    """Also whole ones, on which thresholds lie."""
    values = 2 * torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64).numpy()
    return np.where(np.abs(values) > 1, np.round(values), values)


def charged() -> np.ndarray:
    v = room((IMAGES, PLACE.cells), "float64")
    v[:] = numbers(*v.shape)
    return v


@pytest.mark.parametrize("has_current", [False, True])
@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_neurons_send_next_what_was_counted(kind: Kind, has_current: bool) -> None:
    rule = rule_of(kind(2, 3))
    assert rule is not None
    out = Packed.empty(IMAGES, 2, (CHANNELS, ROWS, COLUMNS), rule.coding)
    bias = aligned(np.tile(numbers(2, CHANNELS), 4), "float64")
    currents = numbers(IMAGES, 1, ROWS, COLUMNS, CHANNELS) if has_current else None
    neurons = RuledNeurons(rule, BLOCK, PLACE, np.zeros(CHANNELS), bias, currents, out)
    neurons.memory[:] = np.round(numbers(*neurons.memory.shape))
    v, t = charged(), 1
    before, remembered = v.copy(), neurons.memory.copy()

    found = Trial(neurons, BLOCK, PLACE, bias, currents)(v, t, 0, IMAGES - 1)

    assert (v == before).all() and (neurons.memory == remembered).all()
    neurons.fire(v, t, 0, IMAGES - 1)
    sent = out.unpack(torch.float64).unflatten(0, (2, IMAGES))[t, :-1]
    assert len(sent.unique()) > 1
    assert (found == sent.sum(0).numpy()).all()


@pytest.mark.parametrize("has_current", [False, True])
def test_plain_neurons_would_fire_from_the_threshold_on(has_current: bool) -> None:
    bias = aligned(np.tile(numbers(2, CHANNELS), 4), "float64")
    currents = numbers(1, 2, ROWS, COLUMNS, CHANNELS) if has_current else None
    v = charged()

    found = Trial(None, BLOCK, PLACE, bias, currents)(v, 1, 1, IMAGES)

    wanted = np.zeros((CHANNELS, ROWS, COLUMNS))
    for n in range(1, IMAGES):
        for y, x, c in np.ndindex(ROWS, COLUMNS, CHANNELS):
            u = v[n, PLACE.begin + y * PLACE.row + x * CHANNELS + c] + bias[1, c]
            wanted[c, y, x] += u + (0 if currents is None else currents[0, 1, y, x, c]) >= 1
    assert 0 < wanted.sum() < wanted.size * (IMAGES - 1)
    assert (found == wanted).all()
