"""What engines ask of a module that lives in time."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Temporal(nn.Module, ABC):
    """A module with a state: `forward` is one step, `run` several at once, `select` drops images, `reset` forgets."""

    @property
    def together(self) -> int:
        """How many of its first steps it must be given at once; with more than one it cannot go step by step."""
        return 1

    @abstractmethod
    def reset(self) -> None:
        """Forget the past: the next call of `forward` is step 0."""

    @abstractmethod
    def select(self, images: Tensor) -> None:
        """Go on with these images of the batch alone, given by their indices; the others are forgotten."""

    @abstractmethod
    def run(self, x: Tensor) -> Tensor:
        """Several steps at once, from the present state: ``[T, N, ...]`` from ``[T, N, ...]``."""

    def consume(self, x: Tensor) -> Tensor:
        """As `run`, of values that nobody needs afterwards: a faster way may write its outputs over them."""
        return self.run(x)
