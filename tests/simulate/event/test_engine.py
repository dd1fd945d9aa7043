"""Spike for spike what `layerwise` gives: in float64, and to the last bit for rounded networks in float32."""

from __future__ import annotations

import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ftbc
from ftbc.neuron import IntegrateFire
from ftbc.simulate.event import engine as engines
from ftbc.simulate.event.engine import EventEngine
from ftbc.simulate.event.packed import Packed
from ftbc.threshold.activations import Grain

from .networks import GROUPS, PADS, SIZES, STRUCTURES, WIDTHS, WINDOWS, Case, conv, sandwich
from .support import assert_equal_runs, engine_of, event_run, events, images, rounded, spiking

CASES = {**WINDOWS, **SIZES, **PADS, **GROUPS, **WIDTHS, **STRUCTURES}
structures = pytest.mark.parametrize("case", STRUCTURES.values(), ids=list(STRUCTURES))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_same_spikes(case: Case) -> None:
    x = images(case.shape)
    assert_equal_runs(spiking(case.make(), x, pool=case.pool), x, gap=1e-12)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_same_bits_when_rounded(case: Case) -> None:
    x = images(case.shape)
    snn, x = rounded(spiking(case.make(), x, pool=case.pool), x)
    assert_equal_runs(snn, x)


@structures
@pytest.mark.parametrize("grain", ["layer", "neuron"])
def test_other_thresholds(case: Case, grain: Grain) -> None:
    x = images(case.shape)
    snn = spiking(case.make(), x, pool=case.pool, grain=grain)
    if grain == "neuron":
        assert all(layer.events == "dense" for layer in snn.layers() if len(layer.shape) > 1)
    assert_equal_runs(snn, x, gap=1e-12)
    assert_equal_runs(*rounded(snn, x))


@structures
def test_input_over_time(case: Case) -> None:
    x = images((5, *case.shape), 3).transpose(0, 1).contiguous()
    snn = spiking(case.make(), x[0], pool=case.pool)
    assert_equal_runs(snn, x, time_first=True, gap=1e-12)
    assert_equal_runs(snn, x[:2], time_first=True, gap=1e-12)
    whole, x = rounded(snn, x[0])[0], x.float()
    assert_equal_runs(whole, x, time_first=True)


@pytest.mark.parametrize("steps", [1, 2, 5, 33])
@pytest.mark.parametrize("name", ["identity shortcut", "join", "max-pool", "depthwise"])
def test_any_number_of_steps(name: str, steps: int) -> None:
    case = CASES[name]
    x = images(case.shape)
    snn = spiking(case.make(), x, steps)
    assert_equal_runs(snn, x, gap=1e-12)
    assert_equal_runs(*rounded(snn, x))


# ---- images -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3, 20])
def test_any_number_of_images(count: int) -> None:
    case = STRUCTURES["identity shortcut"]
    snn = spiking(case.make(), images(case.shape))
    assert_equal_runs(snn, images(case.shape, count), gap=1e-12)
    assert_equal_runs(rounded(snn, images(case.shape))[0], images(case.shape, count, dtype=torch.float32))


