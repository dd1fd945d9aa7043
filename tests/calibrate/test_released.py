"""The released variant of FTBC against itself written out, with the network run anew for each layer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS
from ftbc.calibrate import FTBC, Calibration, ReleasedFTBC
from ftbc.errors import RecipeError
from tests.calibrate.support import by_rerunning, make_calibration, make_images, neurons
from tests.conftest import Refused
from tests.networks import NETWORKS


def _naively(calibration: Calibration, x: Tensor, alpha: float) -> None:
    for neuron, currents, _, a in by_rerunning(calibration, x):
        for channel in range(a.shape[1]):
            theta, start = float(neuron.threshold[channel]), float(neuron.initial[channel])
            targets = a[:, channel].flatten().tolist()
            trains = currents[:, :, channel].flatten(1).T.tolist()
            errors = [0.0] * calibration.steps
            for target, train in zip(targets, trains, strict=True):
                v = start
                for t, current in enumerate(train):
                    mem = v + current
                    e = (theta if mem >= theta else 0.0) - target
                    mem = mem - e
                    v = mem - (theta if mem >= theta else 0.0)
                    errors[t] += e
            for t, total in enumerate(errors):
                neuron.bias[t, channel] -= alpha * total / len(targets)


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_one_pass_equals_rerunning_the_network_for_each_layer(name: str) -> None:
    images = make_images(12)
    network = NETWORKS[name]()
    one_pass, rerun = (make_calibration(network, images) for _ in range(2))
    ReleasedFTBC(alpha=0.4, batch=5, batches=2)(one_pass)
    for chosen in rerun.draw(5, 2):
        _naively(rerun, images[chosen], 0.4)
    for site, neuron in neurons(one_pass).items():
        assert neuron.bias.abs().max() > 1e-3
        torch.testing.assert_close(neuron.bias, neurons(rerun)[site].bias, rtol=0, atol=1e-12, msg=site)


@torch.no_grad()
def test_the_correction_grows_with_each_batch_where_that_of_the_paper_settles() -> None:
    """The replay leaves b out, so that the first layer sees the same error again and again."""
    network = nn.Sequential(nn.Linear(3, 6), QCFS(4, 0.8), nn.Linear(6, 2)).double()
    x = torch.rand(32, 3, dtype=torch.float64)

    def size(method: ReleasedFTBC | FTBC, times: int) -> float:
        calibration = make_calibration(network, x, recipe="qcfs")
        for _ in range(times):
            method(calibration)
        return float(neurons(calibration)["1"].bias.abs().max())

    released, paper = ReleasedFTBC(batch=32, batches=1), FTBC(alpha=0.4, iterations=1, batch=32, batches=1)
    assert size(released, 30) == pytest.approx(30 * size(released, 1), rel=1e-9)
    assert size(paper, 30) < 5 * size(paper, 1)


def test_a_recipe_of_its_own() -> None:
    network = nn.Sequential(nn.Conv2d(3, 5, 3), QCFS(4, 0.7), nn.Flatten(), nn.Linear(180, 2)).double()
    snn = ftbc.convert(network, make_images(16), 4, "ftbc-qcfs-released")
    neuron = snn.graph["1"].module
    assert neuron.threshold.shape == (1,) and neuron.bias.shape == (4, 5) and neuron.bias.abs().max() > 0


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"batch": 0}, {"batches": 0}])
def test_wrong_settings_are_refused(wrong: dict, refused: Refused) -> None:
    refused(RecipeError, "ReleasedFTBC", ReleasedFTBC, **wrong)
