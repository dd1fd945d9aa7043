"""Max-pooling of spike trains: the average output is the maximum of the average inputs, at every step."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.graph.spec import clone, describe
from ftbc.neuron import SpikingMaxPool

POOLS = {
    "plain": (nn.MaxPool2d(2), (3, 6, 6)),
    "overlapping, padded": (nn.MaxPool2d(3, 2, 1), (3, 6, 6)),
    "ceil mode": (nn.MaxPool2d(2, ceil_mode=True), (3, 5, 5)),
    "dilated": (nn.MaxPool2d(2, 1, dilation=2), (3, 6, 6)),
    "one dimension": (nn.MaxPool1d(3), (3, 9)),
    "three dimensions": (nn.MaxPool3d(2), (2, 4, 4, 4)),
    "adaptive": (nn.AdaptiveMaxPool2d((2, 1)), (3, 5, 5)),
}


def running_mean(x: Tensor) -> Tensor:
    counts = torch.arange(1, len(x) + 1, dtype=x.dtype).view(-1, *[1] * (x.ndim - 1))
    return x.cumsum(0) / counts


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("kind", ["spikes", "currents"])
def test_average_output_is_maximum_of_average_input_at_every_step(name: str, kind: str) -> None:
    torch.manual_seed(0)
    pool, shape = POOLS[name]
    x = torch.randn(7, 4, *shape, dtype=torch.float64)
    if kind == "spikes":
        x = 0.7 * (x > 0.3).double()
    mean = running_mean(SpikingMaxPool(pool).run(x))
    for t, average in enumerate(running_mean(x)):
        torch.testing.assert_close(mean[t], pool(average), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_chunks_and_all_at_once_are_the_same(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    pool, shape = POOLS[name]
    module = SpikingMaxPool(pool)
    x = torch.randn(6, 2, *shape, dtype=dtype)
    wanted = module.run(x)
    for cuts in ([1] * 6, [2, 4], [3, 1, 2]):
        module.reset()
        assert torch.equal(torch.cat([module.run(part) for part in x.split(cuts)]), wanted)
    module.reset()
    assert torch.equal(torch.stack([module(step) for step in x]), wanted)


def test_chosen_images_go_on_as_if_alone() -> None:
    module = SpikingMaxPool(nn.MaxPool2d(2))
    x = torch.randn(6, 5, 3, 4, 4, dtype=torch.float64)
    wanted = module.run(x)
    module.reset()
    module.select(torch.tensor([0]))  # at rest there is nothing to forget
    module.run(x[:2])
    chosen = torch.tensor([3, 0])
    module.select(chosen)
    assert torch.equal(module.run(x[2:, chosen]), wanted[2:, chosen])


def test_spikes_of_one_size_stay_single_spikes() -> None:
    torch.manual_seed(0)
    theta = torch.tensor([0.25, 0.5, 2.0], dtype=torch.float64).view(3, 1, 1)  # sums of them are exact
    x = theta * (torch.rand(12, 4, 3, 6, 6) < 0.3)
    y = SpikingMaxPool(nn.MaxPool2d(3, 2, 1)).run(x)
    assert bool(((y == 0) | (y == theta)).all())
    assert 0 < float((y > 0).double().mean()) < 1


def test_loudest_neuron_may_change() -> None:
    """One neuron leads, the other overtakes: the output waits until the lead is made up."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]).view(4, 1, 1, 2)
    assert SpikingMaxPool(nn.MaxPool1d(2)).run(x).flatten().tolist() == [1.0, 0.0, 1.0, 1.0]


def test_description_rebuilds_it() -> None:
    module = SpikingMaxPool(nn.MaxPool2d(3, 2, 1))
    copied = clone(module)
    assert describe(copied) == describe(module)
    x = torch.rand(3, 2, 1, 6, 6)
    assert torch.equal(copied.run(x), module.run(x))
    assert clone(module).total is None, "a copy starts at rest"
    assert not module.state_dict()


@pytest.mark.parametrize("order", ["pool behind the neurons", "pool in front of the neurons"])
def test_in_a_network_the_pool_is_exact_at_every_step(order: str) -> None:
    torch.manual_seed(0)
    middle = [nn.ReLU(), nn.MaxPool2d(2)] if order == "pool behind the neurons" else [nn.MaxPool2d(2), nn.ReLU()]
    layers = [nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 3, padding=1), *middle, nn.Conv2d(4, 2, 1)]
    x = torch.rand(5, 2, 8, 8, dtype=torch.float64)
    snn = ftbc.convert(nn.Sequential(*layers).double(), x, steps=8, recipe="mean-square")
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    snn(x, observe=lambda node, inputs, output, *_: seen.__setitem__(node.name, (inputs[0], output)))
    (name,) = [node.name for node in snn.graph if "Pool" in type(node.module).__name__]
    into, out = seen[name]
    for average, pooled in zip(running_mean(into), running_mean(out), strict=True):
        torch.testing.assert_close(pooled, F.max_pool2d(average, 2), rtol=0, atol=1e-12)
