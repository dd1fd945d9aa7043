"""Other activations for a trained network: each ReLU once, with a threshold that fits what it saw."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from ftbc import zoo
from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdActivation, ThresholdReLU
from ftbc.errors import UnsupportedError
from ftbc.train.swap import swap_activations
from tests.conftest import Refused

PROTOTYPES = [QCFS(4), SlipReLU(8, 0.2), ThresholdReLU(trainable=True), RateNorm()]


def _inputs(model: nn.Module, name: str, x: Tensor) -> Tensor:
    seen = []
    handle = model.get_submodule(name).register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].detach()))
    with torch.no_grad():
        model(x)
    handle.remove()
    return seen[0]


@pytest.mark.parametrize("prototype", PROTOTYPES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("name", ["resnet20", "mobilenet-v1-cifar", "vgg16-cifar"])
def test_every_relu_is_replaced_by_one_of_its_own(name: str, prototype: ThresholdActivation) -> None:
    model = zoo.build(name, width=0.25)
    relus = [place for place, module in model.named_modules() if isinstance(module, nn.ReLU)]
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    swap_activations(model, prototype, torch.randn(8, 3, 32, 32))
    own = [model.get_submodule(place) for place in relus]
    assert all(type(module) is type(prototype) for module in own) and len(set(map(id, own))) == len(relus) > 10
    assert len({round(float(module.threshold.detach()), 6) for module in own}) > len(relus) // 2
    assert all(torch.equal(model.state_dict()[key], value) for key, value in weights.items())
    assert not model.training


@pytest.mark.parametrize("steps", [None, 1, 4])
@pytest.mark.parametrize("prototype", [QCFS(4), ThresholdReLU()], ids=lambda p: type(p).__name__)
def test_thresholds_are_those_of_least_square_error(prototype: ThresholdActivation, steps: int | None) -> None:
    if steps is None and prototype.levels is None:
        pytest.skip("a percentile: see below")
    torch.manual_seed(0)
    model, x = zoo.build("resnet20", width=0.25).eval(), torch.randn(32, 3, 32, 32)
    z = _inputs(model, "act1", x)
    swap_activations(model, prototype, x, steps)
    theta = float(model.act1.threshold.detach())

    def error(theta: float) -> float:
        return float((QCFS(steps or 1, theta)(z).detach() - z.clamp(min=0)).pow(2).sum())

    best = min((error(float(z.max()) * k / 100), float(z.max()) * k / 100) for k in range(6, 101))[1]
    assert theta == pytest.approx(best, abs=0.0101 * float(z.max()))
    assert error(theta) < error(8.0) and error(theta) < error(float(z.max()))


def test_few_steps_are_the_usual_ones_of_levels() -> None:
    """Thresholds barely move in a few epochs: those for one step are smaller, and right with fewer steps."""
    torch.manual_seed(0)
    x = torch.randn(32, 3, 32, 32)
    model = zoo.build("resnet20", width=0.25).eval()
    usual, for_four = (swap_activations(copy.deepcopy(model), QCFS(4), x, steps) for steps in (None, 4))
    assert float(usual.act1.threshold.detach()) < 0.8 * float(for_four.act1.threshold.detach())


def test_without_levels_nearly_nothing_is_clipped() -> None:
    model, x = zoo.build("resnet20", width=0.25).eval(), torch.randn(32, 3, 32, 32)
    wanted, z = model(x).detach(), _inputs(model, "act1", x)
    swap_activations(model, ThresholdReLU(), x)
    clipped = float((z > model.act1.threshold).sum() / (z > 0).sum())
    assert 0.0002 < clipped < 0.002
    assert (model(x) - wanted).norm() < 0.1 * wanted.norm()


def test_a_module_in_two_places_has_one_threshold() -> None:
    torch.manual_seed(0)
    act = nn.ReLU()
    model = nn.Sequential(nn.Linear(6, 20), act, nn.Linear(20, 20), act)
    model[2].weight.data *= 10
    swap_activations(model, ThresholdReLU(), torch.randn(100, 6))
    assert isinstance(model[1], ThresholdReLU) and model[1].threshold > 3 and model[3] is model[1]


class _Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.second = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(self.act(self.first(x))))


def test_a_relu_that_is_no_module_is_named(refused: Refused) -> None:
    model = _Functional()
    refused(
        UnsupportedError, ("'relu'", "test_swap.py:", "nn.ReLU()"), swap_activations, model, QCFS(4), torch.rand(9, 4)
    )
    assert isinstance(model.act, nn.ReLU)
