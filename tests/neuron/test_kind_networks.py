"""Networks of every kind of neuron: engines, files, limits, and what cannot be done is refused."""

from __future__ import annotations

import copy
import functools
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS
from ftbc.calibrate import DistributionAware
from ftbc.errors import FileError, InputError, RecipeError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.initial import Half, Zero
from ftbc.neuron import (
    Burst,
    Differential,
    Kind,
    Offset,
    Parallel,
    Plain,
    Residual,
    Signed,
    Spiking,
    SpikingMaxPool,
    Switch,
)
from ftbc.neuron.restart import RestartingMaxPool
from ftbc.simulate import layerwise
from ftbc.simulate.layerwise import portion
from ftbc.threshold import Maximum, MeanSquare, Trained
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS
from tests.neuron import naive
from tests.test_save import content, with_argument, write

STEPS = 5
KINDS: dict[str, Kind] = {
    "plain": Plain(),
    "signed": Signed(),
    "clamped": Signed(lower=0.5, clamp=True),
    "burst": Burst(3),
    "differential": Differential(3),
    "parallel": Parallel(),
    "residual": Residual(3),
    "residual, longer than it counts": Residual(7),
    "offset": Offset(3),
    "offset, longer than it counts": Offset(7, rounds=2),
    "switch": Switch(),
}
STEPPED = [name for name, kind in KINDS.items() if kind.steppable]
AT_ONCE = [name for name, kind in KINDS.items() if not kind.steppable]


def recipe(kind: Kind, **more: object) -> ftbc.Recipe:
    return ftbc.Recipe(**{"threshold": MeanSquare(), "initial": Half(), "neuron": kind, **more})  # type: ignore[arg-type]


