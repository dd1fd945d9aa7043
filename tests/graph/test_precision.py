"""Synapses in bfloat16: they alone, and back to float32 at once."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import InputError
from ftbc.graph.canonical import canonical
from ftbc.graph.ir import Node
from ftbc.graph.precision import in_bfloat16, synapses_in_bfloat16
from ftbc.graph.trace import trace
from ftbc.neuron.temporal import Temporal
from ftbc.protocol.fingerprint import of_network
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, depthwise, plain, residual

NETWORKS = pytest.mark.parametrize("make", [plain, residual, depthwise])


def _images(count: int = 16) -> torch.Tensor:
    return torch.rand(count, *INPUT_SHAPE, generator=torch.Generator().manual_seed(0))


@NETWORKS
def test_each_synapse_is_that_of_autocast_and_all_else_is_exact(make: Callable[[], nn.Module]) -> None:
    snn, x = ftbc.convert(make().float(), _images(), steps=4), _images()
    seen: dict[str, tuple[torch.Tensor, ...]] = {}

    def observe(node: Node, inputs: list[torch.Tensor], output: torch.Tensor, start: int) -> None:
        seen[node.name] = (*[value.clone() for value in inputs], output.clone())

    with synapses_in_bfloat16():
        snn(x, observe=observe)
    synapses = 0
    for node in snn.graph:
        *given, found = seen[node.name]
        assert found.dtype == torch.float32
        if isinstance(node.module, nn.Conv2d | nn.Linear):
            half, x = copy.deepcopy(node.module).bfloat16().double(), given[0].flatten(0, 1).bfloat16().double()
            wanted = half(x).bfloat16().float().view_as(found)
            torch.testing.assert_close(found, wanted, rtol=2**-7, atol=1e-6)  # the last digit of bfloat16
            synapses += int(not torch.equal(found, node.module(given[0].flatten(0, 1)).view_as(found)))
        elif isinstance(node.module, Temporal):
            node.module.reset()
            assert torch.equal(found, copy.deepcopy(node.module).run(given[0]))
    assert synapses > 0  # else nothing was computed in bfloat16 at all


@NETWORKS
def test_engines_agree(make: Callable[[], nn.Module]) -> None:
    snn, x = ftbc.convert(make().float(), _images(), steps=4), _images()
    with synapses_in_bfloat16():
        torch.testing.assert_close(snn(x), snn(x, engine="stepwise"), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("recipe", ["ftbc", "best", "snnc-lp"])
def test_calibration_learns_in_float32(recipe: str) -> None:
    model = residual().float()
    with ftbc.team("cpu+bf16") as team:
        assert in_bfloat16()
        snn = ftbc.convert(model, _images(64), steps=4, recipe=recipe, team=team)
    assert not in_bfloat16()
    assert {value.dtype for value in snn.state_dict().values() if value.is_floating_point()} == {torch.float32}
    exact = ftbc.convert(model, _images(64), steps=4, recipe=recipe)
    assert (snn(_images()) - exact(_images())).pow(2).mean() < 0.2 * exact(_images()).pow(2).mean()


def test_kept_figures_know_the_precision() -> None:
    cleaned = canonical(trace(plain().float(), _images())).require()
    with synapses_in_bfloat16():
        half = of_network(cleaned)
    assert half != of_network(cleaned)


def test_refusals(refused: Refused) -> None:
    snn = ftbc.convert(plain().float(), _images(), steps=2)
    with synapses_in_bfloat16():
        refused(InputError, ("bf16", "'layerwise'"), snn, _images(), engine="event")
    refused(InputError, ("no precision 'fp8'", "cpu+bf16"), ftbc.team("cpu+fp8").__enter__)
