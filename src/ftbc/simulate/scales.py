"""What spikes weigh: numbers for the places of a value, summed over the spikes of each step."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import torch
from torch import Tensor


class Scales:
    """Weights by name of a value, K for each of its places, ``[K, ...]``; ``sums``: of all spikes so far, ``[T, K]``.

    Weights that are whole numbers have sums that no order changes. Several threads may add.
    """

    def __init__(self, weights: Mapping[str, Tensor], steps: int) -> None:
        self.weights = {name: numbers.double() for name, numbers in weights.items()}
        self.sums = {name: torch.zeros(steps, len(numbers)).double() for name, numbers in self.weights.items()}
        self._lock = threading.Lock()

    def add(self, name: str, sums: Tensor, start: int = 0) -> None:
        """Take the sums ``[steps, K]`` of some images and of the steps from ``start`` on."""
        with self._lock:
            self.sums[name][start : start + len(sums)] += sums
