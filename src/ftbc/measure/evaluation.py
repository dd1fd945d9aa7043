"""What `ftbc.evaluate` gives back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ftbc.measure.early_exit import EarlyExit
from ftbc.measure.energy import Operations, energy_models


@dataclass(frozen=True)
class Evaluation:
    """What a spiking network does on images; lists have one entry for each time step t = 1 .. T.

    accuracy, reference_accuracy: percent, empty and None without labels; error: of the outputs against those of the
    reference (`output_error`), None without one; firing_rate: spikes per neuron and step, by layer; neurons: their
    number; spikes, synops: spikes of all neurons up to t and additions caused by them, per image, extra steps included;
    these are counted on the first images; energy, reference_energy: microjoules per image up to t, and of the ANN (45
    nm: 4.6 pJ a MAC, 0.9 pJ an addition; the layers that read the image count as MACs at each step, or once where
    neurons send changes alone), other models by `energies`; early_exit: what it does to stop images early, if asked
    for. All other entries are of images that take all steps. image_macs: MACs of the layers that read the image, at one
    step; sent_once: whether they are needed at the first step alone; reference_operations: those of the ANN.
    """

    images: int
    accuracy: list[float]
    reference_accuracy: float | None
    error: list[float] | None
    firing_rate: dict[str, float]
    neurons: int
    spikes: list[float]
    synops: list[float]
    energy: list[float]
    reference_energy: float
    early_exit: EarlyExit | None = None
    image_macs: float = 0.0
    sent_once: bool = False
    extra_steps: int = 0
    reference_operations: Operations = field(default_factory=lambda: Operations(0.0))

    def operations(self, t: int, cached: bool = False) -> Operations:
        """What an image takes up to step t; cached: what the image itself brings is computed once, and kept."""
        steps = self.extra_steps + t
        macs = self.image_macs if cached or self.sent_once else self.image_macs * steps
        return Operations(macs, self.synops[t - 1], self.neurons * steps, self.spikes[t - 1])

    def energies(self, cached: bool = False) -> dict[str, list[float]]:
        """Microjoules per image at each step, under every named model of `measure/energy.py`."""
        counts = [self.operations(t, cached) for t in range(1, len(self.synops) + 1)]
        return {name: [model.of(count) for count in counts] for name, model in energy_models().items()}

    def reference_energies(self) -> dict[str, float]:
        """Microjoules of the ANN per image, under every named model that it could run under as it is."""
        models = {name: model for name, model in energy_models().items() if model.runs_ann and model.bits is None}
        return {name: model.of(self.reference_operations) for name, model in models.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        columns = {"t": [str(t) for t in shown_steps(len(self.synops))]}
        rows = [int(t) - 1 for t in columns["t"]]
        if self.accuracy:
            columns["accuracy"] = [f"{self.accuracy[row]:.2f}%" for row in rows]
        if self.error is not None:
            columns["error"] = [f"{self.error[row]:.4f}" for row in rows]
        columns["SynOps/image"] = [f"{self.synops[row]:.4g}" for row in rows]
        columns["energy/image"] = [f"{self.energy[row]:.4g} uJ" for row in rows]
        if self.error is not None:
            ann = {"t": "ANN", "energy/image": f"{self.reference_energy:.4g} uJ"}
            ann["accuracy"] = "" if self.reference_accuracy is None else f"{self.reference_accuracy:.2f}%"
            columns = {name: [*column, ann.get(name, "")] for name, column in columns.items()}
        widths = {name: max(len(name), *map(len, column)) for name, column in columns.items()}
        widths["t"] = 4
        lines = ["  ".join(f"{name:>{width}}" for name, width in widths.items())]
        for cells in zip(*columns.values(), strict=True):
            lines.append("  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths.values(), strict=True)))
        if self.early_exit is not None:
            lines.append(str(self.early_exit))
        rate = sum(self.firing_rate.values()) / len(self.firing_rate)
        lines.append(f"{self.images} images; {rate:.3f} spikes per neuron and step on average over the layers")
        return "\n".join(lines)


def shown_steps(steps: int) -> list[int]:
    """1, 2, 4, 8 ... and the last step."""
    doubling = [1 << k for k in range(steps.bit_length()) if 1 << k < steps]
    return [*doubling, steps]
