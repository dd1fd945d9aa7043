"""Modules with other libraries' neurons send the same spikes; needs these libraries (see `make test-interop`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.errors import InputError, RecipeError, UnsupportedError
from ftbc.export.agreement import agreement, recorded

from ..conftest import Refused
from .networks import RECIPE, STEPS, converted

TRANSLATED = ["plain", "residual", "joined", "mobile", "before", "hidden", "waves"]


def steps_of(net: nn.Module, snn: ftbc.SpikingNetwork, x: Tensor):
    """Outputs and spikes of a module that takes one step at each call."""
    seen: dict[str, Tensor] = {}
    for row in snn.layers():
        module = net.get_submodule(row.name)
        module.register_forward_hook(lambda m, i, out, name=row.name: seen.__setitem__(name, out))
    for _ in range(snn.steps):
        yield net(x), dict(seen)


@pytest.mark.parametrize("name", TRANSLATED)
def test_spikingjelly(name: str) -> None:
    pytest.importorskip("spikingjelly")
    from spikingjelly.activation_based import functional

    snn, images = converted(name)
    net = ftbc.export.to_spikingjelly(snn)
    for _ in range(2):  # a reset brings back the beginning
        functional.reset_net(net)
        found = agreement(recorded(snn.graph, images, STEPS), steps_of(net, snn, images))
        assert found.equal and found.largest < 1e-10 and found.spikes > 100


@pytest.mark.parametrize("name", TRANSLATED)
def test_spikingjelly_all_steps_at_once(name: str) -> None:
    pytest.importorskip("spikingjelly")
    from spikingjelly.activation_based import functional

    snn, images = converted(name)
    net = ftbc.export.to_spikingjelly(snn, step_mode="m")
    functional.reset_net(net)
    outputs = net(images.expand(STEPS, *images.shape))
    wanted = torch.stack([output for output, _ in recorded(snn.graph, images, STEPS)])
    assert torch.allclose(outputs, wanted, atol=1e-10)


@pytest.mark.parametrize("name", TRANSLATED)
def test_snntorch(name: str) -> None:
    pytest.importorskip("snntorch")
    snn, images = converted(name)
    net = ftbc.export.to_snntorch(snn)
    for _ in range(2):
        net.reset()
        found = agreement(recorded(snn.graph, images, STEPS), steps_of(net, snn, images))
        assert found.equal and found.largest < 1e-10 and found.spikes > 100


@pytest.mark.parametrize("library", ["spikingjelly", "snntorch"])
def test_what_they_cannot_say_is_refused(library: str, refused: Refused) -> None:
    pytest.importorskip(library)
    translate: Callable = getattr(ftbc.export, f"to_{library}")
    pooled, _ = converted("pooled", ftbc.recipe("ftbc", calibrate=RECIPE.calibrate))
    refused(UnsupportedError, ("SpikingMaxPool", "pool='average'"), translate, pooled)
    snn, images = converted("plain")
    weighing = ftbc.SpikingNetwork(snn.graph, STEPS - 1, snn.recipe, readout=torch.rand(STEPS - 1, STEPS).double())
    refused(UnsupportedError, "weighs its steps", translate, weighing)
    refused(InputError, "Linear", translate, nn.Linear(1, 1))
    net = translate(snn)
    for _ in range(STEPS):
        net(images)
    refused(InputError, f"step {STEPS + 1}", net, images)


def test_spikingjelly_step_modes(refused: Refused) -> None:
    pytest.importorskip("spikingjelly")
    snn, _ = converted("plain")
    refused(RecipeError, "step_mode='x'", ftbc.export.to_spikingjelly, snn, "x")
