"""Rounded networks: every number where it should be, and nothing that an order of addition could change."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.errors import InputError, NotFiniteError
from ftbc.graph.ir import INPUT
from ftbc.graph.ops import Affine, Grid, Reduce, Synapses
from ftbc.neuron import IntegrateFire
from ftbc.simulate.event.cells import FINEST, plan, worst
from ftbc.simulate.event.exact import digits, make_exact

from .networks import GROUPS, STRUCTURES, WINDOWS, Case, conv, sandwich
from .support import assert_equal_runs, engine_of, events, images, rounded, single, spiking

CASES = {**STRUCTURES, "depthwise": GROUPS["depthwise"], "window": WINDOWS["kernel 5, stride 2, padding 2"]}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
AVERAGES = [
    name for name in STRUCTURES if name.startswith("average") or "mean" in name or name == "max-pool as average"
]


def whole(values: Tensor, scale: float) -> bool:
    return bool((values.double() * scale == torch.round(values.double() * scale)).all())


# ---- what becomes whole -----------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_that_reaches_neurons_is_a_multiple(case: Case, dtype: torch.dtype) -> None:
    """Of 1/1024 or coarser where 16 bits are enough; else of what the digits of the type allow."""
    x = images(case.shape, dtype=dtype)
    snn = spiking(case.make(), x, pool=case.pool).to(dtype).rounded(x)
    graph = snn.graph
    assert all(bool((node.module.threshold == 1).all()) for node in graph.of_type(IntegrateFire))
    assert all(tensor.dtype == dtype for tensor in snn.state_dict().values())
    for name, cell in plan(graph, {}).cells.items():
        numbers = [cell.bias, cell.initial, *(path.weight for path in cell.paths if path.weight is not None)]
        scale = cell.grid or next(2.0**k for k in range(60) if all(whole(values, 2.0**k) for values in numbers))
        assert all(whole(values, scale) for values in numbers), name
        assert scale * worst(cell.paths, cell.bias) <= 2.0 ** digits(dtype), name
        for path in cell.paths:
            if path.weight is None:
                source = graph[path.source].module
                step = cell.step or (source.step if isinstance(source, Grid) else math.nan)
                assert math.log2(step).is_integer(), name
        if cell.grid:
            neuron = graph[name].module
            assert cell.grid <= FINEST and whole(neuron.bias, cell.grid) and whole(neuron.initial, cell.grid)


@every_case
def test_a_current_is_not_rounded_twice(case: Case) -> None:
    x = images(case.shape)
    once = spiking(case.make(), x, pool=case.pool).rounded(x)
    of_neurons = [node for node in once.rounded(x).graph.of_type(Grid) if node.name != "image_grid"]
    assert not any(isinstance(once.graph[node.inputs[0]].module, Grid) for node in of_neurons)


@every_case
def test_the_network_itself_is_not_changed(case: Case) -> None:
    x = images(case.shape)
    snn = spiking(case.make(), x, pool=case.pool)
    before, outputs = copy.deepcopy(snn.state_dict()), snn(x)
    snn.rounded(x)
    assert all(torch.equal(before[name], value) for name, value in snn.state_dict().items())
    assert torch.equal(snn(x), outputs)


@every_case
def test_in_float64_hardly_anything_changes(case: Case) -> None:
    """Weights move by half of 1/1024 of a threshold; over one step few membranes come to the other side of it."""
    x = images(case.shape, 16)
    snn = spiking(case.make(), x, pool=case.pool, steps=1)
    close, wanted = snn.rounded(x)(x), snn(x)
    assert float((close - wanted).pow(2).mean()) < 0.1 * float(wanted.var())


def test_what_torch_computes_keeps_most_digits() -> None:
    """The output of one linear layer on spikes, and the first current, which is rounded to the neurons' scale."""
    model = nn.Sequential(nn.Linear(9, 40), nn.ReLU(), nn.Linear(40, 5))
    x = images((9,), dtype=torch.float32)
    snn = single(spiking(model, x, steps=1))
    unit, close = snn.with_unit_thresholds(), snn.rounded(x)
    before, after = unit.graph["2"].module.weight, close.graph["2"].module.weight
    assert 0 < float((before - after).abs().max()) < 1e-5 * float(before.abs().max())
    before, after = unit.graph["0"].module.weight, close.graph["0"].module.weight
    assert 0 < float((before - after).abs().max()) < 1e-3 * float(before.abs().max())
    grids = [node.module.step for node in close.graph.of_type(Grid)]
    assert len(grids) == 2 and grids[0] < 0.003 * float(x.abs().max()) and grids[1] <= 1 / 64


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_become_sums(name: str) -> None:
    """A ninth of a spike is not exact; what remains an average is one that has no sum, and torch computes it."""
    case = STRUCTURES[name]
    x = images(case.shape)
    snn, _ = rounded(spiking(case.make(), x, pool=case.pool), x)
    pools = [
        node.module for node in snn.graph if "Avg" in type(node.module).__name__ or isinstance(node.module, Reduce)
    ]
    assert pools
    for pool in pools:
        summed = pool.mean is False if isinstance(pool, Reduce) else getattr(pool, "divisor_override", None) == 1
        assert summed or name in ("average to 2 of 5", "average of a sequence")


