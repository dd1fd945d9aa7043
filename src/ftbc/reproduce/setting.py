"""In what an experiment runs: at which scale, on which material, and where its measurements are kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ftbc.errors import InputError
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress, silent
from ftbc.reproduce.experiment import SCALES, Experiment, Scale
from ftbc.reproduce.material import Material
from ftbc.simulate.event import available


def usual_engine() -> str:
    """The fastest that this installation has; all give the same spikes."""
    return "event" if available() else "layerwise"


@dataclass
class Setting:
    """An experiment about to be measured.

    name: of the scale; measure: else only what the folder holds is shown; team: the processes that measure tables
    together.
    measured, kept: how many measurements were made and how many were there, as it goes on.
    """

    experiment: Experiment
    name: str
    material: Material
    folder: Path
    scale: Scale
    engine: str = field(default_factory=usual_engine)
    seed: int = 0
    measure: bool = True
    command: str | None = None
    progress: Progress = silent
    team: Team = ALONE
    measured: int = 0
    kept: int = 0

    @property
    def seeds(self) -> range:
        """The draws of calibration images."""
        return range(self.seed, self.seed + self.scale.seeds)

    def steps(self, own: tuple[int, ...] | None) -> tuple[int, ...]:
        """The T of a part: its own where it has them."""
        return tuple(t for t in own if t <= max(self.scale.steps)) if own else self.scale.steps

    def count(self, measured: int, kept: int) -> None:
        """Add to what was measured and what was kept."""
        self.measured += measured
        self.kept += kept


def scale_of(
    experiment: Experiment,
    name: str,
    seeds: int | None = None,
    test_images: int | None = None,
    most_steps: int | None = None,
) -> Scale:
    """A scale of an experiment, with what the user wants otherwise."""
    if name not in SCALES:
        raise InputError(f"there is no scale '{name}': choose {' or '.join(SCALES)}")
    scale = experiment.scales[name]
    if seeds is not None:
        scale = replace(scale, seeds=seeds)
    if test_images is not None:
        scale = replace(scale, test_images=test_images, limit=None, full_up_to=None)
    if most_steps is not None:
        kept = tuple(t for t in scale.steps if t <= most_steps)
        if not kept:
            raise InputError(f"'{experiment.name}' has no T up to {most_steps}: it has {_listed(scale.steps)}")
        scale = replace(scale, steps=kept)
    return scale


def _listed(steps: tuple[int, ...]) -> str:
    return ", ".join(map(str, steps))
