"""Layer by layer or step by step: the same spikes, to the last bit."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from tests.graph.support import Net, settled

STEPS = 6


def conv(into: int = 4, out: int = 4, **more: int) -> nn.Module:
    return nn.Conv2d(into, out, 3, padding=1, **more)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Sequential(conv(), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5), nn.ReLU()),
    "residual": lambda: Net(
        lambda m, x: F.relu(m.c(y := F.relu(m.bn(m.a(x)))) + m.d(F.relu(m.b(y))) - 0.5 * y).mean((2, 3)),
        a=conv(), b=conv(), c=conv(), d=conv(), bn=nn.BatchNorm2d(4),
    ),
    "shortcut from the input": lambda: Net(lambda m, x: F.relu(m.a(F.relu(m.b(x))) + x), a=conv(), b=conv()),
    "concat": lambda: Net(
        lambda m, x: m.b(torch.cat([F.relu(m.a(x)), x, F.interpolate(F.avg_pool2d(F.relu6(x), 2), scale_factor=2)], 1)),
        a=conv(), b=conv(12),
    ),
    "max-pool": lambda: Net(
        lambda m, x: m.b(F.max_pool2d(F.relu(m.a(F.max_pool2d(F.relu(m.b(x)), 3, 1, 1))), 2)), a=conv(), b=conv()
    ),
    "max-pool in front": lambda: Net(lambda m, x: F.relu(F.max_pool2d(m.a(F.relu(m.b(x))), 2)), a=conv(), b=conv()),
    "depthwise": lambda: nn.Sequential(
        nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8), nn.ReLU6(), conv(8, 8, groups=8), nn.ReLU6(), nn.Conv2d(8, 3, 1)
    ),
    "head": lambda: nn.Sequential(nn.Flatten(), nn.Linear(256, 6), nn.ReLU(), nn.Linear(6, 3), nn.LogSoftmax(1)),
    "BatchNorm in front": lambda: nn.Sequential(conv(), nn.ReLU(), nn.BatchNorm2d(4), conv(), nn.ReLU()),
}  # fmt: skip


@functools.cache
def converted(name: str, recipe: str = "mean-square") -> tuple[ftbc.SpikingNetwork, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(7, 4, 8, 8, dtype=torch.float64)
    return ftbc.convert(settled(NETWORKS[name]()), x, steps=STEPS, recipe=recipe), x


@pytest.mark.parametrize("name", NETWORKS)
def test_constant_input(name: str) -> None:
    snn, x = converted(name)
    layerwise = snn(x, engine="layerwise")
    assert layerwise.shape[:2] == (STEPS, 7) and layerwise.std() > 0
    assert torch.equal(layerwise, snn(x, engine="stepwise"))
    assert torch.equal(layerwise, snn(x.expand(STEPS, *x.shape), time_first=True))
    assert torch.equal(layerwise, torch.stack([snn.step(x) for _ in range(STEPS)]))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("steps", [1, 4, STEPS])
def test_input_over_time(name: str, steps: int) -> None:
    snn, x = converted(name)
    over_time = torch.randn(steps, *x.shape, dtype=torch.float64)
    layerwise = snn(over_time, time_first=True)
    assert torch.equal(layerwise, snn(over_time, time_first=True, engine="stepwise"))
    snn.reset()
    assert torch.equal(layerwise, torch.stack([snn.step(current) for current in over_time]))
    assert torch.equal(layerwise, snn(over_time, time_first=True)), "a run depends on what ran before"


@pytest.mark.parametrize("name", NETWORKS)
def test_average_output_comes_near_the_network(name: str) -> None:
    """At many steps the spiking network is the ANN with clipped activations, up to a small error."""
    torch.manual_seed(0)
    model = settled(NETWORKS[name]())
    x = torch.randn(7, 4, 8, 8, dtype=torch.float64)
    snn = ftbc.convert(model, x, steps=256, recipe="maximum")
    wanted = model(x).detach()
    error = (snn(x)[-1] - wanted).pow(2).mean() / wanted.var()
    assert error < 0.01


@pytest.mark.parametrize("name", ["residual", "max-pool"])
def test_calibrated_networks_too(name: str) -> None:
    snn, x = converted(name, "ftbc")
    assert torch.equal(snn(x), snn(x, engine="stepwise"))