def test_a_factor_between_weights_and_neurons_is_exact_without_being_16_bits() -> None:
    """One layer that two sorts of neurons read: products of two rounded numbers have twice the digits."""
    case = STRUCTURES["one layer, two sorts of neurons"]
    x = images(case.shape)
    snn, x = rounded(spiking(case.make(), x), x)
    assert events(snn)[1:] == ["float32", "float32"] and len(snn.graph.of_type(Affine)) > 0
    assert_equal_runs(snn, x)


@pytest.mark.parametrize("smaller", [2, 2.5, 3, 4, 30])
def test_products_of_many_digits_fit_into_float32(smaller: float) -> None:
    """Currents of 17 thresholds and more: two factors that are multiples of 1/1024 would need more than 24 digits."""
    case = STRUCTURES["one layer, two sorts of neurons"]
    x = images(case.shape)
    snn = spiking(case.make(), x, steps=1)
    for node in snn.graph.of_type(IntegrateFire)[1:]:
        for constant in (node.module.threshold, node.module.initial, node.module.bias):
            constant /= smaller
    close, x = rounded(snn, x)
    for cell in list(plan(close.graph, {}).cells.values())[1:]:
        weights = [path.weight for path in cell.paths if path.weight is not None]
        largest = worst(cell.paths, cell.bias)
        assert largest > 8 and all(whole(weight, 2.0 ** (24 - math.ceil(math.log2(largest)))) for weight in weights)
    assert_equal_runs(close, x)


def test_numbers_too_large_for_16_bits_are_exact_in_float32() -> None:
    """A sum over many pixels, in thresholds: thousands of them, of which 16 bits would leave a few digits."""
    case = sandwich(conv(64, 6, 7), spikes=64)
    x = images(case.shape)
    snn = spiking(case.make(), x)
    snn.graph["3"].module.threshold /= 3000
    snn.graph["3"].module.bias /= 3000
    snn.graph["3"].module.initial /= 3000
    close, x = rounded(snn, x)
    assert events(close) == ["dense", "float32"]
    assert torch.equal(close(x, engine="event"), close(x)) and torch.equal(close(x, engine="stepwise"), close(x))


# ---- to the last bit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["linear", "average of 3, stride 2 behind", "dilated", "join of currents", "a third of one"]
)
def test_every_engine_and_every_batch_gives_the_same_bits(name: str) -> None:
    """Torch adds in another order for few rows, for many, and for another layout: not so here."""
    case = STRUCTURES[name]
    snn, x = rounded(spiking(case.make(), images(case.shape)), images(case.shape, 40))
    wanted = snn(x)
    assert torch.equal(snn(x, engine="stepwise"), wanted)
    assert torch.equal(snn(x, engine="event"), wanted)
    for engine in ("layerwise", "stepwise", "event"):
        by_one = torch.cat([snn(image, engine=engine) for image in x.split(1)], 1)
        assert torch.equal(by_one, wanted), engine
    snn.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    assert torch.equal(snn(x), wanted)


