"""What each piece of a recipe removes: each is judged on a network of its own, made with those before it."""

from __future__ import annotations

import pytest
import torch

import ftbc
from ftbc.measure.inside import look_inside
from ftbc.measure.stages import START, stages
from ftbc.report.table import piece_table
from tests.networks import INPUT_SHAPE, residual


@pytest.mark.parametrize("name", ["ftbc", "snnc-lp", "best"])
def test_each_stage_is_the_network_of_the_pieces_so_far(name: str) -> None:
    torch.manual_seed(0)
    ann, x = residual().eval(), torch.randn(40, *INPUT_SHAPE, dtype=torch.float64)
    recipe = ftbc.recipe(name)
    found = list(stages(ann, x, x[:12], 3, recipe, seed=2))
    assert [stage.piece for stage in found] == [START, *(type(piece).__name__ for piece in recipe.calibrate)]
    for stage, snn in (
        (found[0], ftbc.convert(ann, x, 3, ftbc.recipe(name, calibrate=()), seed=2)),
        (found[-1], ftbc.convert(ann, x, 3, recipe, seed=2)),
    ):
        splits = {layer.name: layer.split for layer in look_inside(snn, x[:12], ann).layers}
        assert stage.errors == splits and len(splits) > 1
        z = ann(x[:12]).detach()
        y = snn(x[:12])[-1]
        naive = sum(float((y[i] - z[i]).pow(2).sum()) for i in range(12))
        assert stage.outputs == pytest.approx(naive / float((z - z.mean(0)).pow(2).sum()))
    again = list(stages(ann, x, x[:12], 3, recipe, seed=2, whole=ftbc.convert(ann, x, 3, recipe, seed=2)))
    assert again == found
    text = piece_table(found)
    assert "The outputs gain most by" in text and all(stage.piece in text for stage in found)


def test_a_recipe_without_pieces_has_one_stage() -> None:
    ann, x = residual().eval(), torch.randn(20, *INPUT_SHAPE, dtype=torch.float64)
    found = list(stages(ann, x, x, 2, ftbc.recipe("mean-square")))
    assert [stage.piece for stage in found] == [START] and "gain" not in piece_table(found)
