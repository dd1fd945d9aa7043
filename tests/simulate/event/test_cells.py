"""The plan: which layers run on events, in which numbers, and how large these can become."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.graph.ops import Grid
from ftbc.neuron import IntegrateFire
from ftbc.simulate.event.cells import DENSE_ABOVE, FINEST, LARGEST, plan, worst
from ftbc.simulate.event.paths import MOST_PATHS, Path
from tests.graph.support import Net

from .networks import GROUPS, PADS, SIZES, STRUCTURES, WIDTHS, WINDOWS, Case, conv, many_branches, sandwich
from .support import assert_equal_runs, engine_of, events, images, rounded, spiking

LEFT_TO_TORCH = {
    "average that overlaps", "average with padding", "average to 2 of 5", "average of a sequence",
    "mean over rows alone", "join of currents", "join along rows", "join with the image", "layer upon layer",
    "shortcut of currents", "factor by column, as many as channels", "factor by pixel", "shift before a padded layer",
    "7 branches", "slice of pixels", "channel shuffle", "pad with ones", "pad by reflection", "padding by name",
    "max-pool of a join", "dilated", "transposed", "upsampled", "volume", "volume in between", "linear over columns",
    "two readers of a sum", "spikes are the output at once",
}  # fmt: skip
"""Structures whose last neurons get what torch computed."""


@pytest.mark.parametrize("name", STRUCTURES)
def test_who_runs_on_events(name: str) -> None:
    case = STRUCTURES[name]
    snn = spiking(case.make(), images(case.shape), pool=case.pool)
    assert events(snn)[0] == "dense", "the first neurons read the image"
    assert events(snn)[-1] == ("dense" if name in LEFT_TO_TORCH else "float64")


CONVOLUTIONS = {"windows": WINDOWS, "sizes": SIZES, "pads": PADS, "groups": GROUPS, "widths": WIDTHS}


@pytest.mark.parametrize("kind", CONVOLUTIONS.values(), ids=list(CONVOLUTIONS))
def test_every_convolution_runs_on_events_and_in_16_bits_when_rounded(kind: dict[str, Case]) -> None:
    for name, case in kind.items():
        x = images(case.shape)
        snn = spiking(case.make(), x)
        assert events(snn) == ["dense", "float64"], name
        whole, x = rounded(snn, x)
        assert events(whole) == ["dense", "int16"], name
        whole(x, engine="event")
        assert not engine_of(whole).reserve, name


def test_the_number_of_paths_is_limited() -> None:
    x = images((3, 6, 6))
    for count in (MOST_PATHS, MOST_PATHS + 1):
        cell = list(plan(_unit(spiking(many_branches(count), x)), {}).cells.values())[-1]
        assert len(cell.paths) == (count if count == MOST_PATHS else 1)
        assert cell.has_current == (count > MOST_PATHS)


def _unit(snn: ftbc.SpikingNetwork):
    return snn.with_unit_thresholds().graph


# ---- how large currents can become ------------------------------------------------------------------------


def _all_spikes(count: int) -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=count)), dtype=torch.float64)


def test_the_worst_current_of_a_linear_layer() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, 7, 1, 1, dtype=torch.float64, generator=generator)
    bias = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    currents = _all_spikes(7) @ weight[:, :, 0, 0].T
    found = worst((Path("source", weight),), bias)
    by_hand = max(float((currents + row).abs().max()) for row in bias)
    assert found == pytest.approx(by_hand, abs=1e-12)
    assert worst((Path("source", -weight),), -bias) == pytest.approx(by_hand, abs=1e-12)


def test_the_worst_current_of_several_paths_and_pools() -> None:
    """Of 2 x 4 pixels, in sums of 1 x 2, a convolution of 1 x 2; and a shortcut from elsewhere."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(2, 1, 1, 2, dtype=torch.float64, generator=generator)
    factor = torch.randn(2, 1, 1, 1, dtype=torch.float64, generator=generator)
    bias = torch.tensor([[0.1, -0.2], [-0.1, 0.1], [0.2, 0.0]], dtype=torch.float64)
    paths = (Path("a", weight, pool=(1, 2)), Path("b", factor, depthwise=True), Path("computed", None))
    spikes = _all_spikes(6)
    pooled = spikes[:, :4].view(-1, 1, 2, 2).sum(3).unsqueeze(2)  # [., 1, 1, 2]
    currents = torch.nn.functional.conv2d(pooled, weight)[:, :, 0, 0] + spikes[:, 4:] * factor.flatten()
    by_hand = max(float((currents + row).abs().max()) for row in bias)
    assert worst(paths, bias) == pytest.approx(by_hand, abs=1e-12)
    assert worst(tuple(path.scaled(-1.0) for path in paths), -bias) == pytest.approx(by_hand, abs=1e-12)


