"""In: a name. Out: a network, untrained (`build`) or with the weights that ship with the package (`load`).

Networks are plain nn.Modules that know nothing of spikes; training them belongs to `train/`.
"""

from ftbc.zoo.blueprint import Blueprint, blueprint_of, save_weights
from ftbc.zoo.listing import Listing, list
from ftbc.zoo.load import load
from ftbc.zoo.registry import Architecture, architectures, build, unknown
from ftbc.zoo.trained import Entry, entries
from ftbc.zoo.weights import load_weights

__all__ = [
    "Architecture",
    "Blueprint",
    "Entry",
    "Listing",
    "architectures",
    "blueprint_of",
    "build",
    "entries",
    "list",
    "load",
    "load_weights",
    "save_weights",
    "unknown",
]
