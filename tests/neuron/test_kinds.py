"""Every kind of neuron against its rule written out for one neuron, its limits, and bad settings."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from ftbc.errors import InputError, RecipeError
from ftbc.graph.spec import clone
from ftbc.neuron import (
    Burst,
    Differential,
    IntegrateFire,
    Kind,
    Offset,
    OffsetFire,
    Parallel,
    Plain,
    Residual,
    Signed,
    SignedFire,
    Spiking,
    Switch,
)
from tests.conftest import Refused
from tests.neuron import naive

STEPS, BATCH, SHAPE = 7, 3, (4, 3, 2)

KINDS: dict[str, tuple[Kind, naive.Rule]] = {
    "plain": (Plain(), naive.plain),
    "signed": (Signed(), naive.signed(1.0, False)),
    "signed at zero": (Signed(lower=0.0), naive.signed(0.0, False)),
    "signed and clamped": (Signed(lower=0.5, clamp=True), naive.signed(0.5, True)),
    "burst": (Burst(3), naive.burst(3)),
    "differential": (Differential(3), naive.differential(3)),
    "differential of one level": (Differential(1), naive.differential(1)),
    "parallel": (Parallel(), naive.parallel),
    "residual": (Residual(2), naive.residual(2, 1e-3)),
    "residual, longer": (Residual(4, margin=0.2), naive.residual(4, 0.2)),
    "offset": (Offset(3), naive.offset(3, 1)),
    "offset, longer": (Offset(5, rounds=3), naive.offset(5, 3)),
    "switch": (Switch(), naive.plain),
}
STEPPED = [name for name, (kind, _) in KINDS.items() if kind.steppable]


def neurons(kind: Kind, grain: str = "channel", counted: int = STEPS) -> Spiking:
    """A layer for ``counted`` steps that count, with constants that all differ."""
    size = {"layer": (1,), "channel": SHAPE[:1], "neuron": SHAPE}[grain]
    theta = torch.rand(size, dtype=torch.float64) + 0.3
    bias = 0.3 * torch.randn((kind.rows(counted), *size), dtype=torch.float64)
    made = kind(kind.rows(counted), len(SHAPE)).set(theta, theta * torch.rand(size, dtype=torch.float64), bias)
    return kind.settled(made, counted)


def currents(kind: Kind, size: float = 1.0) -> Tensor:
    return size * torch.randn(kind.extra_steps + STEPS, BATCH, *SHAPE, dtype=torch.float64) + 0.2


def written_out(layer: Spiking, constant: Tensor) -> Tensor:
    return layer.spread(constant).expand(SHAPE)


@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
@pytest.mark.parametrize("name", KINDS)
def test_a_layer_follows_the_rule_of_its_kind(name: str, grain: str) -> None:
    kind, rule = KINDS[name]
    layer, x = neurons(kind, grain), currents(kind)
    theta, v0 = written_out(layer, layer.threshold), written_out(layer, layer.initial)
    b = torch.stack([written_out(layer, row) for row in layer.bias])
    wanted = naive.each_neuron(rule, x, theta, v0, b)
    found = layer.run(x)
    assert 0.02 < float((wanted != 0).double().mean()) < 0.98
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    layer.reset()
    expanded = x[:1].expand_as(x)  # a constant current
    wanted = naive.each_neuron(rule, expanded, theta, v0, b)
    torch.testing.assert_close(layer.run(expanded), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", STEPPED)
def test_steps_and_parts_of_time_give_the_same(name: str) -> None:
    kind, _ = KINDS[name]
    layer, x = neurons(kind), currents(kind)
    wanted = layer.run(x)
    for cuts in ([1] * len(x), [2, len(x) - 2], [3, 1, len(x) - 4]):
        layer.reset()
        assert torch.equal(torch.cat([layer.run(part) for part in x.split(cuts)]), wanted)
    layer.reset()
    assert torch.equal(torch.stack([layer(current) for current in x]), wanted)


def test_offsets_need_the_extra_steps_together_and_then_no_more() -> None:
    layer, x = neurons(Offset(3)), currents(Offset(3))
    wanted = layer.run(x)
    layer.reset()
    assert torch.equal(torch.cat([layer.run(part) for part in x.split([3, 1, len(x) - 4])]), wanted)
    layer.reset()
    with pytest.raises(InputError, match="look at 3 steps"):
        layer.run(x[:2])


def test_parallel_neurons_need_all_steps_together() -> None:
    layer, x = neurons(Parallel()), currents(Parallel())
    few = layer.run(x[:3])
    assert len(few) == 3
    with pytest.raises(InputError, match="all steps at once"):
        layer.run(x[3:])


@pytest.mark.parametrize("name", KINDS)
def test_channels_last_changes_nothing(name: str) -> None:
    kind, _ = KINDS[name]
    layer, x = neurons(kind), currents(kind)
    wanted = layer.run(x)
    layer.reset()
    last = x.flatten(0, 1).contiguous(memory_format=torch.channels_last).unflatten(0, x.shape[:2])
    found = layer.run(last)
    assert torch.equal(found, wanted)
    assert found.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", STEPPED)
def test_some_images_go_on_alone(name: str) -> None:
    kind, _ = KINDS[name]
    layer, x, kept = neurons(kind), currents(kind), torch.tensor([2, 0])
    wanted = layer.run(x)[:, kept]
    layer.reset()
    layer.run(x[:4])
    layer.select(kept)
    assert torch.equal(layer.run(x[4:, kept]), wanted[4:])


@pytest.mark.parametrize("name", STEPPED)
def test_the_mean_output_is_that_of_the_next_step_and_changes_nothing(name: str) -> None:
    kind, _ = KINDS[name]
    if kind.extra_steps:
        return  # calibrated as plain neurons
    layer, x = neurons(kind), currents(kind)
    for t, current in enumerate(x):
        mean = layer.mean_output(current)
        assert layer.t == t
        torch.testing.assert_close(mean, layer(current).mean((0, 2, 3)), rtol=1e-12, atol=1e-14)
    layer.reset()
    wanted = layer.run(x)
    layer.reset()
    for current, output in zip(x, wanted, strict=True):
        layer.mean_output(current)
        assert torch.equal(layer(current), output)


@pytest.mark.parametrize("name", KINDS)
def test_copies_hold_constants_and_settings_but_no_state(name: str) -> None:
    kind, _ = KINDS[name]
    layer, x = neurons(kind), currents(kind)
    wanted = layer.run(x)
    fresh = clone(layer)
    assert isinstance(fresh, type(layer)) and fresh.t == 0
    assert torch.equal(fresh.run(x), wanted)
    with pytest.raises(InputError, match="reset"):
        layer.run(x[:1]) if kind.steppable else layer._require(1)


@pytest.mark.parametrize("name", KINDS)
def test_scaled_to_thresholds_of_one(name: str) -> None:
    kind, _ = KINDS[name]
    layer, x = neurons(kind), currents(kind)
    wanted = layer.run(x)
    layer.reset()
    before, after = layer.to_unit()
    assert layer.is_unit() and bool((layer.threshold == 1).all())
    torch.testing.assert_close(layer.run(x / before) * after, wanted, rtol=0, atol=1e-12)


# ---- limits --------------------------------------------------------------------------------------------------


def same_constants(kind: Kind, like: Spiking) -> Spiking:
    return kind(like.steps, like.rank).set(like.threshold, like.initial, like.bias)


def test_a_burst_of_one_is_the_plain_neuron() -> None:
    plain = neurons(Plain())
    x = currents(Plain(), 3.0)
    assert torch.equal(same_constants(Burst(1), plain).run(x), plain.run(x))
    for dtype in (torch.float32, torch.float64):  # at the edge of a threshold
        theta = torch.rand(50, dtype=dtype) + 0.1
        edge = torch.stack([theta, torch.nextafter(theta, theta * 0), torch.nextafter(theta, theta * 2)])
        zero = torch.zeros_like(theta)
        wanted = IntegrateFire(1, 1).set(theta, zero).run(edge.unsqueeze(0))
        assert torch.equal(Burst(1)(1, 1).set(theta, zero).run(edge.unsqueeze(0)), wanted)


def test_without_extra_steps_residual_and_offset_are_plain() -> None:
    for kind in (Residual(0), Offset(0)):
        assert type(neurons(kind)) is IntegrateFire and kind.extra_steps == 0


def test_without_negative_currents_signed_neurons_are_plain() -> None:
    plain = neurons(Plain())
    plain.bias.zero_()
    x = currents(Plain()).abs()
    assert torch.equal(same_constants(Signed(), plain).run(x), plain.run(x))


@settings(max_examples=60, deadline=None)
@given(
    x=some.lists(some.floats(-4.0, 4.0), min_size=1, max_size=30),
    start=some.floats(0.0, 0.99),
    lower=some.floats(0.0, 2.0),
    clamp=some.booleans(),
)
def test_signed_neurons_never_take_back_more_than_they_sent(
    x: list[float], start: float, lower: float, clamp: bool
) -> None:
    layer = SignedFire(len(x), 1, lower, clamp).set(torch.ones(1), torch.full((1,), start))
    sums = layer.run(torch.tensor(x).view(-1, 1, 1)).cumsum(0)
    assert bool((sums >= 0).all())


@settings(max_examples=60, deadline=None)
@given(
    x=some.lists(some.floats(-4.0, 4.0), min_size=1, max_size=30), levels=some.integers(1, 6), theta=some.floats(0.2, 3)
)
def test_the_sum_of_differential_outputs_is_never_negative(x: list[float], levels: int, theta: float) -> None:
    layer = Differential(levels)(len(x), 1).set(torch.tensor([theta]).double(), torch.zeros(1).double())
    sums = layer.run(torch.tensor(x, dtype=torch.float64).view(-1, 1, 1)).cumsum(0)
    assert bool((sums >= -1e-4 * theta).all())


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("signed and clamped", "residual, longer")])
def test_a_constant_current_is_kept_in_the_mean(name: str) -> None:
    """For many steps the mean output is clamp(z, 0, theta)."""
    kind, steps = KINDS[name][0], 400
    z = torch.linspace(-0.5, 0.99, 40, dtype=torch.float64).unsqueeze(0)
    made = kind(kind.rows(steps), 1).set(torch.ones(40).double(), torch.full((40,), 0.5).double())
    layer = kind.settled(made, steps)
    sent = layer.run(z.expand(kind.extra_steps + steps, 1, 40))[kind.extra_steps :].mean(0)
    torch.testing.assert_close(sent, z.clamp(0, 1), rtol=0, atol=0.006)


def test_parallel_neurons_are_the_staircase_of_the_mean_current() -> None:
    steps = 4
    theta = torch.full((30,), 0.8, dtype=torch.float64)
    layer = Parallel()(steps, 1).set(theta, theta / 2)
    x = torch.randn(steps, 6, 30, dtype=torch.float64)
    wanted = [[naive.staircase(float(z), 0.8, steps) for z in row] for row in x.mean(0)]
    spikes = layer.run(x)
    torch.testing.assert_close(spikes.mean(0), torch.tensor(wanted, dtype=torch.float64), rtol=0, atol=1e-12)
    assert bool((spikes[1:] <= spikes[:-1]).all()), "spikes come first"


def test_offsets_correct_the_counts_that_uneven_currents_spoil() -> None:
    """Where a neuron is off by one spike after E steps, COS makes it right, and never spoils one that was right."""
    extra = 4
    kind = Offset(extra)
    x = torch.randn(extra, 2000, 1, dtype=torch.float64)
    theta, half = torch.ones(1).double(), torch.full((1,), 0.5).double()
    wanted = torch.floor(x.sum(0) + 0.5).clamp(0, extra)
    plain = IntegrateFire(extra, 1).set(theta, half).run(x).sum(0)
    layer = kind.settled(kind(extra, 1).set(theta, half), extra)
    corrected = layer.run(torch.cat([x, x]))
    assert torch.equal(corrected[:extra], corrected[extra:])
    off_before, off_after = (plain - wanted).abs(), (corrected[extra:].sum(0) - wanted).abs()
    assert bool((off_before == 1).any()) and not bool((off_after[off_before == 0] > 0).any())
    assert float((off_after > 0).double().mean()) < 0.3 * float((off_before > 0).double().mean())
    more = Offset(extra, rounds=4)
    rounds = more.settled(more(extra, 1).set(theta, half), extra).run(torch.cat([x, x]))[extra:].sum(0)
    assert float((rounds - wanted).abs().sum()) < float(off_after.sum())


def test_residual_neurons_are_silent_exactly_where_they_owe() -> None:
    kind = Residual(3)
    layer = kind.settled(kind(5, 1).set(torch.ones(1), torch.full((1,), 0.5)), 5)
    x = torch.tensor([[1.0, -1.0, -1.0], [0.6, 0.6, -1.0], [0.4, 0.4, 0.4]]).T.reshape(3, 3, 1)
    x = torch.cat([x, torch.ones(5, 3, 1)])
    assert layer.run(x)[3:].sum(0).flatten().tolist() == [0.0, 0.0, 5.0]


# ---- settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Signed, {"lower": -0.1}), (Signed, {"lower": float("nan")}), (Signed, {"clamp": 1}),
        (Burst, {"most": 0}), (Burst, {"most": 10**9}), (Burst, {"most": 2.5}),
        (Differential, {"levels": 0}), (Differential, {"levels": 17}),
        (Residual, {"extra": -1}), (Residual, {"margin": 1.0}), (Residual, {"margin": -0.1}),
        (Offset, {"extra": -1}), (Offset, {"rounds": 0}), (Offset, {"rounds": 5}), (Offset, {"extra": True}),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(kind: type[Kind], wrong: dict, refused: Refused) -> None:
    refused(RecipeError, (kind.__name__, next(iter(wrong))), kind, **wrong)
    with pytest.raises(TypeError):
        kind(nothing=1)  # type: ignore[call-arg]


def test_facts_of_the_kinds() -> None:
    assert [kind.spikes for kind in (Plain(), Signed(), Burst(), Differential(), Parallel(), Switch())] == [
        "binary", "ternary", "multi-level", "multi-level", "binary", "ternary",
    ]  # fmt: skip
    assert {name for name, (kind, _) in KINDS.items() if not kind.steppable} == {"parallel", "offset", "offset, longer"}
    assert Residual(6).extra_steps == 6 and Offset(5).extra_steps == 5 and Residual(6).rows(4) == 6
    assert OffsetFire(9, 1, 5, 1).together == 5
