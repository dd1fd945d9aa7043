"""Local threshold balancing against its loop written out, and its limits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.errors import NotFiniteError, RecipeError
from ftbc.graph.ir import Graph
from ftbc.progress import silent
from ftbc.threshold import LocalBalance, Maximum
from tests.conftest import Refused
from tests.graph.support import clean
from tests.networks import INPUT_SHAPE, NETWORKS


def _images(count: int) -> Tensor:
    return torch.rand(count, *INPUT_SHAPE, dtype=torch.float64)


def _choose(rule: LocalBalance, ann: Graph, images: Tensor, steps: int = 4, seed: int = 0) -> dict[str, Tensor]:
    with torch.no_grad():
        return rule.choose(ann, images, steps, torch.Generator().manual_seed(seed), silent)


def test_the_loop_written_out() -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU6(), nn.Linear(4, 2)).double()
    network[2].weight.data *= 30  # some activations beyond 6
    x = torch.rand(20, 3, dtype=torch.float64)
    found = _choose(LocalBalance(iterations=7, batch=6), clean(network, x).graph, x)

    generator = torch.Generator().manual_seed(0)
    thetas: list[list[float]] = [[0.0] * 4, [0.0] * 4]
    for _ in range(7):
        batch = x[torch.randperm(20, generator=generator)[:6]].tolist()
        for layer, bound, theta in ((network[0], float("inf"), thetas[0]), (network[2], 6.0, thetas[1])):
            weight, bias = layer.weight.tolist(), layer.bias.tolist()
            sums = [
                [sum(w * v for w, v in zip(row, image, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
                for image in batch
            ]
            activations = [[min(max(z, 0.0), bound) for z in image] for image in sums]
            for c in range(4):
                theta[c] += 2 * sum(max(0.0, image[c] - theta[c]) for image in activations) / len(batch)
            batch = [[min(a, theta[c]) for c, a in enumerate(image)] for image in activations]
    for name, theta in zip(("1", "3"), thetas, strict=True):
        wanted = [value if value > 0 else max(theta) for value in theta]
        assert found[name].tolist() == pytest.approx(wanted, rel=1e-12)


def test_thresholds_do_not_depend_on_the_number_of_steps() -> None:
    images = _images(20)
    network = NETWORKS["residual"]()
    recipe = ftbc.recipe("ltb", threshold=LocalBalance(iterations=5, batch=8))
    one, many = (ftbc.convert(network, images, steps, recipe) for steps in (1, 8))
    assert [row.threshold for row in one.layers()] == [row.threshold for row in many.layers()]
    other = ftbc.convert(network, images, 1, recipe, seed=1)
    assert [row.threshold for row in one.layers()] != [row.threshold for row in other.layers()]


@pytest.mark.parametrize("grain", ["layer", "channel"])
def test_thresholds_grow_to_the_largest_activation(grain) -> None:
    images = _images(6)
    network = NETWORKS["residual"]()
    ann = clean(nn.Sequential(network.stem, nn.ReLU()), images).graph  # type: ignore[arg-type]
    largest = Maximum(grain).choose(ann, images, 1, torch.Generator(), silent)["1"]
    few, more, many = (_choose(LocalBalance(n, 6, grain), ann, images)["1"] for n in (2, 4, 1500))
    assert few.shape == largest.shape
    assert bool((few < more).all()) and bool((many <= largest * (1 + 1e-9)).all())
    torch.testing.assert_close(many, largest, rtol=0.1, atol=0)


def test_the_first_step_may_go_beyond_where_all_are_alike() -> None:
    """A rate of 1 is that of the paper: twice the mean is above the largest if all are alike, and there it stays."""
    network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    network[0].weight.data.zero_()
    network[0].bias.data.fill_(0.3)
    x = torch.rand(8, 1, dtype=torch.float64)
    assert float(_choose(LocalBalance(9, 4), clean(network, x).graph, x)["1"]) == pytest.approx(0.6)


def test_layers_behind_read_clipped_activations() -> None:
    """Batch by batch: after the first the second layer has seen activations of at most twice their mean."""
    network = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    for place in (0, 2):
        network[place].weight.data.fill_(1.0)
        network[place].bias.data.zero_()
    x = torch.tensor([[0.0], [0.0], [0.0], [8.0]], dtype=torch.float64)  # mean 2: theta 4, clipped mean 1: theta 2
    found = _choose(LocalBalance(1, 4), clean(network, x).graph, x)
    assert (float(found["1"]), float(found["3"])) == pytest.approx((4.0, 2.0))


def test_the_ann_is_not_changed() -> None:
    images = _images(6)
    ann = clean(NETWORKS["residual"](), images).graph
    before = ann(images)
    _choose(LocalBalance(2, 6), ann, images)
    assert torch.equal(ann(images), before)


def test_not_a_number_is_named(refused: Refused) -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    network[0].weight.data.fill_(1e38)
    network[2].weight.data.fill_(1e38)
    x = torch.rand(4, 3) + 1
    refused(NotFiniteError, "'0'", _choose, LocalBalance(2), clean(network, torch.zeros(4, 3)).graph, 100 * x)


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"batch": 0}, {"grain": "pixel"}])
def test_wrong_settings_are_refused(wrong: dict, refused: Refused) -> None:
    refused(RecipeError, "LocalBalance", LocalBalance, **wrong)
