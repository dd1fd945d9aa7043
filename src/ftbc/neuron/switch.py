"""Time code by switches: a synapse is told when a current begins and when it ends, not at each step between.

A neuron that fires at one step after another sends a positive spike at the first, which switches a current of theta on
in all its synapses, and a negative one when it stops, which switches it off: two additions for each synapse, however
long the current lasted. An input that comes early in one piece, as a switched one does, makes such pieces.

    on[t] = [ v[t] >= theta ] ,   v[t] <- v[t] - theta on[t] ,   sent: on[t] - on[t-1], one of -1, 0, 1

This rule is derived, not copied: the paper was at hand only in its abstract (two spikes for each pixel, whose interval
is proportional to its value; at most two additions for each synapse) and second-hand (soft reset, signed spikes,
thresholds as those of RMP). It gives the spike trains, and so the accuracy, of a plain neuron at another cost; that
published figures of TSC and RMP are nearly equal (58.4 and 57.7 for ResNet-20 on CIFAR-100 at T = 128) speaks for it.
The image, which does not change, is sent once.
Reference: Han and Roy, ECCV 2020 (TSC).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ftbc.graph.spec import register
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.kind import Kind, Spikes
from ftbc.neuron.spiking import Sends, Spiking


@dataclass(frozen=True)
class Switch(Kind):
    """Plain neurons that send when they begin and when they stop to fire."""

    spikes: ClassVar[Spikes] = "ternary"

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return SwitchFire(steps, rank)


@register("steps", "rank")
class SwitchFire(IntegrateFire):
    """The neurons of one layer; their outputs are the currents that are on, not the switches."""

    sends: ClassVar[Sends] = "switches"
