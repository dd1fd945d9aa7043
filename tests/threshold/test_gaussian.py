"""Thresholds from mean and variance against a search over the error of a normal distribution, number by number."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from ftbc.errors import RecipeError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.progress import silent
from ftbc.threshold import Gaussian
from ftbc.threshold.gaussian import least_error
from tests.conftest import Refused


def error(theta: float, mean: float, deviation: float, n: int) -> float:
    """E (relu(z) - q(z))^2 by adding up many values of z."""
    z = torch.linspace(mean - 9 * deviation, mean + 9 * deviation, 40001, dtype=torch.float64)
    density = torch.exp(-(((z - mean) / deviation) ** 2) / 2)
    q = theta / n * torch.floor(z * n / theta + 0.5).clamp(0, n)
    return float((density * (z.clamp(min=0) - q) ** 2).sum() / density.sum())


@pytest.mark.parametrize("n", [1, 2, 5, 32])
@pytest.mark.parametrize(("mean", "deviation"), [(0, 1), (0.7, 1), (-1, 0.5), (-0.9, 0.3), (3, 2), (2, 0.7)])
def test_no_other_threshold_has_a_smaller_error(mean: float, deviation: float, n: int) -> None:
    theta = float(least_error(torch.tensor([mean]), torch.tensor([deviation]), n)[0])
    others = torch.linspace(0.02 * deviation, mean * (mean > 0) + 8 * deviation, 600).tolist()
    least = min(error(other, mean, deviation, n) for other in others)
    assert error(theta, mean, deviation, n) <= least * (1 + 1e-4)


@pytest.mark.parametrize("n", [1, 4, 64])
def test_the_iteration_of_the_paper_stays_there(n: int) -> None:
    """theta <- theta k(mu, sigma), with k written out with erf and exp as in the paper."""
    for mean, deviation in ((0.0, 1.0), (0.7, 1.3), (-1.0, 0.8)):
        theta = float(least_error(torch.tensor([mean]), torch.tensor([deviation]), n)[0])
        u = [((2 * i - 1) / (2 * n) * theta - mean) / (math.sqrt(2) * deviation) for i in range(1, n + 1)]
        under = 1 - sum((2 * i - 1) / n**2 * math.erf(ui) for i, ui in enumerate(u, 1))
        first = mean / theta * (1 - sum(math.erf(ui) for ui in u) / n) / under
        second = deviation / (math.sqrt(math.pi / 2) * theta) * sum(math.exp(-ui * ui) for ui in u) / n / under
        assert first + second == pytest.approx(1, abs=1e-6)


def test_many_channels_at_once_and_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    mean, deviation = torch.randn(50), torch.rand(50) + 0.1
    together = least_error(mean, deviation, 8)
    alone = torch.cat([least_error(m, d, 8) for m, d in zip(mean.split(1), deviation.split(1), strict=True)])
    assert torch.equal(together, alone)
    monkeypatch.setattr("ftbc.threshold.gaussian._AT_ONCE", 64)
    assert torch.equal(least_error(mean, deviation, 8), together)
    assert torch.allclose(least_error(3 * mean, 3 * deviation, 8), 3 * together)


def _chosen(model: nn.Module, x: Tensor, piece: Gaussian, steps: int = 4) -> dict[str, Tensor]:
    graph = canonical(trace(model, x)).require().graph
    return piece.choose(graph, x, steps, torch.Generator(), silent)


@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
def test_mean_and_variance_are_those_of_the_input_to_the_site(grain: str) -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 4), nn.ReLU()).double().eval()
    x = torch.randn(300, 2, 5, 5, dtype=torch.float64)
    found = _chosen(model, x, Gaussian(parts=2, grain=grain))  # type: ignore[arg-type]
    z = model[0](x).detach()
    dims = {"layer": (0, 1, 2, 3), "channel": (0, 2, 3), "neuron": (0,)}[grain]
    wanted = least_error(z.mean(dims).flatten(), z.std(dims, correction=0).flatten(), 8)
    assert found["1"].shape == {"layer": (1,), "channel": (3,), "neuron": (3, 3, 3)}[grain]
    torch.testing.assert_close(found["1"].flatten(), wanted, rtol=1e-6, atol=0)


def test_dead_channels_bounds_and_images() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU6(), nn.Linear(4, 2)).double().eval()
    model[0].weight.data[0] = 0
    model[0].bias.data[:] = torch.tensor([-1.0, 0.0, 9.0, 0.1])  # never active; usual; above the bound; usual
    x = torch.randn(200, 3, dtype=torch.float64)
    theta = _chosen(model, x, Gaussian())["1"]
    assert theta[0] == theta.max() == 6.0 and theta[2] == 6.0 and bool((theta[[1, 3]] < 6).all())
    image = nn.Sequential(nn.ReLU(), nn.Linear(3, 2)).double().eval()
    wanted = least_error(x.mean(0), x.std(0, correction=0), 4)
    torch.testing.assert_close(_chosen(image, x, Gaussian())["0"], wanted, rtol=1e-6, atol=0)


def test_wrong_settings_are_refused(refused: Refused) -> None:
    refused(RecipeError, "parts", Gaussian, parts=0)
    refused(RecipeError, "grain", Gaussian, grain="pixel")
