"""Layer by layer in several threads: each has images and neurons of its own, and all give what one gives."""

from __future__ import annotations

import importlib
import threading

import pytest
import torch

import ftbc
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.simulate import layerwise
from tests.networks import depthwise, plain, residual, settled

module = importlib.import_module("ftbc.simulate.layerwise")


@pytest.fixture
def worth_two(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, and any work is worth both."""
    monkeypatch.setattr(module, "_WORTH_A_THREAD", 1)


@pytest.mark.parametrize("make", [plain, residual, depthwise])
@pytest.mark.parametrize("time_first", [False, True])
def test_two_threads_give_what_one_gives(make, time_first: bool, worth_two: None, monkeypatch) -> None:
    torch.manual_seed(0)
    model = settled(make()).double()
    shape = (13, 3, 8, 8)
    snn = ftbc.convert(model, torch.rand(shape).double(), steps=5)
    x = torch.rand((5, *shape) if time_first else shape).double()
    images = set()
    run, both_are_here = IntegrateFire.consume, threading.Barrier(2, timeout=60)

    def together(self, x):
        images.add(x.shape[1])
        both_are_here.wait()  # in one layer at one time: what they share, they would spoil
        return run(self, x)

    monkeypatch.setattr(IntegrateFire, "consume", together)
    with torch.no_grad():
        found = layerwise(snn.graph, x, 5, time_first)
    assert images == {6, 7}
    monkeypatch.setattr(IntegrateFire, "consume", run)
    torch.set_num_threads(1)
    assert torch.allclose(layerwise(snn.graph, x, 5, time_first), found, rtol=0, atol=1e-12)
    neurons = [node.module for node in snn.graph.of_type(IntegrateFire)]
    assert all(neuron.v is None and neuron.t == 0 for neuron in neurons), "a state that nobody sees"


def test_an_observer_sees_all_images_at_once(worth_two: None) -> None:
    snn = ftbc.convert(settled(plain()), torch.rand(8, 3, 8, 8).double(), steps=2)
    seen = []
    with torch.no_grad():
        layerwise(
            snn.graph,
            torch.rand(8, 3, 8, 8).double(),
            2,
            observe=lambda node, ins, out, first: seen.append(out.shape[1]),
        )
    assert set(seen) == {8}