def test_the_worst_is_never_exceeded_by_what_happens() -> None:
    """Membranes that start at rest: after one step they are the current alone."""
    case = STRUCTURES["identity shortcut"]
    x = images(case.shape, 20)
    graph = _unit(spiking(case.make(), x, steps=1))
    cell = list(plan(graph, {}).cells.values())[-1]
    seen: list[float] = []

    def observe(node, inputs, output, start) -> None:
        if node.name == cell.name:
            seen.append(float((inputs[0] + node.module.bias.view(1, 1, -1, 1, 1)).abs().max()))

    ftbc.SpikingNetwork(graph, 1, ftbc.recipe("mean-square"))(x, observe=observe)
    assert 0.3 * worst(cell.paths, cell.bias) < max(seen) <= worst(cell.paths, cell.bias)


# ---- whole numbers ----------------------------------------------------------------------------------------


def _layer(weight: float = 0.5, bias: float = 0.0, initial: float = 0.0, inputs: int = 4) -> ftbc.SpikingNetwork:
    """Spikes of ``inputs`` neurons reach two others, all through the same weight."""
    model = nn.Sequential(nn.Linear(2, inputs), nn.ReLU(), nn.Linear(inputs, 2), nn.ReLU(), nn.Linear(2, 2))
    snn = spiking(model, images((2,)), steps=3)
    for node in snn.graph.of_type(IntegrateFire):
        node.module.set(torch.ones(1).double(), torch.zeros(1).double())
    snn.graph["2"].module.weight.data.fill_(weight)
    snn.graph["2"].module.bias.data.zero_()
    last = snn.graph["3"].module
    last.bias, last.initial = last.bias + bias, last.initial + initial
    return snn


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ({}, "int16"),
        ({"weight": 3 / 1024, "bias": -5 / 512, "initial": 1 / 256}, "int16"),
        ({"weight": 1 / 2048}, "float64"),
        ({"weight": 0.3}, "float64"),
        ({"bias": 1 / 3}, "float64"),
        ({"initial": 0.1}, "float64"),
        # The scale follows from the finest number: 1/1024 leaves room for 32 thresholds, 1/2 for thousands.
        ({"weight": 7 + 1 / 1024}, "int16"),
        ({"weight": 8 + 1 / 1024}, "float64"),
        ({"weight": 1000.5}, "int16"),
        ({"weight": 4095.5}, "float64"),
        ({"weight": 1 / 1024, "initial": 31.0}, "int16"),
        ({"weight": 1 / 1024, "initial": 32.0}, "float64"),
        ({"weight": 1 / 1024, "initial": -33.0}, "float64"),
        ({"weight": 1 / 1024, "bias": 29.0}, "int16"),
        ({"weight": 1 / 1024, "bias": 31.0}, "float64"),
        ({"weight": float("inf")}, "float64"),
        ({"weight": float("nan")}, "float64"),
    ],
    ids=str,
)
def test_16_bits_are_chosen_when_all_numbers_are_whole_and_fit(numbers: dict[str, float], kind: str) -> None:
    snn = _layer(**numbers)
    assert events(snn) == ["dense", kind]
    if all(map(torch.isfinite, map(torch.tensor, numbers.values()))):
        assert_equal_runs(snn, images((2,), 30))


def test_the_scale_is_the_smallest_and_leaves_room_for_the_next_step() -> None:
    for weight, grid in ((1.0, 1), (0.5, 2), (3 / 64, 64), (1 / FINEST, FINEST)):
        cell = list(plan(_unit(_layer(weight)), {}).cells.values())[-1]
        assert cell.grid == grid and cell.room == LARGEST - grid * 4 * weight


@pytest.mark.parametrize(("step", "grid"), [(0.25, 4), (1 / 1024, 1024), (2.0, 2), (1 / 2048, 0), (0.3, 0)])
def test_a_current_of_torch_must_be_on_a_grid(step: float, grid: int) -> None:
    case = STRUCTURES["shortcut from a layer of the image"]
    snn = spiking(case.make(), images(case.shape))
    graph = _unit(snn)
    last = graph.of_type(IntegrateFire)[-1]
    for layer in (node.module for node in graph if isinstance(node.module, nn.Conv2d)):
        layer.weight.data.fill_(0.5)
        layer.bias.data.zero_()
    last.module.set(torch.ones(1).double(), torch.zeros(1).double())
    assert list(plan(graph, {}).cells.values())[-1].grid == 0
    current = next(path.source for path in plan(graph, {}).cells[last.name].paths if path.weight is None)
    name = graph.insert_after(current, ftbc.graph.ir.Node("grid", Grid(step), (current,), graph.shape(current)))
    graph.rewire(current, name, [graph[last.inputs[0]]])
    assert plan(graph, {}).cells[last.name].grid == grid
    if grid:
        assert_equal_runs(ftbc.SpikingNetwork(graph, 5, snn.recipe), images(case.shape))


def test_layers_names_the_numbers_of_the_network() -> None:
    x = images((2, 6, 6))
    snn = spiking(sandwich(conv(5, 6)).make(), x)
    assert events(snn) == ["dense", "float64"]
    whole, _ = rounded(snn, x)
    assert events(whole) == ["dense", "int16"] and events(whole.double()) == ["dense", "int16"]
    assert events(snn.float()) == ["dense", "float32"]


