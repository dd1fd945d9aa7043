"""Initial potentials of SNNC-AP against the network run anew for each layer, and what they pass through."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ftbc
from ftbc.calibrate import PotentialCorrection
from ftbc.errors import FileError, RecipeError
from ftbc.initial import Zero
from ftbc.neuron import IntegrateFire
from tests.calibrate.support import by_rerunning, make_calibration, make_images, neurons
from tests.conftest import Refused
from tests.networks import NETWORKS, residual


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_one_pass_equals_rerunning_the_network_for_each_layer(name: str) -> None:
    images = make_images(10)
    network = NETWORKS[name]()
    one_pass, rerun = (make_calibration(network, images) for _ in range(2))
    PotentialCorrection(batch=6)(one_pass)
    x = images[next(rerun.draw(6))]
    for neuron, _, spikes, a in by_rerunning(rerun, x):
        start = neuron.spread(neuron.initial).expand(a.shape[1:]).clone()
        for place in range(start.numel()):
            wanted = sum(image.flatten()[place] for image in a) / len(a)
            sent = sum(image.flatten()[place] for step in spikes for image in step) / (len(spikes) * len(a))
            start.view(-1)[place] += rerun.steps * (wanted - sent)
        neuron.initial = start
    for site, neuron in neurons(one_pass).items():
        assert neuron.initial.shape == one_pass.snn.shape(site)
        torch.testing.assert_close(neuron.initial, neurons(rerun)[site].initial, rtol=0, atol=1e-12, msg=site)


@torch.no_grad()
def test_each_neuron_comes_nearer_to_its_mean_activation() -> None:
    images = make_images(48)
    calibration = make_calibration(residual(), images, recipe=ftbc.Recipe(initial=Zero()))

    def gap() -> float:
        return sum(float((s.mean((0, 1)) - a.mean(0)).abs().sum()) for _, _, s, a in by_rerunning(calibration, images))

    before = gap()
    PotentialCorrection(batch=48)(calibration)
    assert gap() < before / 2


@pytest.mark.parametrize("name", NETWORKS)
def test_potentials_per_neuron_are_saved_scaled_and_run_by_every_engine(name: str, tmp_path: Path) -> None:
    images = make_images(8)
    snn = ftbc.convert(NETWORKS[name](), images, 3, "snnc-potential")
    outputs = snn(images)
    assert all(node.module.initial.shape == node.shape for node in snn.graph.of_type(IntegrateFire))
    assert torch.equal(snn(images, engine="stepwise"), outputs)
    torch.testing.assert_close(snn(images, engine="event"), outputs)
    torch.testing.assert_close(snn.with_unit_thresholds()(images), outputs)
    whole = snn.rounded(images)
    assert torch.equal(whole(images, engine="event"), whole(images))
    snn.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(images), outputs)


def test_potentials_of_another_shape_are_not_loaded(tmp_path: Path, refused: Refused) -> None:
    snn = ftbc.convert(residual(), make_images(4), 2, "snnc-potential")
    _first(snn).initial = torch.zeros(7, dtype=torch.float64)
    snn.save(tmp_path / "net.snn")
    refused(FileError, ("net.snn", "do not fit"), ftbc.load, tmp_path / "net.snn")


def _first(snn: ftbc.SpikingNetwork) -> IntegrateFire:
    return snn.graph.of_type(IntegrateFire)[0].module  # type: ignore[return-value]


def test_wrong_settings_are_refused(refused: Refused) -> None:
    refused(RecipeError, "PotentialCorrection", PotentialCorrection, batch=0)