def images(count: int = 6) -> Tensor:
    return torch.rand(count, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@functools.cache
def converted(name: str, network: str = "depthwise") -> ftbc.SpikingNetwork:
    torch.manual_seed(0)
    return ftbc.convert(NETWORKS[network](), images(), STEPS, recipe(KINDS[name]))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", STEPPED)
def test_step_by_step_and_layer_by_layer_are_equal(name: str, network: str) -> None:
    snn, x = converted(name, network), images()
    wanted = snn(x)
    assert wanted.shape == (STEPS, 6, 5) and wanted.std() > 0
    assert torch.equal(snn(x, engine="stepwise"), wanted)
    snn.reset()
    torch.testing.assert_close(torch.stack([snn.step(x) for _ in range(STEPS)]), wanted, rtol=0, atol=1e-12)
    over_time = x.expand(snn.extra_steps + STEPS, *x.shape)
    assert torch.equal(snn(over_time, time_first=True), wanted)
    changing = over_time * torch.linspace(0, 2, len(over_time), dtype=x.dtype).view(-1, 1, 1, 1, 1)
    assert torch.equal(snn(changing, time_first=True), snn(changing, time_first=True, engine="stepwise"))
    prediction = snn.predict(x, until=ftbc.Confidence(0.3))
    left_at = wanted[prediction.steps - 1, torch.arange(len(x))]
    torch.testing.assert_close(prediction.outputs, left_at, rtol=0, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", KINDS)
def test_the_event_engine_gives_the_same(name: str, network: str) -> None:
    pytest.importorskip("numba")
    snn, x = converted(name, network), images()
    torch.testing.assert_close(snn(x, engine="event"), snn(x), rtol=0, atol=1e-9)
    on_events = any(row.events != "dense" for row in snn.layers())
    # differential neurons change too often in so few steps for events to gain
    kind = name.startswith(("plain", "switch", "signed", "clamped", "burst", "residual"))
    assert on_events == (kind and network != "plain"), "pooled and flattened, spikes reach no neuron one by one"


@pytest.mark.parametrize("name", KINDS)
def test_parts_of_images_and_of_time_change_nothing(name: str) -> None:
    snn, x = converted(name), images()
    steps = snn.extra_steps + STEPS
    chunk = portion(snn.graph, steps, 1)[1]
    assert chunk == {"parallel": 5, "offset": 3, "offset, longer than it counts": 7}.get(name, 1)
    wanted = layerwise(snn.graph, x, steps, room=1 << 30)
    torch.testing.assert_close(layerwise(snn.graph, x, steps, room=1), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_files_and_copies_are_equal_to_the_last_bit(name: str, tmp_path: Path) -> None:
    snn, x = converted(name), images()
    snn.save(tmp_path / "a.snn")
    again = ftbc.load(tmp_path / "a.snn")
    assert torch.equal(again(x), snn(x)) and again.recipe == snn.recipe and again.layers() == snn.layers()
    assert torch.equal(copy.deepcopy(snn)(x), snn(x)) and again.extra_steps == KINDS[name].extra_steps
    assert ftbc.Recipe.from_dict(snn.recipe.to_dict()) == snn.recipe
    (tmp_path / "mine.toml").write_text(snn.recipe.to_toml())
    assert ftbc.read_recipe(tmp_path / "mine.toml") == snn.recipe


@pytest.mark.parametrize(
    ("name", "kind", "argument", "value"),
    [
        ("burst", "BurstFire", "most", 0), ("burst", "BurstFire", "most", "x"), ("burst", "BurstFire", "most", 10**30),
        ("signed", "SignedFire", "lower", -1), ("signed", "SignedFire", "clamp", 2),
        ("differential", "DifferentialFire", "levels", 10**9), ("parallel", "ParallelFire", "steps", 10**9),
        ("residual", "ResidualFire", "extra", 10**9), ("residual", "ResidualFire", "extra", -1),
        ("residual", "ResidualFire", "extra", "3"), ("residual", "ResidualFire", "margin", None),
        ("offset", "OffsetFire", "rounds", 10**9), ("offset", "OffsetFire", "extra", 4),
        ("offset", "RestartingMaxPool", "extra", 10**9), ("offset", "RestartingMaxPool", "extra", True),
    ],
)  # fmt: skip
def test_files_with_wrong_settings_are_refused(
    name: str, kind: str, argument: str, value: object, tmp_path: Path, refused: Refused
) -> None:
    converted(name).save(tmp_path / "a.snn")
    header, tensors = content(tmp_path / "a.snn")
    with_argument(kind, argument, value)(header, tensors)
    refused(FileError, "b.snn", ftbc.load, write(tmp_path / "b.snn", header, tensors))


def test_files_with_tensors_that_do_not_fit_are_refused(tmp_path: Path, refused: Refused) -> None:
    converted("parallel").save(tmp_path / "a.snn")
    header, tensors = content(tmp_path / "a.snn")
    name = next(name for name in tensors if name.endswith(".size"))
    tensors[name] = torch.ones(3, dtype=torch.float64)
    refused(FileError, "constants", ftbc.load, write(tmp_path / "b.snn", header, tensors))
    converted("offset").save(tmp_path / "a.snn")
    header, tensors = content(tmp_path / "a.snn")
    del tensors["readout"]  # and with it the extra steps
    refused(FileError, "steps", ftbc.load, write(tmp_path / "b.snn", header, tensors))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", KINDS)
def test_thresholds_of_one(name: str, network: str) -> None:
    snn, x = converted(name, network), images()
    unit = snn.with_unit_thresholds()
    assert all(node.module.is_unit() for node in unit.graph.of_type(Spiking))
    torch.testing.assert_close(unit(x), snn(x), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "clamped"])
def test_many_steps_are_the_network(name: str) -> None:
    model, x = NETWORKS["depthwise"](), images(4)
    snn = ftbc.convert(model, x, 256, recipe(KINDS[name], threshold=Maximum()))
    wanted = model(x).detach()
    found = snn(x)
    errors = [float((found[t] - wanted).pow(2).mean() / wanted.var()) for t in (3, 255)]
    assert errors[1] < 0.01
    assert errors[1] < errors[0]


@pytest.mark.parametrize("name", ["residual", "offset"])
def test_without_extra_steps_it_is_the_plain_network(name: str) -> None:
    model, x = NETWORKS["residual"](), images()
    bare = ftbc.convert(model, x, STEPS, recipe(type(KINDS[name])(0)))  # type: ignore[call-arg]
    assert bare.extra_steps == 0 and bare.readout is None
    assert torch.equal(bare(x), ftbc.convert(model, x, STEPS, recipe(Plain()))(x))


# ---- what needs several steps at once ------------------------------------------------------------------------


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_needs_steps_at_once_does_not_go_step_by_step(name: str, refused: Refused) -> None:
    snn, x = converted(name), images()
    for call in (
        lambda: snn.step(x),
        lambda: snn(x, engine="stepwise"),
        lambda: snn.predict(x, until=ftbc.Confidence(0.9)),
    ):
        refused(InputError, ("step by step", "layerwise", "Fire"), call)
    prediction = snn.predict(x)
    assert torch.equal(prediction.outputs, snn(x)[-1]) and prediction.steps.tolist() == [STEPS] * len(x)


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("plain", "switch")])
def test_only_plain_neurons_are_rounded(name: str, refused: Refused) -> None:
    refused(InputError, ("rounded", "Fire"), converted(name).rounded, images())


