"""Neurons of other kinds, and constants for each neuron, on events: the values that `layerwise` gives, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.graph.ir import Node
from ftbc.neuron import Burst, Differential, Kind, Residual, Signed, Spiking
from ftbc.simulate.event.coding import PLAIN, SIGNED, Coding, bursts, changes
from ftbc.simulate.event.engine import EventEngine
from ftbc.simulate.event.packed import Packed

from .networks import GROUPS, STRUCTURES, WIDTHS, Case, conv, sandwich
from .support import assert_equal_runs, engine_of, images, rounded, spiking

KINDS: dict[str, Kind] = {
    "signed": Signed(), "signed, lower 0": Signed(lower=0.0), "signed, clamped": Signed(lower=0.5, clamp=True),
    "burst of 1": Burst(1), "burst of 5": Burst(5), "differential, 1 level": Differential(1),
    "differential": Differential(4), "residual": Residual(3), "residual, 1 extra": Residual(1),
}  # fmt: skip
CASES = {**STRUCTURES, **GROUPS, **WIDTHS}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def assert_same_values(snn: ftbc.SpikingNetwork, x: Tensor, time_first: bool = False) -> dict[str, Tensor]:
    """Every neuron sends what it sends under `layerwise`, and the outputs are the same; the values sent."""
    wanted: dict[str, Tensor] = {}

    def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if isinstance(node.module, Spiking):
            unit = node.module.spread(node.module.threshold)
            wanted[node.name] = torch.cat([wanted[node.name], output / unit]) if start else output / unit

    output = snn(x, time_first=time_first, observe=observe)
    engine, found = engine_of(snn, time_first), {}

    def fire(name: str, packed: dict[str, Packed], *rest: object) -> Packed:
        spikes = EventEngine._fire(engine, name, packed, *rest)  # type: ignore[arg-type]
        found[name] = spikes.unpack(torch.float64).unflatten(0, (spikes.words.shape[1], -1))
        return spikes

    engine._fire = fire  # type: ignore[method-assign]
    try:
        events = snn(x, time_first=time_first, engine="event")
    finally:
        del engine._fire
    for name, values in found.items():
        assert torch.allclose(values, wanted[name], rtol=1e-9, atol=1e-9), name
    assert torch.allclose(events, output, rtol=1e-9, atol=1e-9)
    return wanted


@kinds
@every_case
def test_the_same_values(case: Case, kind: Kind) -> None:
    x = images(case.shape)
    assert_same_values(spiking(case.make(), x, pool=case.pool, kind=kind), x)


@kinds
def test_input_over_time(kind: Kind) -> None:
    case = STRUCTURES["average of 2"]
    x = images((6, *case.shape), 3).transpose(0, 1).contiguous()
    snn = spiking(case.make(), x[0], steps=6, kind=kind)
    assert_same_values(snn, x, time_first=True)
    assert_same_values(snn, x[:2], time_first=True)


def test_what_is_special_of_each_kind_happens() -> None:
    """Else the tests above would show nothing: spikes taken back, bursts, changes that are half as large."""
    x = 3 * images((2, 7, 6), 6)
    model = sandwich(conv(5, 6)).make()
    sent = {
        name: torch.cat([values.flatten() for values in assert_same_values(spiking(model, x, kind=kind), x).values()])
        for name, kind in KINDS.items()
    }
    assert bool((sent["signed, lower 0"] < 0).any()) and bool((sent["signed, lower 0"] > 0).any())
    assert float(sent["burst of 5"].max()) > 1
    residual = assert_same_values(spiking(model, x, kind=KINDS["residual"]), x)
    silent = torch.cat([values[3:].sum(0).flatten() for values in residual.values()]) == 0
    before = torch.cat([values[:3].sum(0).flatten() for values in residual.values()])
    assert bool((silent & (before > 0)).any()) and not bool(silent.all())
    assert bool(((sent["differential"] > 0) & (sent["differential"] < 0.9)).any())


@kinds
def test_two_threads_give_what_one_gives(kind: Kind, two_threads: None) -> None:
    x = images((2, 16, 16), 20)
    snn = spiking(sandwich(conv(5, 40), conv(40, 6)).make(), x, kind=kind)
    wanted = snn(x)
    assert torch.allclose(snn(x, engine="event"), wanted, rtol=1e-9, atol=1e-9)


@kinds
def test_a_run_leaves_no_trace(kind: Kind) -> None:
    x = images((2, 7, 6))
    snn = spiking(sandwich(conv(5, 6)).make(), x, kind=kind)
    assert torch.equal(snn(x, engine="event"), snn(x, engine="event"))


@every_case
def test_constants_for_each_neuron(case: Case) -> None:
    x = images(case.shape)
    snn = spiking(case.make(), x, pool=case.pool, constants="neuron")
    assert_equal_runs(snn, x, gap=1e-12)
    assert_equal_runs(*rounded(snn, x))


@kinds
def test_constants_for_each_neuron_of_other_kinds(kind: Kind) -> None:
    case = STRUCTURES["average of 2"]
    x = images(case.shape)
    snn = spiking(case.make(), x, kind=kind, constants="neuron")
    assert_same_values(snn, x)


def test_they_run_on_events() -> None:
    x = images((2, 7, 6))
    model = sandwich(conv(5, 6)).make()
    for kind in KINDS.values():
        assert [layer.events for layer in spiking(model, x, kind=kind).layers()] == [
            "dense",
            "float64",
        ]  # the image first
    assert [layer.events for layer in spiking(model, x, constants="neuron").layers()] == ["dense", "float64"]


def test_changes_are_not_added_to_values() -> None:
    """A network of two kinds, which no recipe makes: what receives both runs densely."""
    x = images((2, 7, 6))
    snn = spiking(nn.Sequential(conv(2, 5), nn.ReLU(), conv(5, 6), nn.ReLU(), conv(6, 3)), x, kind=Differential(2))
    first, second = snn.graph.of_type(Spiking)
    plain = spiking(nn.Sequential(conv(2, 5), nn.ReLU(), conv(5, 6), nn.ReLU(), conv(6, 3)), x)
    snn.graph.replace_module(second.name, plain.graph[second.name].module)
    assert [layer.events for layer in snn.layers()] == ["dense", "dense"]
    assert torch.allclose(snn(x, engine="event"), snn(x), rtol=1e-9, atol=1e-9)
    assert first.name != second.name


def test_a_network_that_gains_nothing_is_handed_to_layerwise(monkeypatch: pytest.MonkeyPatch) -> None:
    x = images((2, 7, 6))
    model = sandwich(conv(5, 6)).make()
    often = {layer.name: (0.3, 0.0) for layer in spiking(model, x).layers()}
    snn = spiking(model, x, kind=Differential(3), measured=often)
    monkeypatch.setattr(EventEngine, "run", lambda *_: pytest.fail("it ran on events"))
    assert torch.equal(snn(x, engine="event"), snn(x)) and not snn.weighed_on_events()


def test_networks_that_change_often_run_densely() -> None:
    x = images((2, 7, 6))
    model = sandwich(conv(5, 6)).make()
    names = [layer.name for layer in spiking(model, x).layers()]
    for rate, changes_run, signed_run in ((0.05, "float64", "float64"), (0.3, "dense", "float64")):
        measured = dict.fromkeys(names, (rate, 0.0))
        snn = spiking(model, x, kind=Differential(3), measured=measured)
        assert snn.layers()[1].events == changes_run
        assert_same_values(snn, x)
        assert spiking(model, x, kind=Signed(), measured=measured).layers()[1].events == signed_run


@pytest.mark.parametrize("coding", [PLAIN, SIGNED, bursts(5), changes(3)], ids=["plain", "signed", "bursts", "changes"])
def test_totals_are_sums_of_values(coding: Coding) -> None:
    generator = torch.Generator().manual_seed(0)
    packed = Packed.empty(2, 3, (70, 4, 5), coding)
    bits = torch.randint(0, 2, (coding.planes, 2, 3, 4, 5, 70), generator=generator)
    packed.words[:] = 0
    for plane in range(coding.planes):
        for c in range(70):
            shifted = bits[plane, ..., c].numpy().astype("uint64") << (c % 64)
            packed.words[..., 2 * plane + c // 64] |= shifted.astype("uint64")
    values = packed.unpack(torch.float64)
    sent = torch.tensordot(
        torch.tensor(coding.worths, dtype=torch.float64), bits.double(), 1
    )  # [N, T, rows, columns, C]
    if not coding.changes:
        assert torch.equal(values.unflatten(0, (3, 2)), sent.permute(1, 0, 4, 2, 3))
    assert torch.allclose(packed.totals(torch.float64), values.sum((2, 3)), rtol=1e-12)


def test_values_behind_changes() -> None:
    """y[t] is the mean of all y before, plus what was sent: written out step by step."""
    sent = torch.tensor([1.0, 0.0, -0.5, 0.25]).view(4, 1)
    y: list[float] = []
    for d in sent.flatten().tolist():
        y.append((sum(y) / len(y) if y else 0.0) + d)
    assert torch.allclose(changes(3).over_time(sent).flatten(), torch.tensor(y))
