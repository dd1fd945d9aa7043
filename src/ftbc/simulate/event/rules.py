"""Neurons other than plain ones on events: what their spikes count, and which compiled loop lets them fire."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ftbc.neuron.burst import BurstFire
from ftbc.neuron.differential import SLACK, DifferentialFire
from ftbc.neuron.residual import ResidualFire
from ftbc.neuron.signed import SignedFire
from ftbc.neuron.spiking import Spiking
from ftbc.simulate.event.coding import PLAIN, SIGNED, Coding, bursts, changes


@dataclass(frozen=True)
class Rule:
    """loop: its name in `firing`; coding: of what is sent; numbers: the settings that the loop takes; memory: how many
    numbers a neuron remembers besides the membrane that events charge; begins: whether
    the first of them is at first where the membrane begins; bounds: the most that one step sends, and the membrane from
    which down a spike is taken back (`trial`), None for neurons that cannot be asked what they would send."""

    loop: str
    coding: Coding
    numbers: tuple[float, ...]
    memory: int
    bounds: tuple[float, float] | None = None
    begins: bool = False


def rule_of(neuron: Spiking) -> Rule | None:
    """How neurons with thresholds of 1 fire; None for those that have no loop here, plain ones among them."""
    if isinstance(neuron, SignedFire):
        return Rule("signed", SIGNED, (neuron.lower, float(neuron.clamp)), memory=1, bounds=(1.0, -neuron.lower))
    if isinstance(neuron, BurstFire):
        return Rule("burst", bursts(neuron.most), (float(neuron.most),), memory=0, bounds=(float(neuron.most), -inf))
    if isinstance(neuron, DifferentialFire):
        return Rule("differential", changes(neuron.levels), (SLACK,), memory=3, begins=True)
    if isinstance(neuron, ResidualFire):
        return Rule("residual", PLAIN, (float(neuron.extra), neuron.margin), memory=2, begins=True)
    return None