@pytest.mark.parametrize("steps", [1, 2, 8])
@pytest.mark.parametrize("network", NETWORKS)
def test_switches_have_the_accuracy_of_rmp(network: str, steps: int) -> None:
    """TSC tells the spikes of RMP in another way: outputs are equal to the last bit, whatever T."""
    model, x = NETWORKS[network](), images()
    assert torch.equal(ftbc.convert(model, x, steps, "tsc")(x), ftbc.convert(model, x, steps, "rmp")(x))


def test_switches_can_be_rounded() -> None:
    assert converted("switch").rounded(images())(images()).shape == (STEPS, 6, 5)


def test_wrong_neurons_are_refused(refused: Refused) -> None:
    refused(RecipeError, ("neuron", "Plain, "), ftbc.Recipe, neuron="signed")
    refused(RecipeError, "neuron", ftbc.Recipe, neuron=Maximum())
    refused(RecipeError, "threshold", ftbc.Recipe, threshold=Signed())
    refused(RecipeError, "most", ftbc.Recipe.from_dict, {"neuron": {"type": "Burst", "most": 0}})
    refused(RecipeError, "BurstFire", ftbc.Recipe.from_dict, {"neuron": {"type": "BurstFire", "most": 2}})
    assert ftbc.Recipe.from_dict({"name": "old"}).neuron == Plain()


# ---- FTBC on other neurons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in STEPPED if not KINDS[name].extra_steps])
def test_biases_are_calibrated_on_any_neuron_that_steps(name: str) -> None:
    """After FTBC the mean output of each layer at each step is nearer to the mean activation."""
    model, x = NETWORKS["residual"](), images(16)
    gaps = []
    for calibrations in ((), (ftbc.FTBC(alpha=0.4, iterations=15),)):
        snn = ftbc.convert(model, x, STEPS, recipe(KINDS[name], calibrate=calibrations))
        means: dict[str, Tensor] = {}

        def keep(node, inputs, output, start, means=means) -> None:  # type: ignore[no-untyped-def]
            if isinstance(node.module, Spiking):
                means[node.name] = output.mean((1, *range(3, output.ndim)))

        layerwise(snn.graph, x, STEPS, observe=keep, room=1 << 30)
        wanted = _activations(model, x, list(means))
        gaps.append(sum(float((means[key] - wanted[key]).abs().mean() / wanted[key].mean()) for key in means))
    assert gaps[1] < 0.6 * gaps[0]


def _activations(model: nn.Module, x: Tensor, sites: list[str]) -> dict[str, Tensor]:
    """The mean activation of each channel."""
    graph, found = canonical(trace(model, x)).require().graph, {}

    def keep(node, value) -> None:  # type: ignore[no-untyped-def]
        if node.name in sites:
            found[node.name] = value.mean((0, *range(2, value.ndim))).detach()

    graph(x, keep)
    return found


