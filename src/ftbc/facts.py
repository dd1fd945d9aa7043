"""What a method needs and what its neurons send, gathered from the pieces it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SPIKES = ("binary", "ternary", "multi-level")
"""One size of spikes; that and its negative; several sizes. Each kind holds those before it."""


@dataclass(frozen=True)
class Facts:
    """spikes: one of `SPIKES`; extra_steps: taken before the T steps that the method reports; gradients: whether
    calibration needs them; trained: whether the ANN must have been trained for the method; steppable: whether the
    network can go step by step, and stop early; timeless: whether a conversion for T steps is also that for fewer."""

    spikes: str
    extra_steps: int
    gradients: bool
    trained: bool
    steppable: bool = True
    timeless: bool = False

    @classmethod
    def of(cls, pieces: Iterable[Any]) -> Facts:
        """What pieces say of themselves, taken together; a piece that says nothing asks for nothing.

        >>> from ftbc.calibrate import FTBC
        >>> from ftbc.threshold import Trained
        >>> Facts.of([Trained(), FTBC()])
        Facts(spikes='binary', extra_steps=0, gradients=False, trained=True, steppable=True, timeless=True)
        """
        pieces = list(pieces)
        spikes = max((getattr(piece, "spikes", SPIKES[0]) for piece in pieces), key=SPIKES.index, default=SPIKES[0])
        return cls(
            spikes,
            sum(getattr(piece, "extra", 0) for piece in pieces),
            any(getattr(piece, "gradients", False) for piece in pieces),
            any(getattr(piece, "trained", False) for piece in pieces),
            all(getattr(piece, "steppable", True) for piece in pieces),
            all(getattr(piece, "timeless", False) for piece in pieces),
        )
