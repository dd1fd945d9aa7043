"""The names of all networks, and a table of them for people."""

from __future__ import annotations

from ftbc.zoo.registry import architectures, entries


class Listing(tuple[str, ...]):
    """Names, which become a table with a line about each when they are printed."""

    def __str__(self) -> str:
        trained = [
            f"{entry.name:20} {entry.architecture}, {entry.accuracy:.2f} % on {entry.measured_on}"
            for name, entry in entries().items()
            if name in self
        ]
        untrained = [
            f"{name:20} {each.side:3} x {each.side:3}  {each.summary}"
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
