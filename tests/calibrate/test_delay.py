"""The delayed read-out: when it begins, what it weighs, and that networks read it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc
from ftbc.calibrate import DelayedReadout
from ftbc.calibrate.delay import delayed
from ftbc.errors import RecipeError
from ftbc.simulate import layerwise
from tests.calibrate.support import make_calibration, make_images
from tests.conftest import Refused
from tests.networks import NETWORKS


@pytest.mark.parametrize(
    ("steps", "start", "least"), [(1, 0, 1), (8, 0, 4), (8, 3, 4), (8, 30, 4), (8, 5, 1), (8, 2, 9)]
)
def test_the_read_out_is_the_mean_from_the_start_on(steps: int, start: int, least: int) -> None:
    weights = delayed(steps, start, least)
    for t in range(1, steps + 1):
        counted = range(min(start, max(0, t - least)), t)
        wanted = [1 / len(counted) if step in counted else 0.0 for step in range(steps)]
        assert weights[t - 1].tolist() == pytest.approx(wanted)


@pytest.mark.parametrize("name", NETWORKS)
@torch.no_grad()
def test_the_delay_is_the_sum_of_first_firing_times(name: str) -> None:
    images = make_images(6)
    calibration = make_calibration(NETWORKS[name](), images)
    seen = {}
    calibration.ann(images, lambda node, value: seen.__setitem__(node.name, value))
    total = 0.0
    for node in calibration.snn:
        if node.name in seen and hasattr(node.module, "threshold"):
            waits = []
            for channel, (theta, v0) in enumerate(zip(node.module.threshold, node.module.initial, strict=True)):
                means = seen[node.name][:, channel].mean(0).flatten().tolist()
                waits += [float(theta - v0) / mean for mean in means if mean > 0]
            total += min(waits)
    assert total > 1
    assert DelayedReadout().delay(calibration, images) == pytest.approx(total)


def test_a_silent_layer_holds_nothing_back() -> None:
    network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    network[2].weight.data.zero_()
    network[2].bias.data.fill_(-1.0)
    x = torch.rand(6, 2, dtype=torch.float64)
    with torch.no_grad():
        calibration = make_calibration(network, x)
        assert 0 < DelayedReadout().delay(calibration, x) < float("inf")


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_read_it(name: str, tmp_path: Path) -> None:
    images = make_images(8)
    snn = ftbc.convert(NETWORKS[name](), images, 9, ftbc.Recipe(calibrate=[DelayedReadout(least=2)]))
    assert snn.readout is not None and snn.extra_steps == 0
    single = layerwise(snn.graph, images, 9)
    first = int((snn.readout[-1] > 0).nonzero()[0])
    assert 0 < first < 9
    torch.testing.assert_close(snn(images)[-1], single[first:].mean(0))
    torch.testing.assert_close(snn(images)[0], single[0])
    snn.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(images), snn(images))


def test_only_one_piece_weighs_the_steps(refused: Refused) -> None:
    recipe = ftbc.Recipe(calibrate=[DelayedReadout(), DelayedReadout()])
    refused(
        RecipeError, ("DelayedReadout", "one of them"), ftbc.convert, NETWORKS["plain"](), make_images(4), 2, recipe
    )


@pytest.mark.parametrize("wrong", [{"least": 0}, {"batch": 0}])
def test_wrong_settings_are_refused(wrong: dict, refused: Refused) -> None:
    refused(RecipeError, "DelayedReadout", DelayedReadout, **wrong)
