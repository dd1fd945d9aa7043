"""What it would do to stop each image when it is decided."""

from __future__ import annotations

from dataclasses import dataclass

from ftbc.simulate import Confidence


@dataclass(frozen=True)
class EarlyExit:
    """Images stopped by a rule: their accuracy in percent, and how many steps one takes on average."""

    rule: Confidence
    accuracy: float
    mean_steps: float

    def __str__(self) -> str:
        return (
            f"stopped at a confidence of {self.rule.level:g}: {self.accuracy:.2f}% "
            f"after {self.mean_steps:.2f} steps on average"
        )