def test_layers_neither_warns_nor_changes_the_network() -> None:
    x = images((2, 6, 6))
    snn = spiking(sandwich(conv(5, 6)).make(), x)
    for parameter in snn.parameters():
        parameter.requires_grad_(True)
    before = {name: value.clone() for name, value in snn.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        snn.layers()
    assert all(torch.equal(before[name], value) for name, value in snn.state_dict().items())


# ---- busy sources -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "kind"), [(DENSE_ABOVE - 0.01, "float64"), (DENSE_ABOVE + 0.01, "dense")])
def test_busy_sources_are_left_to_torch(rate: float, kind: str) -> None:
    case = sandwich(conv(5, 6))
    x = images(case.shape)
    snn = spiking(case.make(), x, measured={"1": (rate, 0.0)})
    assert events(snn) == ["dense", kind]
    assert_equal_runs(snn, x, gap=1e-12)
    assert list(engine_of(snn).layers["3"].cell.currents) == (["2"] if kind == "dense" else [])


def test_depthwise_weights_are_collected_from_busy_sources_too() -> None:
    x = images((2, 6, 6))
    snn = spiking(sandwich(conv(5, 5, groups=5), out=5).make(), x, measured={"1": (0.9, 0.0)})
    assert events(snn) == ["dense", "float64"]
    assert_equal_runs(snn, x, gap=1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.15, 0.3])
def test_how_busy_a_source_is_changes_nothing(rate: float) -> None:
    """Busy sources of few channels are added from tables of sums."""
    x = images((2, 6, 7))
    snn = spiking(sandwich(conv(16, 16), spikes=16, out=16).make(), x, measured={"1": (rate, 0.0)})
    assert_equal_runs(snn, x, gap=1e-12)
    whole, x = rounded(snn, x)
    assert events(whole)[-1] == "int16"
    assert_equal_runs(whole, x)


# ---- what torch is spared ---------------------------------------------------------------------------------

HEADS = {
    "average to 1": (lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), True),
    "average of all": (lambda x: F.avg_pool2d(x, (6, 5)).flatten(1), True),
    "average over another number": (lambda x: F.avg_pool2d(x, (6, 5), divisor_override=7).flatten(1), True),
    "mean": (lambda x: x.mean((2, 3)), True),
    "mean, kept": (lambda x: x.mean((3, 2), keepdim=True).flatten(1), True),
    "sum": (lambda x: x.sum((2, 3)), True),
    "average with padding": (lambda x: F.avg_pool2d(x, (8, 7), padding=(1, 1)).flatten(1), False),
    "average of a part": (lambda x: F.avg_pool2d(x, 5).flatten(1), False),
    "mean over channels, too": (lambda x: x.mean((1, 2, 3), keepdim=True).flatten(1).expand(-1, 5), False),
    "mean over rows": (lambda x: x.mean(2)[:, :, 0], False),
}


@pytest.mark.parametrize("name", HEADS)
def test_planes_are_counted_where_nothing_else_is_read_of_them(name: str) -> None:
    pool, counted = HEADS[name]
    x = images((2, 6, 5))
    snn = spiking(
        Net(lambda m, x: m.c(pool(F.relu(m.b(F.relu(m.a(x)))))), a=conv(2, 5), b=conv(5, 5), c=nn.Linear(5, 3)), x
    )
    own = engine_of(snn).plan
    last = list(own.cells)[-1]
    assert (last not in own.dense) == bool(own.totals) == counted
    assert_equal_runs(snn, x, gap=1e-12)
    whole, x = rounded(snn, x)
    assert_equal_runs(whole, x)


def test_spikes_that_others_read_are_unpacked_all_the_same() -> None:
    def forward(m, x: Tensor) -> Tensor:
        s = F.relu(m.b(F.relu(m.a(x))))
        return m.c(s.mean((2, 3))) + s[:, :3, 0, 0]

    x = images((2, 6, 5))
    snn = spiking(Net(forward, a=conv(2, 5), b=conv(5, 5), c=nn.Linear(5, 3)), x)
    own = engine_of(snn).plan
    assert own.totals and list(own.cells)[-1] in own.dense
    assert_equal_runs(snn, x, gap=1e-12)


def test_a_current_is_rounded_on_arrival_unless_others_read_it_rounded() -> None:
    def twice(m, x: Tensor) -> Tensor:
        z = m.a(x)
        return m.c(F.relu(z) + F.relu(m.b(F.relu(z)) + z))

    x = images((2, 6, 6))
    plain, x32 = rounded(spiking(sandwich(conv(5, 6)).make(), x), x)
    (first, *_) = engine_of(plain).plan.cells.values()
    grids = {node.name: node.module for node in engine_of(plain).graph.of_type(Grid)}
    assert first.step == grids[f"{first.currents[0]}_grid"].step
    assert f"{first.currents[0]}_grid" not in engine_of(plain).plan.dense
    assert_equal_runs(plain, x32)
    shared, x32 = rounded(spiking(Net(twice, a=conv(2, 5), b=conv(5, 5), c=conv(5, 3)), x), x)
    assert_equal_runs(shared, x32)
