"""The distribution-aware correction against its formula written out, and what it is for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS
from ftbc.calibrate import DistributionAware
from ftbc.errors import RecipeError
from ftbc.initial import Half, SpreadHalf, Zero
from ftbc.neuron import Parallel, ParallelFire
from ftbc.threshold import Maximum
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS

STEPS, MOMENTUM, BATCHES = 3, 0.2, 4


def _images(count: int = 20) -> Tensor:
    return torch.rand(count, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(80, 6), nn.ReLU(),
        nn.Linear(6, 3),
    ).double()  # fmt: skip


@pytest.mark.parametrize("initial", [Half(), SpreadHalf()])
@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
def test_corrections_follow_the_formula(grain: str, initial: Half | SpreadHalf) -> None:
    """With all images in each batch: two streams, layer after layer, batch after batch."""
    model, x = _network(), _images()
    calibrate = (DistributionAware(MOMENTUM, batch=100, batches=BATCHES),)
    method = ftbc.Recipe(threshold=Maximum(grain), initial=initial, neuron=Parallel(), calibrate=calibrate)  # type: ignore[arg-type]
    snn = ftbc.convert(model, x, STEPS, method)
    sites = {int(node.name): node.module for node in snn.graph.of_type(ParallelFire)}
    psi = {place: torch.zeros(len(model[place - 1].weight)).double() for place in sites}
    phi = {place: zeros.clone() for place, zeros in psi.items()}
    for _ in range(BATCHES):
        exact = quantised = x
        for place, layer in enumerate(model):
            if place not in sites:
                exact, quantised = layer(exact).detach(), layer(quantised).detach()
                continue
            dims = [d for d in range(exact.ndim) if d != 1]
            shape = [-1, *[1] * (exact.ndim - 2)]
            theta = sites[place].spread(sites[place].threshold)
            psi[place] = 0.8 * psi[place] + 0.2 * (exact - quantised).mean(dims)
            count = torch.floor((quantised + psi[place].view(shape)) * STEPS / theta + 0.5).clamp(0, STEPS)
            sent = count / STEPS * (theta + phi[place].view(shape))
            exact = exact.clamp(min=0)
            phi[place] = 0.8 * phi[place] + 0.2 * (exact - sent).mean(dims)
            quantised = sent
    for place, layer in sites.items():
        shape = [-1, *[1] * (layer.threshold.ndim - 1)]
        assert phi[place].abs().sum() > 0 and (psi[place].abs().sum() > 0 or place == 1)
        torch.testing.assert_close(layer.size, layer.threshold + phi[place].view(shape), rtol=0, atol=1e-12)
        _, start = initial(layer.threshold, STEPS)
        torch.testing.assert_close(layer.bias, start + psi[place].view(shape), rtol=0, atol=1e-12)


def test_all_steps_are_what_mean_spikes_stand_for() -> None:
    x = _images()
    snn = ftbc.convert(NETWORKS["residual"](), x, STEPS, "parallel-relu")
    sent: dict[str, Tensor] = {}
    received: dict[str, Tensor] = {}

    def keep(node, inputs, output, start) -> None:  # type: ignore[no-untyped-def]
        if isinstance(node.module, ParallelFire):
            received[node.name], sent[node.name] = inputs[0].mean(0), output.mean(0)

    ftbc.simulate.layerwise(snn.graph, x, STEPS, observe=keep, room=1 << 30)
    for name, mean in received.items():
        torch.testing.assert_close(snn.graph[name].module.mean_sent(mean), sent[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_network_comes_nearer_to_the_ann(network: str) -> None:
    model, x = NETWORKS[network](), _images(64)
    wanted = model(x).detach()

    def error(calibrate: tuple) -> float:
        # Membranes that start empty round down: there is something to correct.
        snn = ftbc.convert(model, x, 4, ftbc.recipe("parallel-relu", initial=Zero(), calibrate=calibrate))
        return float((snn(x)[-1] - wanted).pow(2).mean())

    assert error((DistributionAware(),)) < 0.5 * error(())


def test_a_qcfs_network_whose_levels_round_otherwise_gains() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), QCFS(8, 0.6), nn.Conv2d(8, 8, 3), QCFS(8, 0.3), nn.Flatten(), nn.Linear(128, 4)
    ).double()
    x = _images(64)
    wanted = model(x).detach()
    errors = [
        float((snn(x)[-1] - wanted).pow(2).mean())
        for pieces in ((), (DistributionAware(),))
        for snn in [ftbc.convert(model, x, 2, ftbc.recipe("parallel", initial=Zero(), calibrate=pieces))]
    ]
    assert errors[1] < 0.9 * errors[0]


def test_an_activation_of_the_image_itself() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(192, 3)).double()
    x = _images() - 0.5
    snn = ftbc.convert(model, x, 4, "parallel-relu")
    assert float((snn(x)[-1] - model(x)).abs().max()) < 0.2


def test_wrong_settings_are_refused(refused: Refused) -> None:
    for wrong in ({"momentum": 0.0}, {"momentum": 1.5}, {"batch": 0}, {"batches": 0}):
        refused(RecipeError, "DistributionAware", DistributionAware, **wrong)
