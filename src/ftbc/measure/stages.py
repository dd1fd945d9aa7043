"""What each piece of a recipe removes of the error, layer by layer.

The network is converted with none of the recipe's calibrators, with the first, with the first two and so on, on the
same images and with the same seed; each time it is looked inside. So a piece is judged after those before it, as it is
used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.convert import convert
from ftbc.measure.error_split import ErrorSplit
from ftbc.measure.inside import look_inside
from ftbc.network import SpikingNetwork
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress, silent
from ftbc.recipe import Recipe

START = "thresholds"
"""The name of the state before the first calibrator."""


@dataclass(frozen=True)
class Stage:
    """A network calibrated up to a piece, which gives it its name.

    errors: of each layer of plain neurons; outputs: mean square of the network's outputs less the ANN's, over the
    variance of the ANN's.
    """

    piece: str
    errors: dict[str, ErrorSplit]
    outputs: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        errors = {name: split.to_dict() for name, split in self.errors.items()}
        return {"piece": self.piece, "errors": errors, "outputs": self.outputs}


def stages(
    model: nn.Module,
    calibration: Any,
    x: Tensor,
    steps: int,
    recipe: Recipe,
    *,
    seed: int = 0,
    progress: Progress = silent,
    team: Team = ALONE,
    whole: SpikingNetwork | None = None,
) -> Iterator[Stage]:
    """Errors on images ``x`` before the first calibrator and after each; the other arguments are those of `convert`.

    whole: the network with all calibrators, if it is there already.

    >>> import ftbc
    >>> ann, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.rand(64, 4)
    >>> [stage.piece for stage in stages(ann, x, x[:16], 2, ftbc.recipe("ftbc"))]
    ['thresholds', 'FTBC']
    """
    for count in range(len(recipe.calibrate) + 1):
        part = replace(recipe, calibrate=recipe.calibrate[:count])
        snn = whole if count == len(recipe.calibrate) else None
        snn = snn or convert(model, calibration, steps, part, seed=seed, progress=progress, team=team)
        found = {layer.name: layer.split for layer in look_inside(snn, x, model).layers if layer.split is not None}
        yield Stage(type(part.calibrate[-1]).__name__ if count else START, found, _outputs(snn, model, x))


@torch.no_grad()
def _outputs(snn: SpikingNetwork, model: nn.Module, x: Tensor) -> float:
    wanted = model.eval()(x).double()
    missed = snn(x)[-1].double() - wanted
    return float(missed.pow(2).sum() / (wanted - wanted.mean(0)).pow(2).sum())
