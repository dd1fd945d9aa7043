"""The recipe 'best': all pieces together, on networks of every structure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import ftbc
from ftbc.neuron import IntegrateFire
from tests.calibrate.walk.test_walk import OWN, lively, pictures


def _error(snn: ftbc.SpikingNetwork, network: torch.nn.Module, images: Tensor) -> float:
    with torch.no_grad():
        return float((snn(images)[-1] - network(images)).pow(2).mean())


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("steps", [1, 4])
def test_nearer_to_the_ann_than_ftbc_on_other_pictures(name: str, steps: int) -> None:
    torch.manual_seed(9)
    network, images, others = lively(OWN[name]()), pictures(256), pictures(128, seed=1)
    best, ftbc_ = (ftbc.convert(network, images, steps, recipe) for recipe in ("best", "ftbc"))
    assert _error(best, network, others) < 0.8 * _error(ftbc_, network, others)


@pytest.mark.parametrize("name", OWN)
def test_engines_agree_and_a_saved_network_is_the_same(name: str, tmp_path: Path) -> None:
    torch.manual_seed(9)
    images = pictures(24)
    snn = ftbc.convert(lively(OWN[name]()), images, 3, "best")
    assert torch.equal(snn(images), snn(images, engine="stepwise"))
    snn.save(tmp_path / "best.snn")
    loaded = ftbc.load(tmp_path / "best.snn")
    assert torch.equal(loaded(images), snn(images))
    assert loaded.recipe == snn.recipe


@pytest.mark.parametrize("name", OWN)
def test_spikes_are_zero_or_one_after_scaling(name: str) -> None:
    """Only weights, biases, b[t], thresholds and the read-out have changed: the form for chips exists and agrees."""
    torch.manual_seed(9)
    images = pictures(24)
    snn = ftbc.convert(lively(OWN[name]()), images, 4, "best")
    unit = snn.with_unit_thresholds()
    seen: dict[str, Tensor] = {}

    def keep(node, inputs, spikes, start) -> None:
        if isinstance(node.module, IntegrateFire):
            seen[node.name] = spikes

    unit(images, observe=keep)
    assert len(seen) == len(snn.graph.of_type(IntegrateFire))
    for site, spikes in seen.items():
        assert set(spikes.unique().tolist()) <= {0.0, 1.0}, site
        assert bool((unit.graph[site].module.threshold == 1).all())
    torch.testing.assert_close(unit(images), snn(images), rtol=1e-7, atol=1e-9)


def test_the_seed_decides_and_the_network_stays(tmp_path: Path) -> None:
    network, images = lively(OWN["residual"]()), pictures(48)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    recipe = ftbc.recipe("best")
    first, again, other = (ftbc.convert(network, images, 3, recipe, seed=seed)(images) for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_without_the_extra_fast_the_result_is_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    network, images = lively(OWN["residual"]()), pictures(64)
    fast = ftbc.convert(network, images, 3, "best")
    monkeypatch.setattr("ftbc.calibrate.descent._kernels", lambda: None)
    monkeypatch.setattr("ftbc.neuron.fused._kernels", lambda: None)
    plain = ftbc.convert(network, images, 3, "best")
    torch.testing.assert_close(plain(images), fast(images), rtol=1e-6, atol=1e-8)


def test_single_precision_and_one_image() -> None:
    network = OWN["plain"]().float()
    snn = ftbc.convert(network, pictures(1).float(), 2, "best")
    assert bool(torch.isfinite(snn(pictures(5).float())).all())


@pytest.mark.parametrize("name", ["plain", "bottleneck", "tokens"])
def test_the_anytime_form_is_nearer_before_the_last_step(name: str) -> None:
    torch.manual_seed(9)
    network, images, others = lively(OWN[name]()), pictures(256), pictures(128, seed=1)
    with torch.no_grad():
        z = network(others)
    last, anytime = (ftbc.convert(network, images, 16, recipe)(others) for recipe in ("best", "best-anytime"))
    errors = [(out - z).pow(2).mean((1, 2)) for out in (last, anytime)]
    assert float(errors[1][3]) < 0.9 * float(errors[0][3])
    assert float(errors[1][-1]) < float(errors[1][7]) < float(errors[1][3])


def test_recipe_as_text_and_back() -> None:
    recipe = ftbc.recipe("best")
    assert ftbc.Recipe.from_dict(recipe.to_dict()) == recipe
