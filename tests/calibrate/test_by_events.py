"""FTBC on events against FTBC step by step, and what must go step by step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import ftbc
from ftbc import FTBC
from ftbc.calibrate import by_events
from ftbc.calibrate.by_events import ByEvents
from ftbc.measure.machine import threads as using_threads
from ftbc.neuron import Burst, Differential, IntegrateFire, Kind, Plain, Signed, Spiking
from ftbc.recipe import Recipe
from ftbc.simulate.event import corrected
from ftbc.threshold import Maximum
from ftbc.threshold.activations import Grain
from tests.calibrate.support import STEPS, make_calibration, make_images
from tests.networks import INPUT_SHAPE, NETWORKS

pytest.importorskip("numba")

GRAINS: tuple[Grain, ...] = ("channel", "layer", "neuron")


@pytest.fixture(autouse=True)
def worth_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_events, "WORTH", 0)


def _wide() -> nn.Module:
    """More than one block of 64 channels, a max-pool that torch runs, neurons without positions."""
    layers = (nn.Conv2d(3, 70, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(70, 20, 1, groups=2), nn.ReLU())
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(20 * 16, 33), nn.ReLU(), nn.Linear(33, 4)).double()


def _network(name: str) -> nn.Module:
    torch.manual_seed(3)
    return _wide() if name == "wide" else NETWORKS[name]()


def _both_ways(monkeypatch: pytest.MonkeyPatch, convert) -> tuple[ftbc.SpikingNetwork, ftbc.SpikingNetwork]:
    """A conversion on events and one step by step."""
    used, of = [], ByEvents.of.__func__

    def watched(cls, *arguments):
        used.append(of(cls, *arguments))
        return used[-1]

    monkeypatch.setattr(ByEvents, "of", classmethod(watched))
    on_events = convert()
    assert used and used[0] is not None, "went step by step"
    monkeypatch.setattr(ByEvents, "of", classmethod(lambda *_: None))
    return on_events, convert()


@pytest.mark.parametrize("name", [*NETWORKS, "wide"])
@pytest.mark.parametrize("grain", GRAINS)
@pytest.mark.parametrize("kind", [Plain(), Signed(lower=0.0), Burst(3)], ids=["plain", "signed", "burst"])
def test_events_give_what_steps_give(name: str, grain: Grain, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several iterations and batches, whose images fill no cache evenly; in float64 no spike differs."""
    network, images = _network(name), torch.rand(42, *INPUT_SHAPE, dtype=torch.float64)
    method = ftbc.recipe("ftbc", neuron=kind, calibrate=(FTBC(iterations=3, batch=19, grain=grain),))
    fast, slow = _both_ways(monkeypatch, lambda: ftbc.convert(network, images, STEPS, method))
    for one, other in zip(fast.graph.of_type(Spiking), slow.graph.of_type(Spiking), strict=True):
        above_a_bound = one.name.endswith("_above")  # where nothing is: see `graph/bound.py`
        assert bool(one.module.bias.any()) is not above_a_bound
        torch.testing.assert_close(one.module.bias, other.module.bias, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(fast(images), slow(images), rtol=0, atol=1e-11)


def test_in_float32_and_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are added in another order there: a neuron at its threshold may go either way, and hardly any is there."""
    network, images = _network("residual").float(), torch.rand(64, *INPUT_SHAPE)
    monkeypatch.setattr("ftbc.simulate.event.layer.WORTH_A_THREAD", 1)
    with using_threads(2):
        fast, slow = _both_ways(monkeypatch, lambda: ftbc.convert(network, images, STEPS, "ftbc"))
    for one, other in zip(fast.graph.of_type(IntegrateFire), slow.graph.of_type(IntegrateFire), strict=True):
        assert (one.module.bias - other.module.bias).abs().mean() < 1e-3 * other.module.bias.abs().mean()


def test_a_layer_that_fires_often_is_computed_densely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftbc.simulate.event.cells.DENSE_ABOVE", 0.0)
    network, images = _network("plain"), torch.rand(30, *INPUT_SHAPE, dtype=torch.float64)
    fast, slow = _both_ways(monkeypatch, lambda: ftbc.convert(network, images, STEPS, "ftbc"))
    torch.testing.assert_close(fast(images), slow(images), rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "method",
    [
        ftbc.recipe("ftbc", threshold=Maximum("neuron"), calibrate=(FTBC(iterations=1),)),
        ftbc.recipe("ftbc", neuron=Differential(2), calibrate=(FTBC(iterations=1),)),
    ],
    ids=["thresholds of neurons", "changes"],
)
def test_what_has_no_counts_goes_step_by_step(method: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByEvents, "correct", lambda *_: pytest.fail("ran on events"))
    ftbc.convert(_network("residual"), make_images(12), STEPS, method)


@pytest.mark.parametrize("bound", ["work", "memory"])
def test_little_work_and_large_values_go_step_by_step(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bound == "work":
        monkeypatch.setattr(by_events, "WORTH", 1 << 31)
    else:
        monkeypatch.setattr(corrected, "MOST_BYTES", 1000)
    calibration = make_calibration(_network("wide"), make_images(12))
    means = FTBC().targets(calibration, calibration.images)
    assert ByEvents.of(calibration, means, 12, 1) is None
    monkeypatch.undo()
    monkeypatch.setattr(by_events, "WORTH", 0)
    assert ByEvents.of(calibration, means, 12, 1) is not None
