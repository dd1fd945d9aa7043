"""What all activations promise of their thresholds: positive, saved, each its own, and able to learn."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from ftbc import activation, zoo
from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdReLU
from ftbc.errors import ModelError
from tests.conftest import Refused

ALL = {
    "ThresholdReLU": lambda: ThresholdReLU(1.0, trainable=True),
    "QCFS": lambda: QCFS(4, 2.0),
    "SlipReLU": lambda: SlipReLU(4, 0.5, 2.0),
    "RateNorm": lambda: RateNorm(),
}


def test_all_are_here() -> None:
    assert set(ALL) == {kind.__name__ for kind in activation.NAMES.values()} - {"ReLU"}
    assert set(ALL) == set(activation.__all__) - {"NAMES", "ThresholdActivation", "named"}


@pytest.mark.parametrize("decay", [0.0, 1e-4])
@pytest.mark.parametrize("rate", [0.1, 10.0, 1e4])
@pytest.mark.parametrize("name", ALL)
def test_no_step_makes_it_negative(name: str, rate: float, decay: float) -> None:
    """SGD with momentum on the threshold itself, for which smaller is always better."""
    module = ALL[name]()
    optimiser = torch.optim.SGD(module.parameters(), rate, momentum=0.9, weight_decay=decay)
    z = torch.linspace(-1, 20, 1000)
    for _ in range(20):
        optimiser.zero_grad()
        (module(z).sum() + 1e3 * module.threshold).backward()
        optimiser.step()
        assert module.threshold > 0
        out = module(z)
        assert torch.isfinite(out).all() and (out >= 0).all()
    assert module.eval()(z).isfinite().all() and module.threshold > 0


@pytest.mark.parametrize("name", ["ThresholdReLU", "QCFS", "SlipReLU"])
def test_thrown_below_zero_it_comes_back(name: str) -> None:
    module = ALL[name]()
    module.theta.data.fill_(-50.0)
    optimiser = torch.optim.SGD(module.parameters(), 0.01)
    z = torch.full((10,), 3.0)
    for _ in range(200):
        optimiser.zero_grad()
        (module(z) - 2).pow(2).mean().backward()
        optimiser.step()
    torch.testing.assert_close(module.threshold.detach(), torch.tensor(2.0), rtol=0.05, atol=0)


@pytest.mark.parametrize("name", ["ThresholdReLU", "QCFS", "SlipReLU"])
def test_evaluation_changes_nothing(name: str) -> None:
    module = ALL[name]().eval()
    module.theta.data.fill_(-3.0)
    assert module(torch.ones(2)).max() < 1e-5 and module.theta == -3


@pytest.mark.parametrize("name", ALL)
def test_one_module_in_two_places_can_learn(name: str) -> None:
    module = ALL[name]()
    z = torch.randn(50, requires_grad=True)
    module(module(z) + z).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


@pytest.mark.parametrize("name", ALL)
def test_state_dict_carries_the_threshold(name: str) -> None:
    module, other = ALL[name](), ALL[name]()
    module.set_threshold(0.37)
    torch.testing.assert_close(module.threshold.detach(), torch.tensor(0.37))
    assert not torch.equal(other.threshold, module.threshold)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other.threshold, module.threshold)
    assert torch.equal(copy.deepcopy(module).threshold, module.threshold)
    assert "threshold=0.37" in repr(module)


@pytest.mark.parametrize("name", ALL)
def test_a_module_is_the_prototype_of_each_place(name: str) -> None:
    prototype = ALL[name]()
    model = zoo.build("resnet20", width=0.25, activation=prototype)
    own = [module for module in model.modules() if type(module) is type(prototype)]
    assert len(own) == 19 and prototype not in own
    assert len({id(parameter) for module in own for parameter in module.parameters()}) == 19
    own[0].set_threshold(0.11)
    assert len({float(module.threshold.detach()) for module in own}) == 2
    model(torch.randn(2, 3, 32, 32)).sum().backward()
    assert all(parameter.grad is not None for module in own for parameter in module.parameters())
    assert not any(isinstance(module, nn.ReLU) for module in model.modules())


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(QCFS, {"levels": 0}), (QCFS, {"levels": 2.0}), (QCFS, {"levels": True}), (QCFS, {"threshold": 0}),
     (QCFS, {"threshold": float("nan")}), (QCFS, {"threshold": float("inf")}), (ThresholdReLU, {"threshold": -1.0}),
     (ThresholdReLU, {"threshold": "1"}), (SlipReLU, {"slope": 1.5}), (SlipReLU, {"slope": -0.1}),
     (SlipReLU, {"clip_shift": 2.0}), (SlipReLU, {"step_shift": -1}), (RateNorm, {"maximum": 0.0}),
     (RateNorm, {"momentum": 2})],
    ids=str,
)  # fmt: skip
def test_wrong_settings(kind: type[nn.Module], settings: dict[str, Any], refused: Refused) -> None:
    refused(ModelError, (kind.__name__, *settings), kind, **settings)


def test_a_threshold_from_statistics_must_be_positive(refused: Refused) -> None:
    for make in ALL.values():
        refused(ModelError, "threshold=0.0", make().set_threshold, 0.0)
