"""In: a name. Out: a network, untrained (`build`) or with the weights that ship with the package (`load`).

Networks are plain nn.Modules that know nothing of spikes; training them belongs to `train/`.
"""

from ftbc.zoo.registry import Entry, architectures, build, entries, load, unknown
from ftbc.zoo.weights import load_weights

__all__ = ["Entry", "architectures", "build", "entries", "load", "load_weights", "unknown"]
