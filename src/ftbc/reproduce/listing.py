"""What each experiment needs, what of it is there, and how long it takes here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ftbc.reproduce.duration import estimate
from ftbc.reproduce.experiment import SCALES, TABLE, Experiment, Source
from ftbc.reproduce.material import Lack, Material, in_few_words
from ftbc.reproduce.setting import Setting, scale_of
from ftbc.reproduce.table import lacks

_NO_NETWORK = Lack("for some lines", "a network at this scale", "")


@dataclass(frozen=True)
class Standing:
    """An experiment at a scale: networks and data that are there, what it lacks, and seconds.

    seconds: of what is there; whole: of all of it, if it were there.
    """

    experiment: Experiment
    scale: str
    networks: tuple[str, ...]
    data: tuple[str, ...]
    lacking: tuple[str, ...]
    seconds: float | None
    whole: float | None

    @property
    def runs(self) -> bool:
        """Whether anything can be measured."""
        return bool(self.networks) or self.experiment.kind == "bias-search"


def standings(experiments: Iterable[Experiment], material: Callable[[str], Material]) -> Iterable[Standing]:
    """Each experiment at each scale; material: what there is for a scale."""
    for experiment in experiments:
        for scale in SCALES:
            own = Setting(experiment, scale, material(scale), Path(), scale_of(experiment, scale))
            yield _standing(own)


def _standing(setting: Setting) -> Standing:
    networks: dict[str, None] = {}
    data: dict[str, None] = {}
    lacking: list[Lack] = []
    for source, images in _needed(setting):
        missing = [_NO_NETWORK] if source is None else lacks(setting, images, source)
        lacking += missing
        if not missing:
            networks[str(source)] = None
            data[f"{images} from {setting.material.place(images)}"] = None
    return Standing(
        setting.experiment, setting.name, tuple(networks), tuple(data), tuple(in_few_words(lacking)),
        estimate(setting), estimate(setting, everything=True),
    )  # fmt: skip


def _needed(setting: Setting) -> Iterable[tuple[Source | None, str]]:
    experiment, name = setting.experiment, setting.name
    if experiment.kind != TABLE:
        if "subject" in experiment.networks:
            yield experiment.networks["subject"].get(name), str(setting.scale.data)
        return
    for part in experiment.parts:
        for key in dict.fromkeys(row.network for row in part.rows if row.network is not None):
            yield experiment.networks[key].get(name), part.data
