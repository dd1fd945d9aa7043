"""Spikes counted on events: as many as `layerwise` sends, of every value that no weights have touched."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import ftbc
from ftbc.errors import InputError
from ftbc.graph.ir import Node
from ftbc.neuron import Kind, Parallel, Signed, Spiking
from ftbc.simulate.event import engine as engines
from ftbc.simulate.schedule import carried
from tests.conftest import Refused

from .networks import GROUPS, STRUCTURES, WIDTHS, Case, conv, sandwich
from .support import PLAIN, engine_of, images, rounded, spiking

CASES = {**STRUCTURES, **GROUPS, **WIDTHS}
Counts = dict[str, Tensor]


def on_events(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> tuple[Tensor, Counts]:
    found: Counts = {}

    def count(name: str, spikes: Tensor) -> None:
        found[name] = found.get(name, 0) + spikes

    return snn(x, time_first=time_first, engine="event", count=count), found


def by_values(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> Counts:
    """The slow way: values that are not zero, one step after another."""
    found: dict[str, list[Tensor]] = {}

    def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if node.name in carried(snn.graph):
            found.setdefault(node.name, []).append((output != 0).sum(1))

    snn(x, time_first=time_first, observe=observe)
    return {name: torch.cat(parts) for name, parts in found.items()}


def assert_counted(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> Counts:
    outputs, found = on_events(snn, x, time_first)
    assert torch.equal(outputs, snn(x, time_first=time_first, engine="event")), "counting changes nothing"
    with torch.no_grad():
        assert time_first or found.keys() == snn.counted_on_events()
    wanted = by_values(snn, x, time_first)
    assert found.keys() >= {node.name for node in snn.graph.of_type(Spiking)}
    for name in wanted.keys() & found.keys():  # a factor may be folded into weights, and its value is then no more
        assert torch.equal(found[name], wanted[name]), name
    return found


@pytest.mark.parametrize("kind", [PLAIN, Signed(lower=0.0)], ids=["plain", "signed"])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_as_many_as_are_sent(case: Case, kind: Kind) -> None:
    x = images(case.shape)
    found = assert_counted(spiking(case.make(), x, pool=case.pool, kind=kind), x)
    assert any(bool(spikes.any()) for spikes in found.values())


@pytest.mark.parametrize("case", STRUCTURES.values(), ids=list(STRUCTURES))
def test_when_rounded_and_over_time(case: Case) -> None:
    x = images((5, *case.shape), 3).transpose(0, 1).contiguous()
    snn = spiking(case.make(), x[0], pool=case.pool)
    assert_counted(snn, x, time_first=True)
    assert_counted(*rounded(snn, x[0]))


@pytest.mark.parametrize("name", ["identity shortcut", "max-pool", "join"])
def test_portions_are_told_one_by_one(name: str, two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    case = STRUCTURES[name]
    snn, x = rounded(spiking(case.make(), images(case.shape)), images(case.shape, 7))
    whole = on_events(snn, x)[1]
    with torch.no_grad():
        monkeypatch.setattr(engines, "BUDGET", 3 * engines.BUDGET // engine_of(snn)._portion(5))
    outputs, found = on_events(snn, x)
    assert found.keys() == whole.keys()
    assert all(torch.equal(found[name], whole[name]) for name in whole)
    assert torch.equal(outputs, snn(x))


def test_only_the_event_engine_counts(refused: Refused) -> None:
    x = images((2, 7, 6))
    snn = spiking(sandwich(conv(5, 6)).make(), x)
    for engine in ("layerwise", "stepwise"):
        refused(InputError, ("event",), snn, x, engine=engine, count=lambda *_: None)
    snn = spiking(sandwich(conv(5, 6)).make(), x, kind=Parallel())
    refused(InputError, ("event",), snn, x, engine="event", count=lambda *_: None)
    assert not snn.counted_on_events()
