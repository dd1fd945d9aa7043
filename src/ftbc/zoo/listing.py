"""The names of all networks, and a table of them for people."""

from __future__ import annotations

from typing import Any

from ftbc.zoo.registry import architectures
from ftbc.zoo.trained import entries


class Listing(tuple[str, ...]):
    """Names, which become a table with a line about each when they are printed."""

    def __str__(self) -> str:
        trained = [
            f"{entry.name:24} {_in_words(entry.network)}, {entry.accuracy:.2f} % on {entry.measured_on}"
            for name, entry in entries().items()
            if name in self
        ]
        untrained = [
            f"{name:24} {each.side:3} x {each.side:3}  {each.summary}"
            for name, each in architectures().items()
            if name in self
        ]
        return "\n".join(["Trained, for load:", *trained, "", "Architectures, for build:", *untrained])


def list() -> Listing:
    """Names of every network: the trained ones, which `load` takes, then the architectures, which `build` takes.

    >>> "resnet20-cifar10" in list(), "vgg16-cifar" in list()
    (True, True)
    """
    return Listing([*entries(), *architectures()])


def _in_words(network: dict[str, Any]) -> str:
    """A blueprint in a few words, such as ``resnet20, qcfs, levels 4``."""
    network = {name: value for name, value in network.items() if name != "classes"}
    names = ("architecture", "activation")
    return ", ".join(str(value) if name in names else f"{name} {value}" for name, value in network.items())