@pytest.mark.parametrize("name", ["several readers", "max-pool", "shortcut from a layer of the image"])
@pytest.mark.parametrize("time_first", [False, True])
def test_images_in_portions(name: str, time_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = STRUCTURES[name]
    snn, _ = rounded(spiking(case.make(), images(case.shape)), images(case.shape))
    x = images((5, 7, *case.shape) if time_first else (7, *case.shape), 1, dtype=torch.float32)[0]
    wanted = snn(x, time_first=time_first, engine="event")
    portions = []
    run = EventEngine._run

    def counted(self: EventEngine, part: Tensor, *rest: object) -> Tensor:
        portions.append(part.shape[1 if time_first else 0])
        return run(self, part, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(EventEngine, "_run", counted)
    with torch.no_grad():
        monkeypatch.setattr(engines, "BUDGET", 3 * engines.BUDGET // engine_of(snn, time_first)._portion(5))
    assert torch.equal(snn(x, time_first=time_first, engine="event"), wanted)
    assert portions == [3, 3, 1]
    assert torch.equal(snn(x, time_first=time_first), wanted)


def test_a_portion_holds_the_spikes_of_all_steps() -> None:
    """2 words of 8 bytes for 100 channels, at 8 x 8 pixels and each step; what torch computes is smaller."""
    x = images((2, 8, 8))
    snn = spiking(sandwich(conv(5, 100), nn.ReLU(), nn.AvgPool2d(8), spikes=5, out=100).make(), x, steps=50)
    with torch.no_grad():
        assert engine_of(snn)._portion(50) == engines.BUDGET // (50 * 64 * 2 * 8)
        assert engine_of(snn)._portion(1) == engines.BUDGET // (64 * 5 * 8), "the first layer, which is computed once"


def test_spikes_are_let_go_when_all_have_read_them() -> None:
    layers = [layer for _ in range(6) for layer in (conv(5, 5), nn.ReLU())]
    x = images((5, 6, 6))
    snn = spiking(nn.Sequential(*layers, conv(5, 3, 1)), x)
    with torch.no_grad():
        engine = engine_of(snn)
    fired: list[weakref.ref[Packed]] = []
    alive: list[int] = []

    def fire(*arguments: object) -> Packed:
        alive.append(sum(ref() is not None for ref in fired))
        spikes = EventEngine._fire(engine, *arguments)  # type: ignore[arg-type]
        fired.append(weakref.ref(spikes))
        return spikes

    engine._fire = fire  # type: ignore[method-assign]
    snn(x, engine="event")
    assert alive == [0, 1, 1, 1, 1, 1]


@torch.no_grad()
def test_weights_are_held_by_the_layers_alone() -> None:
    """Torch keeps those that it needs; those in 16 bits are kept once more, for a run in floating point."""
    x = images((5, 6, 6))
    snn = spiking(nn.Sequential(conv(5, 7), nn.ReLU(), conv(7, 9), nn.ReLU(), conv(9, 3, 1)), x)
    engine = engine_of(snn)
    assert [node.name for node in engine.graph.of_type(nn.Conv2d)] == ["0", "4"]
    kept = [path.weight.numel() for path in engine.plan.cells["3"].paths if path.weight is not None]
    assert kept == [0] and len(snn.graph.of_type(nn.Conv2d)) == 3
    whole, _ = rounded(snn, x)
    kept = [path.weight.numel() for path in engine_of(whole).plan.cells["3"].paths if path.weight is not None]
    assert kept == [9 * 7 * 9]


@pytest.mark.parametrize("name", ["identity shortcut", "max-pool", "64 to 65 channels", "depthwise, 40 channels"])
def test_two_threads_give_what_one_gives(name: str, two_threads: None) -> None:
    case = CASES[name]
    snn = spiking(case.make(), images(case.shape))
    x = images(case.shape, 41)
    shares = []
    with torch.no_grad():
        layer = list(engine_of(snn).layers.values())[-1]
    kernel = layer.kernel
    layer.kernel = lambda *arguments: (shares.append(arguments[-2:]), kernel(*arguments))
    found = snn(x, engine="event")
    layer.kernel = kernel
    # Whole networks side by side, or layer by layer where the network has a state that all images share.
    assert set(shares) == ({(0, 20), (20, 41)} if name == "max-pool" else {(0, 20), (0, 21)})
    torch.set_num_threads(1)
    assert torch.equal(snn(x, engine="event"), found)
    assert_equal_runs(snn, x, gap=1e-12)


# ---- numbers ----------------------------------------------------------------------------------------------


def test_dead_channels() -> None:
    """Neurons that nothing reaches, spikes that reach nobody, a whole layer of zeros."""
    x = images((2, 6, 6))
    snn = spiking(nn.Sequential(conv(2, 70), nn.ReLU(), conv(70, 6), nn.ReLU(), conv(6, 6), nn.ReLU(), conv(6, 3)), x)
    layer, last = snn.graph["2"].module, snn.graph["4"].module
    layer.weight.data[1:3] = 0
    layer.weight.data[:, 3:9] = layer.weight.data[:, 64:] = 0
    last.weight.data.zero_()
    spikes = assert_equal_runs(snn, x, gap=1e-12)
    assert bool(spikes["1"].any()) and bool(spikes["3"].any())
    assert_equal_runs(*rounded(snn, x))


def _steady(weight: float, steps: int, dtype: torch.dtype) -> ftbc.SpikingNetwork:
    """Two neurons that get the same current at each step, by four spikes."""
    snn = spiking(
        nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2)), images((2,)), steps
    )
    one, zero = torch.ones(1).double(), torch.zeros(1).double()
    for name in ("1", "3"):
        snn.graph[name].module.set(one, zero)
    snn.graph["1"].module.bias += 100.0  # always fires
    snn.graph["2"].module.weight.data.fill_(weight)
    snn.graph["2"].module.bias.data.zero_()
    return snn.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("weight", "steps", "overflows"),
    [(1.5, 4, False), (1.5, 7, True), (1.5, 33, True), (-1.5, 4, False), (-1.5, 6, True), (-7.5, 33, True)],
)
def test_membranes_that_leave_16_bits_run_again(weight: float, steps: int, overflows: bool, dtype: torch.dtype) -> None:
    """At scale 1024, 16 bits hold 32 thresholds; each step brings 6, or takes 6, or 30."""
    snn = _steady(weight + 1 / 1024, steps, dtype)
    x = images((2,), dtype=dtype)
    assert events(snn)[-1] == "int16"
    snn(x, engine="event")
    assert bool(engine_of(snn).reserve) == overflows
    wanted = snn(x)
    assert torch.equal(snn(x, engine="event"), wanted)
    assert torch.equal(snn(x[:1], engine="event"), wanted[:, :1])


