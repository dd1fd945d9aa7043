"""The state of a training between two epochs, in one file that is replaced as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ftbc.atomic import replacing
from ftbc.errors import FileError, first_line
from ftbc.train.log import Epoch
from ftbc.train.settings import TrainSettings

_REMEDY = "delete it to begin anew, or choose another name"


@dataclass(frozen=True)
class Checkpoint:
    """A file for the state of one training.

    about: what else the weights depend on, such as the network's name and levels, as plain data. A file that was
    written for something else is refused: the run would not end with the weights of an unbroken one.
    """

    path: Path
    settings: TrainSettings
    steps: int
    about: dict[str, Any]

    def keep(self, model: nn.Module, optimiser: torch.optim.Optimizer, history: Sequence[Epoch]) -> None:
        """Write the state after as many epochs as there are in ``history``."""
        content = {
            "settings": asdict(self.settings),
            "steps": self.steps,
            "about": self.about,
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "history": [asdict(epoch) for epoch in history],
        }
        with replacing(self.path) as file:
            torch.save(content, file)

    def resume(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> list[Epoch]:
        """Take up what `keep` wrote, and return the epochs done; none if there is no file."""
        if not self.path.exists():
            return []
        try:
            kept = torch.load(self.path, map_location="cpu", weights_only=True)
            settings, steps, about = dict(kept["settings"]), kept["steps"], dict(kept["about"])
        except Exception as error:  # torch raises what its many formats raise
            raise FileError(f"'{self.path}' is not a complete checkpoint ({first_line(error)}): {_REMEDY}") from error
        self._require_same(asdict(self.settings), settings)
        self._require_same(self.about, about)
        if steps != self.steps:
            raise FileError(f"'{self.path}' was written with another number of images: {_REMEDY}")
        try:
            model.load_state_dict(kept["model"])
            optimiser.load_state_dict(kept["optimiser"])
            return [Epoch(**row) for row in kept["history"]]
        except Exception as error:
            raise FileError(f"'{self.path}' belongs to another network ({first_line(error)}): {_REMEDY}") from error

    def _require_same(self, wanted: dict[str, Any], found: dict[str, Any]) -> None:
        names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
        if names:
            listed = ", ".join(f"{name}={found.get(name)!r}" for name in names)
            raise FileError(f"'{self.path}' was written with other settings ({listed}): {_REMEDY}")
