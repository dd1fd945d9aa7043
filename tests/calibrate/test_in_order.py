"""Layer by layer: each layer runs once, on what the whole network would bring it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ftbc.calibrate import in_order as module
from ftbc.calibrate.in_order import activations, in_order, segments
from ftbc.calibrate.walk import flow
from ftbc.graph.ir import INPUT
from ftbc.graph.ops import Activation
from ftbc.neuron import IntegrateFire, SpikingMaxPool, Temporal
from tests.calibrate.support import STEPS, make_calibration, make_images, record
from tests.networks import INPUT_SHAPE, NETWORKS, depthwise, residual


@pytest.fixture(params=["whole", "in parts", "in parts, not kept"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "whole":
        monkeypatch.setattr(flow, "_ROOM", 4 * STEPS * 8 * 64 * 5)  # five images of the largest layer
    if request.param == "in parts, not kept":
        monkeypatch.setattr(module, "_KEPT", 0)
    return request.param


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_currents_and_spikes_are_those_of_the_whole_network(name: str, memory: str) -> None:
    images = make_images(12)
    calibration = make_calibration(NETWORKS[name](), images)
    visited = []
    for site in in_order(calibration.snn, images, STEPS):
        currents, spikes = record(calibration.snn, images, STEPS, site.node.name)
        parts = list(site.currents())
        assert (len(parts) > 1) == (memory != "whole")
        torch.testing.assert_close(torch.cat(parts, 1), currents, rtol=0, atol=1e-12)
        assert torch.equal(torch.cat(list(site.spikes()), 1), spikes)
        visited.append(site.node.name)
    assert visited == [node.name for node in calibration.snn.of_type(IntegrateFire)]


@torch.no_grad()
def test_what_becomes_of_a_layer_reaches_those_behind(memory: str) -> None:
    images = make_images(12)
    calibration = make_calibration(residual(), images)
    for site in in_order(calibration.snn, images, STEPS):
        for _ in site.currents():
            pass
        site.neuron.bias = site.neuron.bias + 0.1 * site.neuron.threshold
        site.neuron.threshold = site.neuron.threshold * 0.9
        torch.testing.assert_close(
            torch.cat(list(site.spikes()), 1), record(calibration.snn, images, STEPS, site.node.name)[1]
        )


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_mean_inputs_give_the_mean_current(name: str, memory: str) -> None:
    """All between two layers of neurons is linear."""
    images = make_images(12)
    calibration = make_calibration(NETWORKS[name](), images)
    for site in in_order(calibration.snn, images, STEPS):
        means = site.mean_inputs()
        assert set(means) == set(site.segment.sources)
        currents, _ = record(calibration.snn, images, STEPS, site.node.name)
        torch.testing.assert_close(site.segment(means), currents.mean(0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_activations_are_those_of_the_whole_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANN_IMAGES", 5)
    images = make_images(12)
    ann = make_calibration(NETWORKS[name](), images).ann
    seen: dict[str, Tensor] = {}
    ann(images, lambda node, value: seen.__setitem__(node.name, value))
    sites = ann.of_type(Activation)
    for site, a in zip(sites, activations(ann, images), strict=True):
        torch.testing.assert_close(a, seen[site.name], rtol=0, atol=1e-12)


def test_a_pool_of_spikes_ends_a_segment_but_is_not_visited() -> None:
    images = make_images(6)
    snn = make_calibration(depthwise(), images).snn
    pools = snn.of_type(SpikingMaxPool)
    assert pools and [s.site for s in segments(snn, Temporal) if s.site in pools] == pools
    with torch.no_grad():
        assert not any(site.node in pools for site in in_order(snn, images, STEPS))


class _InputShortcut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Linear(3 * 64, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x).relu()
        return self.c((self.b(y) + x).relu().flatten(1))


@torch.no_grad()
def test_the_image_may_meet_spikes(memory: str) -> None:
    images = make_images(12)
    calibration = make_calibration(_InputShortcut().double(), images)
    sites = list(in_order(calibration.snn, images, STEPS))
    assert sites[1].segment.sources == (INPUT, sites[0].node.name)
    for site in in_order(calibration.snn, images, STEPS):
        currents, _ = record(calibration.snn, images, STEPS, site.node.name)
        torch.testing.assert_close(torch.cat(list(site.currents()), 1), currents, rtol=0, atol=1e-12)


@torch.no_grad()
def test_trains_are_dropped_when_no_layer_reads_them_any_more() -> None:
    layers = [layer for _ in range(4) for layer in (nn.Linear(6, 6), nn.ReLU())]
    network = nn.Sequential(*layers, nn.Linear(6, 2)).double()
    x = torch.rand(8, 6, dtype=torch.float64)
    calibration = make_calibration(network, x)
    for site in in_order(calibration.snn, x, STEPS):
        assert set(site._flow.kept) | {INPUT} == {*site.segment.sources, INPUT}


@torch.no_grad()
def test_single_precision_on_a_layout_with_channels_last() -> None:
    images = torch.rand(6, *INPUT_SHAPE)
    calibration = make_calibration(residual().float(), images)
    for site in in_order(calibration.snn, images, STEPS):
        for current in site.currents():
            assert current.dtype == torch.float32