def test_single_steps_of_parallel_neurons_cannot_be_corrected(refused: Refused) -> None:
    method = recipe(Parallel(), calibrate=(ftbc.FTBC(),))
    refused(RecipeError, ("FTBC", "at once"), ftbc.convert, NETWORKS["plain"](), images(), STEPS, method)
    method = recipe(Signed(), calibrate=(DistributionAware(),))
    refused(RecipeError, "DistributionAware", ftbc.convert, NETWORKS["plain"](), images(), STEPS, method)


# ---- two layers written out ----------------------------------------------------------------------------------


@pytest.fixture
def two_layers() -> tuple[nn.Sequential, Tensor]:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    return model, torch.rand(12, 4, dtype=torch.float64) * 2


def _constants(snn: ftbc.SpikingNetwork, name: str) -> tuple[list[float], list[float], list[list[float]]]:
    layer = snn.graph[name].module
    assert isinstance(layer, Spiking)
    b = layer.bias.expand(-1, layer.bias.shape[1])
    return layer.threshold.tolist(), layer.initial.tolist(), b.T.tolist()


def _layer(rule: naive.Rule, x: Tensor, constants: tuple[list[float], list[float], list[list[float]]]) -> Tensor:
    """One image's spikes ``[T, C]`` from its currents ``[T, C]``."""
    columns = [rule(x[:, c].tolist(), constants[0][c], constants[1][c], constants[2][c]) for c in range(x.shape[1])]
    return torch.tensor(columns, dtype=x.dtype).T


def _mean(outputs: Tensor) -> Tensor:
    return outputs.cumsum(0) / torch.arange(1, len(outputs) + 1).view(-1, *[1] * (outputs.ndim - 1))


