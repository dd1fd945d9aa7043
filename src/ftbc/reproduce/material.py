"""What a machine has for an experiment: images of each data set and weights, and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from ftbc import data, zoo
from ftbc.data import NORMALISATIONS, Images
from ftbc.data.balance import draw_balanced
from ftbc.errors import InputError
from ftbc.reproduce.experiment import DATA, Source

SAMPLE = "cifar10-sample"
CLASSES = {"cifar10": 10, "cifar100": 100, "imagenet": 1000}
TRAINING = {name: f"{name}-train" for name in DATA}
"""Under these names a user gives training images that are not where the test images are."""


@dataclass(frozen=True)
class Lack:
    """Something that is missing: of a kind, by name, and what to do about it."""

    kind: str
    name: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{self.remedy}"


def in_few_words(lacks: Iterable[Lack]) -> list[str]:
    """What is missing, things with the same remedy together.

    >>> in_few_words([Lack("weights", "a.pt", " (--weights FOLDER)"), Lack("weights", "b.pt", " (--weights FOLDER)")])
    ['weights a.pt, b.pt (--weights FOLDER)']
    """
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for lack in lacks:
        groups.setdefault((lack.kind, lack.remedy), {})[lack.name] = None
    return [f"{kind} {', '.join(names)}{remedy}" for (kind, remedy), names in groups.items()]


@dataclass(frozen=True)
class Material:
    """Places of data sets by name, and the folder of weights; sample: the shipped part of CIFAR-10 may stand in for it.

    >>> Material(sample=True).lacks_data("cifar10"), str(*Material(sample=True).lacks_data("cifar100"))
    ([], 'images of cifar100 (--data cifar100=PATH)')
    """

    data: Mapping[str, str] = field(default_factory=dict)
    weights: Path | None = None
    sample: bool = False

    def __post_init__(self) -> None:
        for name in self.data:
            if name not in (*DATA, *TRAINING.values()):
                raise InputError(f"'{name}' is no data set of an experiment: name {', '.join(DATA)}, or NAME-train")

    def lacks_data(self, name: str) -> list[Lack]:
        """What is missing of a data set; nothing if it is there."""
        if name in self.data:
            alone = Path(self.data[name]).expanduser().is_file() and TRAINING[name] not in self.data
            return [Lack("training images of", name, f" (--data {TRAINING[name]}=PATH)")] if alone else []
        return [] if self._stands_in(name) else [Lack("images of", name, f" (--data {name}=PATH)")]

    def place(self, name: str) -> str:
        """Where the images of a data set come from, in words."""
        return self.data.get(name, SAMPLE if self._stands_in(name) else "nowhere")

    def test(self, name: str, source: Source, count: int | None = None) -> Images:
        """Test images as a network takes them: ``count`` of them, balanced over the classes, or all."""
        found = data.load(SAMPLE)[1] if self._stands_in(name) else data.read(self.data[name], "test")
        if int(found.labels.max()) >= CLASSES[name]:
            raise InputError(f"'{self.data[name]}' has label {int(found.labels.max())}: it is not {name}; name another")
        if count is not None and count < len(found):
            found = found.subset(draw_balanced(found.labels, count, 0))
        return _normalised(found, source)

    def draws(self, name: str, source: Source, count: int) -> Callable[[int], Images]:
        """What gives ``count`` calibration images for a seed; of the shipped sample not more than there are."""
        if self._stands_in(name):
            pool = data.load(SAMPLE)[0]
            drawn = min(count, len(pool))
            return lambda seed: _normalised(pool.subset(draw_balanced(pool.labels, drawn, seed)), source)
        place = self.data.get(TRAINING[name], self.data[name])
        return lambda seed: _normalised(data.read(place, "train", limit=count, seed=seed), source)

    def lacks_network(self, source: Source | None, scale: str) -> list[Lack]:
        """What is missing of a network; nothing if it is there."""
        if source is None:
            return [Lack("a network", f"at scale {scale}", "")]
        if source.zoo is not None:
            there = source.zoo in zoo.entries()
            return [] if there else [Lack("network", source.zoo, ", not in the zoo of this version")]
        assert source.weights is not None
        if self.weights is not None and (self.weights / source.weights).is_file():
            return []
        settings = "" if source.train is None else f"; train with experiments/train/{source.train}"
        return [Lack("weights", source.weights, f" (--weights FOLDER{settings})")]

    def network(self, source: Source) -> nn.Module:
        """A network that is there, in eval mode."""
        if source.zoo is not None:
            return zoo.load(source.zoo)
        assert self.weights is not None and source.weights is not None and source.blueprint is not None
        path = self.weights / source.weights
        said = zoo.blueprint_of(path) or source.blueprint
        return zoo.load_weights(said.build(), path).eval()

    def _stands_in(self, name: str) -> bool:
        return self.sample and name == "cifar10" and name not in self.data


def _normalised(images: Images, source: Source) -> Images:
    name = source.normalise if source.zoo is None else zoo.entries()[source.zoo].normalisation
    return images if name is None else images.with_normalise(NORMALISATIONS[name])