@pytest.mark.parametrize("name", ["identity shortcut", "shortcut from a layer of the image", "join", "depthwise"])
@pytest.mark.parametrize("larger", [1, 50])
def test_images_that_are_larger_than_those_it_was_rounded_on(name: str, larger: int) -> None:
    case = CASES[name]
    small = 0.02 * images(case.shape)
    snn, small = rounded(spiking(case.make(), small), small)
    assert events(snn)[-1] == "int16"
    x = larger * small
    assert_equal_runs(snn, x)
    assert bool(engine_of(snn).reserve) == (larger > 1)
    assert_equal_runs(snn, small)


@pytest.mark.parametrize("bad", [3e38, -3e38])
def test_an_image_whose_currents_overflow_spoils_no_other(bad: float) -> None:
    case = STRUCTURES["shortcut from a layer of the image"]
    for snn, x in (
        rounded(spiking(case.make(), images(case.shape)), images(case.shape)),
        (spiking(case.make(), images(case.shape)), images(case.shape)),
    ):
        good = snn(x, engine="event")
        x[1, :, 2, 2] = bad
        found, wanted = snn(x, engine="event"), snn(x)
        assert torch.equal(found[:, [0, 2, 3]], good[:, [0, 2, 3]])
        assert torch.allclose(found, wanted, equal_nan=True)
        assert not torch.equal(found[:, 1], good[:, 1])


def test_a_run_leaves_no_trace() -> None:
    """Runs of other images, more images and other inputs in between change nothing."""
    case = STRUCTURES["max-pool"]
    x = images(case.shape)
    snn = spiking(case.make(), x)
    first = snn(x, engine="event")
    snn(images(case.shape, 9, seed=8), engine="event")
    snn(x.expand(5, *x.shape), time_first=True, engine="event")
    assert torch.equal(snn(x, engine="event"), first)
    assert all(node.module.v is None for node in snn.graph.of_type(IntegrateFire))


def test_gradients_are_neither_needed_nor_made() -> None:
    case = STRUCTURES["projection"]
    x = images(case.shape).requires_grad_()
    snn = spiking(case.make(), x.detach())
    for parameter in snn.parameters():
        parameter.requires_grad_()
    found = snn(x, engine="event")
    assert not found.requires_grad and torch.allclose(found, snn(x), atol=1e-12)


def test_weights_and_images_in_any_order_of_memory() -> None:
    case = STRUCTURES["projection"]
    x = images(case.shape)
    snn = spiking(case.make(), x)
    wanted, spikes = event_run(snn, x)
    snn.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found, others = event_run(snn, x.to(memory_format=torch.channels_last))
    assert torch.allclose(found, wanted, atol=1e-12)
    assert all(torch.equal(spikes[name], others[name]) for name in spikes)


# ---- random networks --------------------------------------------------------------------------------------


class _Random(nn.Module):
    """Blocks drawn at random: each reads the last value, or joins or adds an earlier one of the same size."""

    def __init__(self, draw) -> None:
        super().__init__()
        self.stem = conv(2, channels := draw(st.sampled_from([3, 16, 20])))
        self.blocks, self.steps = nn.ModuleList(), []
        size = 8
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(["conv", "depthwise", "pool", "max", "add", "join", "subtract"]))
            kernel, stride = draw(st.sampled_from([1, 2, 3, 5])), draw(st.sampled_from([1, 1, 2]))
            if kind in ("pool", "max") and size >= 2:
                self.blocks.append(nn.AvgPool2d(2) if kind == "pool" else nn.MaxPool2d(2))
                size //= 2
            elif kind == "depthwise":
                self.blocks.append(conv(channels, channels, 3, groups=channels))
            elif kind in ("add", "subtract"):
                self.blocks.append(conv(channels, channels, 3))
            elif kind == "join":
                self.blocks.append(conv(channels, more := draw(st.sampled_from([2, 17])), 1))
                channels += more
            else:
                kind, padding = "conv", draw(st.integers(0, kernel // 2))
                if size + 2 * padding < kernel:
                    padding = kernel // 2
                self.blocks.append(
                    nn.Conv2d(channels, channels := draw(st.sampled_from([4, 16, 33])), kernel, stride, padding)
                )
                size = (size + 2 * padding - kernel) // stride + 1
            self.steps.append(kind)
        self.head = nn.Linear(channels * size * size, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.stem(x))
        for block, kind in zip(self.blocks, self.steps, strict=True):
            if kind in ("pool", "max"):
                x = block(x)
            elif kind == "add":
                x = torch.relu(block(x) + x)
            elif kind == "subtract":
                x = torch.relu(x - 0.5 * block(x))
            elif kind == "join":
                x = torch.cat([x, torch.relu(block(x))], 1)
            else:
                x = torch.relu(block(x))
        return self.head(x.flatten(1))


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.data())
def test_random_networks(data) -> None:
    x = images((2, 8, 8), 3)
    grain = data.draw(st.sampled_from(["layer", "channel"]))
    snn = spiking(_Random(data.draw), x, steps=4, grain=grain)
    assert_equal_runs(snn, x, gap=1e-12)
    assert_equal_runs(*rounded(snn, x))
