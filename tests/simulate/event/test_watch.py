"""Spikes weighed on events: as many as `layerwise` sends, of every value that no weights have touched."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import ftbc
from ftbc.errors import InputError
from ftbc.graph.ir import Node
from ftbc.neuron import Kind, Parallel, Signed, Spiking
from ftbc.simulate.event import engine as engines
from ftbc.simulate.scales import Scales
from tests.conftest import Refused

from .networks import GROUPS, STRUCTURES, WIDTHS, Case, conv, sandwich
from .support import PLAIN, engine_of, images, rounded, spiking

ON_EVENTS = {name: case for name, case in STRUCTURES.items() if name != "volume"}
CASES = {**ON_EVENTS, **GROUPS, **WIDTHS}


@torch.no_grad()
def scales_for(snn: ftbc.SpikingNetwork, steps: int) -> Scales:
    """Two whole numbers for each place of every value that can be weighed and that the network itself has, too."""
    generator = torch.Generator().manual_seed(0)
    names = sorted(snn.weighed_on_events() & {node.name for node in snn.graph})
    shapes = {name: (2, *snn.graph.shape(name)) for name in names}
    return Scales({name: torch.randint(1, 9, shape, generator=generator) for name, shape in shapes.items()}, steps)


def by_values(snn: ftbc.SpikingNetwork, x: Tensor, scales: Scales, time_first: bool = False) -> None:
    """The slow way: values that are not zero, one place after another."""

    def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if node.name in scales.weights:
            weighed = (output != 0).unsqueeze(2) * scales.weights[node.name]
            scales.add(node.name, weighed.sum(1).flatten(2).sum(2), start)

    snn(x, time_first=time_first, observe=observe)


def assert_weighed(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> Scales:
    steps = len(x) if time_first else snn.steps
    found, wanted = scales_for(snn, steps), scales_for(snn, steps)
    outputs = snn(x, time_first=time_first, engine="event", scales=found)
    assert torch.equal(outputs, snn(x, time_first=time_first, engine="event")), "weighing changes nothing"
    by_values(snn, x, wanted, time_first)
    assert found.sums.keys() >= {node.name for node in snn.graph.of_type(Spiking)}
    for name, sums in wanted.sums.items():
        assert torch.equal(found.sums[name], sums), name
    return found


@pytest.mark.parametrize("kind", [PLAIN, Signed(lower=0.0)], ids=["plain", "signed"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_as_many_as_are_sent(case: Case, kind: Kind) -> None:
    x = images(case.shape)
    found = assert_weighed(spiking(case.make(), x, pool=case.pool, kind=kind), x)
    assert any(bool(sums.any()) for sums in found.sums.values())


@pytest.mark.parametrize("case", ON_EVENTS.values(), ids=list(ON_EVENTS))
def test_when_rounded_and_over_time(case: Case) -> None:
    x = images((5, *case.shape), 3).transpose(0, 1).contiguous()
    snn = spiking(case.make(), x[0], pool=case.pool)
    assert_weighed(snn, x, time_first=True)
    assert_weighed(*rounded(snn, x[0]))


@pytest.mark.parametrize("name", ["identity shortcut", "max-pool", "join"])
def test_portions_and_threads_are_added_up(name: str, two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    case = STRUCTURES[name]
    snn, x = rounded(spiking(case.make(), images(case.shape)), images(case.shape, 7))
    with torch.no_grad():
        monkeypatch.setattr(engines, "BUDGET", 3 * engines.BUDGET // engine_of(snn)._portion(5))
    monkeypatch.setattr(engines, "WORTH_A_THREAD", 1)
    assert_weighed(snn, x)


def test_one_value_of_many_can_be_weighed() -> None:
    case = STRUCTURES["option A"]
    x = images(case.shape)
    snn = spiking(case.make(), x)
    every = scales_for(snn, 5)
    snn(x, engine="event", scales=every)
    for name, weights in every.weights.items():
        alone = Scales({name: weights}, 5)
        snn(x, engine="event", scales=alone)
        assert torch.equal(alone.sums[name], every.sums[name])


def test_only_the_event_engine_weighs(refused: Refused) -> None:
    x = images((2, 7, 6))
    snn = spiking(sandwich(conv(5, 6)).make(), x)
    for engine in ("layerwise", "stepwise"):
        refused(InputError, ("event",), snn, x, engine=engine, scales=Scales({}, 5))
    snn = spiking(sandwich(conv(5, 6)).make(), x, kind=Parallel())
    refused(InputError, ("event",), snn, x, engine="event", scales=Scales({}, 5))
    assert not snn.weighed_on_events()
