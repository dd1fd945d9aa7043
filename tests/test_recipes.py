"""The table of methods: every one runs, says what it needs, and has a card."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS, RateNorm, SlipReLU, ThresholdReLU
from ftbc.calibrate import FTBC, WeightCorrection
from ftbc.errors import RecipeError
from ftbc.facts import SPIKES, Facts
from ftbc.neuron import Parallel, Residual, Spiking
from ftbc.threshold import Trained
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS

CARDS = Path(__file__).parents[1] / "docs" / "methods.md"
ACTIVATIONS = {"rnl": RateNorm(0.5), "rts": ThresholdReLU(0.8), "opi": ThresholdReLU(0.8, trainable=True),
               "slip-relu": SlipReLU(4, 0.4, 0.8), "ftbc-rts": ThresholdReLU(0.8)}  # fmt: skip


def _quick(recipe: ftbc.Recipe) -> ftbc.Recipe:
    """The same pieces with two iterations or batches."""

    def shorter(piece: Any) -> Any:
        long = [name for name in ("iterations", "batches") if getattr(piece, name, 0) > 2]
        return dataclasses.replace(piece, **dict.fromkeys(long, 2))

    return dataclasses.replace(
        recipe, threshold=shorter(recipe.threshold), calibrate=[shorter(piece) for piece in recipe.calibrate]
    )


def _images(count: int = 8) -> Tensor:
    return torch.rand(count, *INPUT_SHAPE, dtype=torch.float64)


def _network(name: str, recipe: ftbc.Recipe) -> nn.Module:
    trained = ACTIVATIONS.get(recipe.name, QCFS(4, 0.8)) if recipe.facts.trained else None
    return NETWORKS[name](trained)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("method", ftbc.recipes())
def test_every_method_runs(method: str, name: str) -> None:
    recipe, images = _quick(ftbc.recipe(method)), _images()
    network = _network(name, recipe)
    for steps in (1, 2, 8):
        snn = ftbc.convert(network, images, steps, recipe)
        outputs = snn(images)
        assert outputs.shape == (steps, len(images), 5) and bool(torch.isfinite(outputs).all())
        assert snn.extra_steps == recipe.facts.extra_steps
    if recipe.facts.steppable:
        torch.testing.assert_close(snn(images, engine="stepwise"), outputs, rtol=0, atol=1e-12)
    assert bool((outputs[-1] != outputs[-1, :1]).any()), "nothing came through"


TIMELESS = {"maximum", "percentile", "rnl", "opi", "qcfs", "slip-relu", "ltb", "ftbc-qcfs", "ftbc-qcfs-released",
            "ftbc-ltb", "snm", "burst"}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("method", sorted(TIMELESS))
def test_a_timeless_method_begins_as_it_would_for_fewer_steps(method: str, name: str) -> None:
    recipe, images = _quick(ftbc.recipe(method)), _images()
    network = _network(name, recipe)
    long, short = (ftbc.convert(network, images, steps, recipe)(images) for steps in (7, 3))
    torch.testing.assert_close(long[:3], short, rtol=0, atol=1e-12)


def test_which_methods_are_timeless() -> None:
    assert {name for name, recipe in ftbc.recipes().items() if recipe.facts.timeless} == TIMELESS


@pytest.mark.parametrize("method", [name for name, recipe in ftbc.recipes().items() if recipe.facts.spikes == "binary"])
def test_binary_methods_send_spikes_of_one_size(method: str) -> None:
    recipe, images = _quick(ftbc.recipe(method)), _images()
    snn = ftbc.convert(_network("residual", recipe), images, 4, recipe)

    def look(node, inputs, spikes, start) -> None:
        if isinstance(node.module, Spiking):
            size = node.module.spread(node.module.largest).expand_as(spikes)
            assert bool(((spikes == 0) | (spikes == size)).all())

    snn(images, observe=look)


def test_what_methods_need() -> None:
    facts = {name: recipe.facts for name, recipe in ftbc.recipes().items()}
    assert facts["ftbc"] == Facts("binary", 0, gradients=False, trained=False)
    assert facts["ftbc-qcfs"] == Facts("binary", 0, gradients=False, trained=True, timeless=True)
    assert facts["snnc-ap"] == Facts("binary", 0, gradients=True, trained=False)
    assert {name for name, fact in facts.items() if fact.gradients} >= {"snnc-ap", "snnc-ap-ftbc"}
    ours = {"maximum", "percentile", "mean-square", "rmp", "snnc-lp", "snnc-potential", "ltb", "ftbc", "ftbc-layer",
            "ftbc-neuron", "ftbc-cifar", "ftbc-imagenet", "ftbc-ltb", "snnc-lp-ftbc", "best",
            "best-sharpened", "best-anytime"}  # fmt: skip
    assert all(dataclasses.replace(facts[name], timeless=False) == facts["ftbc"] for name in ours)
    assert facts["srp"] == Facts("binary", 4, gradients=False, trained=True)
    assert facts["cos"] == Facts("binary", 4, gradients=False, trained=True, steppable=False)
    for name in ("parallel-relu", "parallel-refit"):
        assert facts[name] == Facts("binary", 0, gradients=False, trained=False, steppable=False)
    assert {name: facts[name].spikes for name in ("tsc", "snm", "burst", "differential")} == {
        "tsc": "ternary", "snm": "ternary", "burst": "multi-level", "differential": "multi-level",
    }  # fmt: skip


def test_facts_come_from_pieces() -> None:
    @dataclasses.dataclass(frozen=True)
    class Signed:
        spikes = "ternary"
        extra = 3

    class Levels:
        spikes = "multi-level"
        extra = 1

    assert Facts.of([]) == Facts("binary", 0, False, False, timeless=True)
    assert Facts.of([FTBC(), Signed()]) == Facts("ternary", 3, False, False)
    assert Facts.of([Levels(), Signed(), WeightCorrection(), Trained()]) == Facts("multi-level", 4, True, True)
    assert ftbc.Recipe(threshold=Trained()).facts.trained and not ftbc.Recipe().facts.trained
    assert ftbc.Recipe(neuron=Residual(7)).facts.extra_steps == 7 and not ftbc.Recipe(neuron=Parallel()).facts.steppable
    assert {recipe.facts.spikes for recipe in ftbc.recipes().values()} <= set(SPIKES)


@pytest.mark.parametrize("method", ftbc.recipes())
def test_as_plain_data_and_back(method: str, tmp_path: Path) -> None:
    recipe = ftbc.recipe(method)
    assert ftbc.Recipe.from_dict(recipe.to_dict()) == recipe
    (tmp_path / "recipe.toml").write_text(recipe.to_toml(), encoding="utf-8")
    assert ftbc.read_recipe(tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize("method", [name for name, recipe in ftbc.recipes().items() if recipe.facts.trained])
def test_methods_for_trained_activations_refuse_a_plain_relu(method: str, refused: Refused) -> None:
    words = ("plain ReLU", "ftbc.activation", "mean-square")
    refused(RecipeError, words, ftbc.convert, NETWORKS["plain"](), _images(4), 2, _quick(ftbc.recipe(method)))


@pytest.mark.parametrize("method", ["mean-square", "ftbc", "snnc-lp", "ltb", "rmp", "best"])
def test_methods_for_any_relu_take_trained_activations_too(method: str) -> None:
    snn = ftbc.convert(NETWORKS["residual"](QCFS(4, 0.8)), _images(), 2, _quick(ftbc.recipe(method)))
    assert len(snn.layers()) == 4


@pytest.mark.parametrize("method", [name for name, recipe in ftbc.recipes().items() if not recipe.facts.trained])
def test_many_steps_come_near_the_ann(method: str) -> None:
    """Whatever a method corrects for few steps, it must not stand in the way of many."""
    recipe = _quick(ftbc.recipe(method))
    network, images = NETWORKS["plain"](), _images(32)
    if "ltb" in method:
        pytest.skip("clips what is seldom exceeded, however many steps there are")
    with torch.no_grad():
        wanted = network(images)
    gaps = [
        float((ftbc.convert(network, images, t, recipe)(images)[-1] - wanted).norm() / wanted.norm()) for t in (2, 128)
    ]
    assert gaps[1] < 0.6 * gaps[0] and gaps[1] < 0.15


@pytest.mark.parametrize("method", [name for name, recipe in ftbc.recipes().items() if not recipe.facts.trained])
def test_what_a_bound_cuts_off_is_cut_off(method: str) -> None:
    """Where a tenth of the activations lie above their bound, every method comes near the bounded network."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(10, 24), nn.ReLU6(), nn.Linear(24, 3)).double().eval()
    network[0].weight.data *= 40
    images = torch.rand(48, 10, dtype=torch.float64)
    with torch.no_grad():
        wanted = network(images)
        free = network[2](network[0](images).relu())
        assert float((network[0](images) > 6).double().mean()) > 0.1
    found = ftbc.convert(network, images, 128, _quick(ftbc.recipe(method)))(images)[-1]
    assert float((found - wanted).norm()) < 0.2 * float((free - wanted).norm())


def test_every_method_has_a_card_and_every_card_a_method() -> None:
    cards = re.findall(r"^### `([^`]+)`", CARDS.read_text(encoding="utf-8"), re.M)
    assert len(cards) == len(set(cards))
    assert sorted(cards) == sorted(ftbc.recipes())


def test_cards_have_all_their_parts() -> None:
    cards = re.split(r"^### ", CARDS.read_text(encoding="utf-8"), flags=re.M)[1:]
    for card in cards:
        for part in ("Cost:", "Use it", "Reference:"):
            assert part in card, f"{part} is missing in {card[:40]}"
