"""The walk: layers see what a run of the network would show them, each is run once, and memory is let go."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc import FTBC
from ftbc.calibrate import Calibration, QuantileBias, calibrate
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.calibrate.walk.flow import Flow
from ftbc.calibrate.walk.layer import at_neurons
from ftbc.calibrate.walk.rows import at_positions
from ftbc.calibrate.walk.targets import Targets, Wanted
from ftbc.graph.ops import Activation
from ftbc.neuron import IntegrateFire
from ftbc.simulate import layerwise
from tests.calibrate.walk.test_plan import graphs
from tests.networks import INPUT_SHAPE, NETWORKS

STEPS = 3


class _Bottleneck(nn.Module):
    """Values without neurons that several read (as MobileNet v2 has), a max-pool, two activations of one value."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.narrow = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 3, 1)
        self.wide, self.deep, self.back = (
            nn.Conv2d(3, 8, 1),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.Conv2d(8, 3, 1),
        )
        self.head = nn.Linear(6 * 16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.narrow(F.relu(self.stem(x)))
        x = x + self.back(F.relu6(self.deep(F.relu6(self.wide(x)))))
        x = torch.cat([F.relu(x), F.relu(x - 0.1)], 1)
        return self.head(F.max_pool2d(x, 2).flatten(1))


class _Tokens(nn.Module):
    """Linear layers on items of two dimensions, whose channels lie last."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 12), nn.Linear(12, 6), nn.Linear(6 * 24, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.c(F.relu(self.b(F.relu(self.a(x.flatten(1, 2))))).flatten(1))


OWN = {**NETWORKS, "bottleneck": lambda: _Bottleneck().double().eval(), "tokens": lambda: _Tokens().double().eval()}


def pictures(count: int, seed: int = 0) -> Tensor:
    """Smooth images, as networks see them: neighbouring pixels are alike."""
    coarse = torch.rand(count, 3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return F.interpolate(coarse, INPUT_SHAPE[1:], mode="bilinear") * 2 - 0.5


def lively(network: nn.Module) -> nn.Module:
    """Weights as large as those of trained networks: outputs depend on the image."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.weight.data.mul_(2.5)
    return network


def calibration(name: str, images: int = 10, steps: int = STEPS) -> Calibration:
    torch.manual_seed(8)
    x = torch.rand(images, *INPUT_SHAPE, dtype=torch.float64)
    ann, _ = graphs(OWN[name](), x)
    torch.manual_seed(8)
    x = torch.rand(images, *INPUT_SHAPE, dtype=torch.float64)
    snn = ftbc.convert(OWN[name](), x, steps, "mean-square").graph
    return Calibration(ann, snn, steps, x, torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class _Look(LayerCalibrator):
    """Compares all that a layer shows with a run of the network from the start."""

    rows: int = 10**6

    def at(self, layer: Layer) -> None:
        state, value = layer.calibration, layer.junction.value
        seen: dict[str, Tensor] = {}
        layerwise(state.snn, state.images, STEPS, observe=lambda n, i, v, t: seen.__setitem__(n.name, v), room=1 << 30)
        for part, start in enumerate(layer.flow.starts()):
            images = slice(start, start + len(layer.flow.parts[part]))
            torch.testing.assert_close(layer.flow.over_time(value, part), seen[value][:, images])
            weights = torch.rand(STEPS, images.stop - start, dtype=torch.float64)
            weights = weights / weights.sum(0)
            wanted = torch.einsum("tn,tn...->n...", weights, seen[value][:, images])
            torch.testing.assert_close(layer.flow.mean(value, part, weights), wanted)
        if layer.junction.synapses:
            self._look_at_rows(layer, seen[value])
        if layer.neuron is not None:
            activation = {}
            state.ann(state.images, lambda node, a: activation.__setitem__(node.name, a))
            sample, site = layer.sample(self.rows), layer.junction.site
            at = layer.targets.positions(at_neurons(layer.junction))
            for t in range(STEPS):
                torch.testing.assert_close(sample.x[t].t(), at_positions(seen[value][t], 0, at))
            torch.testing.assert_close(sample.a.t(), at_positions(activation[site], 0, at))
        LOOKED.append(layer.junction)

    def _look_at_rows(self, layer: Layer, value: Tensor) -> None:
        for part, positions in layer.parts():
            few = positions[:, :1]
            weights = torch.full((STEPS,), 1 / STEPS, dtype=torch.float64)
            start = layer.flow.starts()[part]
            wanted = at_positions(value[:, start : start + len(few)].mean(0), layer.junction.dim, few)
            found = layer.rest(part, few, weights)
            for synapse, x in zip(layer.synapses, layer.inputs(part, few, weights), strict=True):
                found = found + synapse.output(x)
            torch.testing.assert_close(found, wanted)


LOOKED: list = []


@pytest.mark.parametrize("name", OWN)
def test_a_layer_shows_what_a_run_of_the_network_gives(name: str) -> None:
    LOOKED.clear()
    state = calibration(name)
    _Look()(state)
    assert len([j for j in LOOKED if j.site is not None]) == len(state.ann.of_type(Activation))


@pytest.mark.parametrize("name", OWN)
def test_after_changes_of_the_layers_before(name: str) -> None:
    """Two methods in one walk: what the first changes, the second and the layers behind see."""
    LOOKED.clear()

    @dataclass(frozen=True)
    class Disturb(LayerCalibrator):
        rows: int = 1

        def at(self, layer: Layer) -> None:
            for synapse in layer.synapses:
                synapse.module.weight.data.mul_(1.1)
            if layer.neuron is not None:
                layer.neuron.threshold.mul_(0.9)
                layer.neuron.bias.add_(0.01)
                layer.amplitude = layer.neuron.threshold * 1.3
            layer.changed()

    calibrate((Disturb(), _Look()), calibration(name))
    assert LOOKED


def test_few_positions_are_read_as_patches_and_many_as_whole_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftbc.calibrate.walk.layer._FEWEST", 1)

    @dataclass(frozen=True)
    class Both(LayerCalibrator):
        rows: int = 200

        def at(self, layer: Layer) -> None:
            if layer.neuron is None:
                return
            few, positions = layer.sample(10 * STEPS), layer.targets.positions(layer.junction.value)
            for image in range(10):
                whole = layer.flow.over_time(layer.junction.value, 0).flatten(3)
                place = int(positions[image, 0])
                torch.testing.assert_close(few.x[:, :, image], whole[:, image, :, place])

    state = calibration("residual")
    assert Flow(state.snn, state.images, STEPS).starts() == [0]
    Both()(state)


def test_neighbours_share_a_walk_and_others_run_between() -> None:
    order: list[str] = []

    @dataclass(frozen=True)
    class Note(LayerCalibrator):
        word: float = 0.0
        rows: int = 1

        def at(self, layer: Layer) -> None:
            order.append(f"{self.word:g}:{layer.junction.value}")

    def other(state: Calibration) -> None:
        order.append("other")

    state = calibration("plain", 4)
    calibrate((Note(1.0), Note(2.0), other, Note(3.0)), state)
    layers = [entry[2:] for entry in order if entry.startswith("3")]
    assert order == [f"{w}:{name}" for name in layers for w in (1, 2)] + ["other"] + [f"3:{name}" for name in layers]


def test_doing_nothing_leaves_the_network_as_it_was() -> None:
    @dataclass(frozen=True)
    class Nothing(LayerCalibrator):
        rows: int = 1

        def at(self, layer: Layer) -> None:
            pass

    for name in OWN:
        state = calibration(name)
        before = layerwise(state.snn, state.images, STEPS)
        Nothing()(state)
        assert torch.equal(layerwise(state.snn, state.images, STEPS), before)


def test_spikes_are_kept_in_bits_and_only_as_long_as_they_are_needed() -> None:
    most: list[int] = []

    @dataclass(frozen=True)
    class Weigh(LayerCalibrator):
        rows: int = 1

        def at(self, layer: Layer) -> None:
            most.append(layer.flow.bytes())

    state = calibration("residual", images=16)
    Weigh()(state)
    # At most the block's input and what lies inside: two maps of 6 x 8 x 8 neurons in 3 bits, on 16 images.
    assert max(most) == 2 * 16 * 6 * 64 * STEPS // 8
    assert most[-1] < max(most)


def test_a_value_is_let_go_as_soon_as_nobody_holds_it() -> None:
    """Not only when Python looks for cycles: values over time take most of the memory of a walk."""
    images = torch.rand(4, *INPUT_SHAPE, dtype=torch.float64)
    _, snn = graphs(NETWORKS["residual"](), images)
    flow = Flow(snn, images, 3)
    first, second = snn.of_type(IntegrateFire)[:2]
    flow.keep(first.name)
    weights = torch.full((3,), 1 / 3).to(images)
    flow.over_time(snn.output, 0)  # neurons at rest have a membrane, which those that never ran have not
    gc.disable()
    try:
        before = _tensors()
        flow.over_time(snn.output, 0)
        flow.mean(second.inputs[0], 0, weights)
        assert _tensors() == before
    finally:
        gc.enable()


def _tensors() -> int:
    """How many tensors there are."""
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def test_targets_are_gathered_in_turns_when_they_would_not_fit() -> None:
    state = calibration("residual")
    sites = list(state.ann.of_type(Activation))
    wanted = {node.name: Wanted(node.name, 0, torch.arange(4).expand(10, 4)) for node in sites}
    runs = []
    forward = state.ann.forward
    state.ann.forward = lambda *a: (runs.append(1), forward(*a))[1]
    parts = state.images.split(4)
    whole, narrow = Targets(state.ann, parts, wanted), Targets(state.ann, parts, wanted, most=500)
    for node in sites:
        for part in range(3):
            assert torch.equal(whole.rows(node.name, part), narrow.rows(node.name, part))
    assert len(runs) == 3 + 3 * 3


def test_thresholds_per_layer_and_neuron_become_those_of_channels() -> None:
    from ftbc.threshold import MeanSquare

    images = torch.rand(12, *INPUT_SHAPE, dtype=torch.float64)
    for grain in ("layer", "neuron"):
        recipe = ftbc.Recipe(threshold=MeanSquare(grain=grain), calibrate=(QuantileBias(),))
        snn = ftbc.convert(NETWORKS["residual"](), images, 3, recipe)
        for node in snn.graph.of_type(IntegrateFire):
            assert node.module.threshold.shape == node.shape[:1]
            assert node.module.bias.shape == (3, node.shape[0])


def test_ftbc_before_a_walk_is_kept() -> None:
    images = torch.rand(12, *INPUT_SHAPE, dtype=torch.float64)
    both = ftbc.Recipe(calibrate=(FTBC(iterations=1), QuantileBias(rows=1)))
    assert ftbc.convert(NETWORKS["plain"](), images, 2, both)(images).shape == (2, 12, 5)


@pytest.mark.parametrize("name", OWN)
def test_neurons_that_see_all_steps_at_once_run_on_sums_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same weights as of trains that are written out, in a walk that never runs anything over time."""
    torch.manual_seed(3)
    network, x = lively(OWN[name]()), pictures(12)
    recipe = ftbc.recipe("parallel-refit", pool="average")
    with monkeypatch.context() as without:
        without.setattr("ftbc.calibrate.walk.flow.needs", lambda graph, input_varies: None)
        slow = ftbc.convert(network, x, 5, recipe)
    monkeypatch.setattr(Flow, "over_time", None)
    fast = ftbc.convert(network, x, 5, recipe)
    before = ftbc.convert(network, x, 5, ftbc.recipe(recipe.name, pool="average", calibrate=()))
    wanted, changed = slow.state_dict(), 0
    for key, value in fast.state_dict().items():
        torch.testing.assert_close(value, wanted[key], rtol=1e-9, atol=1e-12)
        changed += not torch.equal(value, before.state_dict()[key])
    assert changed
