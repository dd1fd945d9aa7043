"""The piece of a recipe that says which neurons take the place of activations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from ftbc.neuron.spiking import Spiking
from ftbc.settings import Piece

Spikes = Literal["binary", "ternary", "multi-level"]


class Kind(Piece, ABC):
    """A kind of neuron and its settings.

    spikes: what one neuron can send at one step: nothing or a spike, also a negative one, or more than that;
    steppable: whether a network of them can go step by step, or needs the steps of its input at once.
    """

    spikes: ClassVar[Spikes] = "binary"
    steppable: ClassVar[bool] = True

    @property
    def bounded(self) -> bool:
        """Whether a neuron sends at most its threshold in the mean, as bounded activations ask (`graph/bound.py`)."""
        return True

    @property
    def extra_steps(self) -> int:
        """How many steps a network takes before those that count."""
        return 0

    def rows(self, steps: int) -> int:
        """How many steps neurons are calibrated for when ``steps`` count."""
        return max(steps, self.extra_steps)

    @abstractmethod
    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds and calibrated, for items of ``rank`` dimensions."""

    def settled(self, neurons: Spiking, steps: int) -> Spiking:
        """What takes the place of calibrated neurons; steps: those that count."""
        return neurons