@pytest.mark.parametrize("extra", [3, 8])
def test_offsets_layer_after_layer_as_released(two_layers: tuple[nn.Sequential, Tensor], extra: int) -> None:
    """A layer pre-runs over the first E corrected spikes of the layer before, then fires for all steps."""
    model, x = two_layers
    method = recipe(Offset(extra), calibrate=(ftbc.FTBC(iterations=2),))
    snn = ftbc.convert(model, x, STEPS, method)
    steps = max(extra, STEPS)
    for n, image in enumerate(x):
        value = model[0](image).detach().expand(steps, -1)
        for place, following in (("1", model[2]), ("3", model[4])):
            theta, v0, b = _constants(snn, place)
            starts = [
                naive.offset_beginning(value[:extra, c].tolist(), theta[c], v0[c], b[c], 1) for c in range(len(theta))
            ]
            spikes = _layer(naive.plain, value, (theta, starts, b))
            value = following(spikes).detach()
        torch.testing.assert_close(snn(x)[:, n], _mean(value[:STEPS]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("extra", [3, 8])
def test_residuals_of_all_layers_at_once_as_released(two_layers: tuple[nn.Sequential, Tensor], extra: int) -> None:
    model, x = two_layers
    snn = ftbc.convert(model, x, STEPS, recipe(Residual(extra), calibrate=(ftbc.FTBC(iterations=2),)))
    for n, image in enumerate(x):
        value = model[0](image).detach().expand(extra + STEPS, -1)
        for place, following in (("1", model[2]), ("3", model[4])):
            value = following(_layer(naive.residual(extra, 1e-3), value, _constants(snn, place))).detach()
        torch.testing.assert_close(snn(x)[:, n], _mean(value[extra:]), rtol=0, atol=1e-10)


def test_differences_through_weights_as_released(two_layers: tuple[nn.Sequential, Tensor]) -> None:
    """Changes through the weights, a running mean in each receiver, biases apart: the same outputs."""
    model, x = two_layers
    snn = ftbc.convert(model, x, STEPS, recipe(Differential(3), initial=Zero()))
    for n, image in enumerate(x):
        told = torch.zeros(STEPS, 9, dtype=torch.float64)
        told[0] = model[0].weight.detach() @ image  # sent once
        shift = model[0].bias.detach()
        for place, following in (("1", model[2]), ("3", model[4])):
            theta, _, _ = _constants(snn, place)
            sent = torch.zeros(STEPS, len(theta), dtype=torch.float64)
            for c in range(len(theta)):
                v, mean_in, mean_out, total = 0.0, float(shift[c]), 0.0, 0.0
                for t in range(1, STEPS + 1):
                    v += float(told[t - 1, c]) + mean_in - mean_out
                    total += mean_out
                    for k in range(3):
                        size = theta[c] / 2**k
                        if v >= 0.75 * size or (v <= -0.75 * size and total >= size * (1 - 1e-9)):
                            sent[t - 1, c] = size if v > 0 else -size
                            break
                    change = float(sent[t - 1, c])
                    v, total = v - change, total + change
                    mean_in += float(told[t - 1, c]) / t
                    mean_out += change / t
            told, shift = (sent @ following.weight.T).detach(), following.bias.detach()
        by_step = told / torch.arange(1, STEPS + 1).view(-1, 1)
        mean = shift + by_step.cumsum(0)
        torch.testing.assert_close(snn(x)[:, n], mean, rtol=0, atol=1e-10)


# ---- pools begin anew ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["residual", "offset"])
def test_pools_forget_the_extra_steps(name: str) -> None:
    snn, x = converted(name), images()
    (pool,) = snn.graph.of_type(SpikingMaxPool)
    assert isinstance(pool.module, RestartingMaxPool) and pool.module.extra == 3
    kept: dict[str, Tensor] = {}

    def keep(node, inputs, output, start) -> None:  # type: ignore[no-untyped-def]
        if node.name == pool.name:
            kept["in"], kept["out"] = inputs[0], output

    layerwise(snn.graph, x, 3 + STEPS, observe=keep, room=1 << 30)
    for first, last in ((0, 3), (3, 3 + STEPS)):
        wanted = nn.functional.max_pool2d(kept["in"][first:last].sum(0), 4)
        torch.testing.assert_close(kept["out"][first:last].sum(0), wanted, rtol=0, atol=1e-12)


# ---- QCFS ----------------------------------------------------------------------------------------------------


def _trained(levels: int, pool: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), QCFS(levels, 0.7), nn.Conv2d(8, 8, 3, padding=1),
        QCFS(levels, 0.4), pool, nn.Conv2d(8, 8, 3), QCFS(levels, 0.5), nn.Flatten(), nn.Linear(32, 12),
        QCFS(levels, 0.3), nn.Linear(12, 5),
    ).double()  # fmt: skip
    model(images(20))
    return model.eval()


@pytest.mark.parametrize("calibrate", [(), (DistributionAware(batches=3),)])
@pytest.mark.parametrize("pool", [nn.AvgPool2d(2), nn.MaxPool2d(2)])
@pytest.mark.parametrize("levels", [1, 4, 6])
def test_parallel_neurons_with_as_many_steps_as_levels_are_the_qcfs_network(
    levels: int, pool: nn.Module, calibrate: tuple
) -> None:
    model, x = _trained(levels, pool), images(20)
    snn = ftbc.convert(model, x, levels, ftbc.recipe("parallel", calibrate=calibrate))
    wanted = model(x).detach()
    assert wanted.std() > 0.01
    torch.testing.assert_close(snn(x)[-1], wanted, rtol=0, atol=1e-9)
    assert all(row.error < 1e-12 for row in snn.layers())


@pytest.mark.parametrize("name", ["srp", "cos"])
def test_extra_steps_bring_a_trained_network_nearer_to_itself(name: str) -> None:
    model, x = _trained(4, nn.AvgPool2d(2)), images(40)
    with_extra, without = (
        [row.error for row in ftbc.convert(model, x, 4, method).layers()] for method in (name, "qcfs")
    )
    assert sum(with_extra) < 0.9 * sum(without)
    if name == "cos":  # off by one spike at most, and these are corrected
        assert max(with_extra) < 1e-9


def test_recipes_for_trained_networks_refuse_plain_ones(refused: Refused) -> None:
    for name in ("srp", "cos", "parallel"):
        assert isinstance(ftbc.recipe(name).threshold, Trained)
        refused(RecipeError, "plain ReLU", ftbc.convert, NETWORKS["plain"](), images(), 2, name)