def test_the_bits_of_a_wide_network() -> None:
    """Where unrounded sums do depend on the batch."""
    model = nn.Sequential(nn.Linear(300, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    x = images((300,), 130, dtype=torch.float32)
    snn = single(spiking(model, x[:20]))
    first = snn.graph["0"].module
    with torch.no_grad():
        if torch.equal(first(x)[:1], first(x[:1])):
            pytest.skip("this machine adds alike for one row and for many")
    close = snn.rounded(x[:20])
    wanted = close(x)
    for engine in ("layerwise", "stepwise", "event"):
        assert torch.equal(torch.cat([close(part, engine=engine) for part in x.split(1)], 1), wanted), engine


@pytest.mark.parametrize("name", ["identity shortcut", "average of 3, stride 2 behind", "join", "max-pool", "a head"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saved_and_loaded(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    case = STRUCTURES[name]
    x = images(case.shape, dtype=dtype)
    snn = spiking(case.make(), x).to(dtype).rounded(x)
    snn.save(tmp_path / "net.snn")
    loaded = ftbc.load(tmp_path / "net.snn")
    assert events(loaded) == events(snn) and "int16" in events(loaded)
    wanted = snn(x)
    assert torch.equal(loaded(x), wanted) and torch.equal(loaded(x, engine="event"), wanted)


@every_case
def test_rounding_twice_keeps_it_exact(case: Case) -> None:
    x = images(case.shape)
    once, x = rounded(spiking(case.make(), x, pool=case.pool), x)
    assert_equal_runs(once.rounded(x), x)


@pytest.mark.parametrize("name", ["linear", "identity shortcut", "sequence", "volume", "two readers of a sum"])
@pytest.mark.parametrize("size", [0.01, 1, 200])
def test_the_layer_that_reads_the_image_is_exact(name: str, size: float) -> None:
    """In float32 as in float64, and without losing much of either image or weights."""
    case = STRUCTURES[name]
    x = size * images(case.shape, 30)
    snn = spiking(case.make(), x)
    close, x = rounded(snn, x)
    (grid,) = close.graph.users(INPUT)
    assert isinstance(grid.module, Grid)
    whole = grid.module(x)
    assert 0 < float((whole - x).abs().max()) < 0.005 * float(x.abs().max())
    layers = [node for node in close.graph.users(grid.name) if isinstance(node.module, Synapses)]
    assert layers
    for node in layers:
        weight, before = node.module.weight, snn.with_unit_thresholds().graph[node.name].module.weight
        assert 0 < float((weight - before).abs().max()) < 0.005 * float(before.abs().max())
        with torch.no_grad():
            assert torch.equal(node.module(whole).double(), copy.deepcopy(node.module).double()(whole.double()))


def test_exactness_of_the_layers_of_torch() -> None:
    """Of a layer that reads spikes, each sum of weights is exact in float32: equal to that in float64."""
    for name in (
        "dilated",
        "transposed",
        "average that overlaps",
        "upsampled",
        "channel shuffle",
        "linear over columns",
    ):
        case = STRUCTURES[name]
        x = images(case.shape, 8)
        snn, x = rounded(spiking(case.make(), x), x)
        double = copy.deepcopy(snn).double()
        assert torch.equal(snn(x).double()[:1], double(x.double())[:1]), name


def test_layers_without_digits_to_spare_stay_as_they_are() -> None:
    """Behind one rounded layer another has none left; it must not be rounded away."""
    graph = spiking(
        nn.Sequential(*[nn.Linear(40, 40) for _ in range(6)], nn.ReLU(), nn.Linear(40, 3)), images((40,))
    ).graph
    graph.float()
    before = {node.name: node.module.weight.clone() for node in graph if isinstance(node.module, Synapses)}
    make_exact(graph, images((40,), dtype=torch.float32))
    for name, weight in before.items():
        moved = float((graph[name].module.weight - weight).abs().max())
        assert moved < 0.01 * float(weight.abs().max()), name


# ---- what it is measured on -------------------------------------------------------------------------------


def test_the_scale_follows_the_images() -> None:
    case = STRUCTURES["shortcut from a layer of the image"]
    x = images(case.shape)
    snn = single(spiking(case.make(), x))
    steps = [snn.rounded(size * x.float()).graph.of_type(Grid)[-1].module.step for size in (1, 20)]
    assert steps[0] < steps[1]


def test_the_images_it_was_rounded_on_fit_into_16_bits() -> None:
    for name in ("identity shortcut", "join", "projection", "shortcut from a layer of the image"):
        case = STRUCTURES[name]
        for size in (0.1, 1, 5, 20):
            x = size * images(case.shape)
            snn, x = rounded(spiking(case.make(), images(case.shape), steps=20), x)
            snn(x, engine="event")
            assert not engine_of(snn).reserve, (name, size)


def test_wrong_images_are_refused() -> None:
    case = STRUCTURES["linear"]
    snn = spiking(case.make(), images(case.shape))
    with pytest.raises(InputError, match=r"\[N, 7\]"):
        snn.rounded(images((8,)))
    with pytest.raises(InputError, match="no images"):
        snn.rounded(images((7,), 0))
    with pytest.raises(InputError, match="convert the input"):
        snn.rounded(images((7,)).float())
    for bad in (float("nan"), float("inf")):
        with pytest.raises(NotFiniteError, match="NaN or infinity"):
            snn.rounded(torch.full((2, 7), bad, dtype=torch.float64))


def test_a_network_that_is_being_stepped_goes_on() -> None:
    case = STRUCTURES["identity shortcut"]
    x = images(case.shape)
    snn = spiking(case.make(), x)
    wanted = [snn.step(x) for _ in range(3)]
    snn.reset()
    steps = [snn.step(x)]
    snn.rounded(x)
    steps += [snn.step(x) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(steps, wanted, strict=True))
