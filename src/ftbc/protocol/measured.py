"""What one run of one converted network gave: the figures that a results folder keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ftbc.errors import FileError
from ftbc.measure.evaluate import Evaluation

_OVER_TIME = ("accuracy", "spikes", "synops", "energy")


@dataclass(frozen=True)
class Measured:
    """Figures of one calibration; lists have one entry for each time step that counts, as those of `Evaluation`.

    calibration_seconds: from the trained network to the spiking one.
    """

    images: int
    accuracy: list[float]
    spikes: list[float]
    synops: list[float]
    energy: list[float]
    reference_energy: float
    neurons: int
    firing_rate: dict[str, float]
    extra_steps: int
    calibration_images: int
    calibration_seconds: float

    @classmethod
    def of(cls, result: Evaluation, images: int, seconds: float) -> Measured:
        """The figures of an evaluation, and what its calibration took."""
        own = {field.name: getattr(result, field.name) for field in fields(cls) if hasattr(result, field.name)}
        return cls(**own, calibration_images=images, calibration_seconds=seconds)

    def rate(self, t: int) -> float:
        """Spikes per neuron and step, over all neurons and the steps up to t."""
        return self.spikes[t - 1] / self.neurons / (self.extra_steps + t)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], steps: int) -> Measured:
        """The figures of `to_dict`, of a run of so many steps; anything else is refused."""
        if set(data) != {field.name for field in fields(cls)}:
            raise FileError("it has other entries than a measurement")
        over_time = [data[name] for name in _OVER_TIME]
        if not all(isinstance(row, list) and len(row) == steps for row in over_time):
            raise FileError(f"it has not the figures of {steps} steps")
        if not isinstance(data["firing_rate"], dict):
            raise FileError("it has no firing rates by layer")
        single = [data[field.name] for field in fields(cls) if field.name not in (*_OVER_TIME, "firing_rate")]
        for value in (*single, *data["firing_rate"].values(), *(value for row in over_time for value in row)):
            if type(value) not in (int, float) or not math.isfinite(value):
                raise FileError(f"{value!r:.40} is no number")
        if data["neurons"] < 1:
            raise FileError("it has no neurons")
        return cls(**data)
