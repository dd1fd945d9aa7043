"""Means between parallel neurons against all steps of every layer, and where they must not be used."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.errors import InputError
from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Grid
from ftbc.graph.precision import synapses_in_bfloat16
from ftbc.initial import Half
from ftbc.neuron import IntegrateFire, Kind, Parallel, ParallelFire, Plain, SpikingMaxPool
from ftbc.simulate import layerwise
from ftbc.simulate.prepared import Prepared
from ftbc.simulate.sums import needs
from ftbc.threshold import MeanSquare
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS, settled

module = importlib.import_module("ftbc.simulate.layerwise")
STEPS = (1, 2, 8)


class _Both(nn.Module):
    """The first neurons are read by other neurons, through a pool, and by the output, beside the image itself."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.conv = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.skip, self.last = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 2, stride=2)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.stem(F.max_pool2d(x, 3, 1, 1)))
        z = F.relu(self.conv(F.pad(F.max_pool2d(y, 2), (1, 0, 1, 0), value=0.3))[..., 1:, 1:])
        return self.head((z + self.last(y + self.skip(x))).mean((2, 3)))


MODELS: dict[str, Callable[[], nn.Module]] = {**NETWORKS, "both": lambda: settled(_Both())}


def images(*leading: int) -> Tensor:
    return torch.rand(*leading, *INPUT_SHAPE, dtype=torch.float64)


def converted(name: str, steps: int, kind: Kind | None = None, pool: str = "spiking") -> ftbc.SpikingNetwork:
    """Biases that differ from step to step, and spikes of another size than the threshold."""
    method = ftbc.Recipe(threshold=MeanSquare(), initial=Half(), neuron=kind or Parallel(), pool=pool)
    snn = ftbc.convert(MODELS[name](), images(16), steps, method)
    for node in snn.graph.of_type(ParallelFire):
        neurons = node.module
        assert isinstance(neurons, ParallelFire)
        neurons.bias += 0.2 * neurons.threshold * torch.randn_like(neurons.bias)
        neurons.size = neurons.threshold * (0.8 + 0.4 * torch.rand_like(neurons.threshold))
    return snn


def at_all_steps(graph: Graph, x: Tensor, steps: int, time_first: bool = False) -> Tensor:
    """Every layer at every step: what is watched takes no short cut."""
    return layerwise(graph, x, steps, time_first, observe=lambda *_: None)


def items(graph: Graph, run: Callable[[], Tensor]) -> dict[str, int]:
    """How many images and steps each layer of synapses is given, by name."""
    seen: dict[str, int] = {}
    hooks = []
    for node in graph.of_type(nn.Conv2d, nn.Linear):

        def count(_: nn.Module, inputs: tuple[Tensor, ...], name: str = node.name) -> None:
            seen[name] = seen.get(name, 0) + len(inputs[0])

        hooks.append(node.module.register_forward_pre_hook(count))
    run()
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("engine", ["layerwise", "event"])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", MODELS)
def test_means_give_what_all_steps_give(name: str, steps: int, engine: str) -> None:
    if engine == "event":
        pytest.importorskip("numba")
    snn, x = converted(name, steps), images(7)
    assert needs(snn.graph, False) is not None
    wanted = snn(x, observe=lambda *_: None)
    assert wanted.std() > 0.01
    torch.testing.assert_close(snn(x, engine=engine), wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", MODELS)
def test_an_input_may_change_over_time_and_end_early(name: str, steps: int) -> None:
    snn = converted(name, 8)
    x = images(steps, 7) * torch.linspace(0.2, 2, steps, dtype=torch.float64).view(-1, 1, 1, 1, 1)
    assert needs(snn.graph, True) is not None
    wanted = at_all_steps(snn.graph, x, steps, time_first=True)
    torch.testing.assert_close(layerwise(snn.graph, x, steps, True), wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("time_first", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_portions_and_threads_change_nothing(
    name: str, time_first: bool, two_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WORTH_A_THREAD", 1)
    snn, x = converted(name, 3), images(*[3, 13] if time_first else [13])
    wanted = at_all_steps(snn.graph, x, 3, time_first)
    with torch.no_grad():
        for room in (1, 1 << 14, None):
            found = layerwise(snn.graph, x, 3, time_first, room=room)
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("room", [1 << 16, 1 << 30])
def test_prepared_convolutions_in_single_precision(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written over is not read again; a count that rounds otherwise touches few images."""
    snn, x = converted("residual", 4), images(80)
    wanted = at_all_steps(snn.graph, x, 4)
    ready, run = [], Prepared.forward
    monkeypatch.setattr(Prepared, "forward", lambda self, *inputs: ready.append(len(inputs)) or run(self, *inputs))
    with torch.no_grad():
        found = layerwise(snn.float().graph, x.float(), 4, room=room)
    assert 2 in ready, "a convolution that adds to what another gave"
    off = (found - wanted).abs().amax((0, 2))
    assert float((off > 1e-4).double().mean()) <= 0.05


def test_between_neurons_a_layer_sees_each_image_once() -> None:
    for steps in STEPS:
        snn, x = converted("residual", steps), images(4)
        layers = items(snn.graph, lambda snn=snn, x=x: snn(x))
        assert layers.pop("head") == 4 * steps  # behind the last neurons
        assert set(layers) == {"stem", "conv1", "conv2", "conv3", "down"} and set(layers.values()) == {4}
        watched = items(snn.graph, lambda snn=snn, x=x: snn(x, observe=lambda *_: None))
        assert watched["conv1"] == 4 * steps


def test_what_neurons_and_the_output_read_is_there_in_both_forms() -> None:
    snn = converted("both", 4)
    needed = needs(snn.graph, False)
    assert needed is not None
    first, second = (node.name for node in snn.graph.of_type(ParallelFire))
    assert {first, second} <= needed.trains and first in needed.means and second not in needed.means
    layers = items(snn.graph, lambda: snn(images(3)))
    assert layers == {"stem": 3, "skip": 3, "conv": 3, "last": 12, "head": 12}


def test_the_memory_of_trains_is_reckoned_with() -> None:
    graph = converted("residual", 8).graph
    needed = needs(graph, False)
    assert needed is not None
    widest, last = 4 * 6 * 8 * 8, 4 * 8 * 4 * 4
    assert needed.images(graph, 1, 10 * widest) == 10
    assert needed.images(graph, 64, 10 * 64 * last) == 10
    assert needed.images(graph, 64, 1) == 1


@pytest.mark.parametrize("kind", [ftbc.neuron.Signed(), Plain()])
def test_other_kinds_of_neurons_run_at_all_steps(kind: Kind) -> None:
    assert needs(converted("plain", 2, kind).graph, False) is None


def test_one_neuron_of_another_kind_is_one_too_many() -> None:
    snn, x = converted("residual", 4), images(5)
    node = snn.graph.of_type(ParallelFire)[1]
    neurons = node.module
    assert isinstance(neurons, ParallelFire)
    plain = IntegrateFire(4, neurons.rank).set(neurons.threshold, neurons.initial, neurons.bias)
    snn.graph.replace_module(node.name, plain)
    assert needs(snn.graph, False) is None
    torch.testing.assert_close(snn(x), snn(x, observe=lambda *_: None), rtol=0, atol=1e-9)


def test_the_maximum_of_single_steps_is_not_that_of_the_mean() -> None:
    """Max-pools in front of neurons take the largest current of each step, spiking ones that of the sum."""
    before, spiking, x = converted("depthwise", 4, pool="before"), converted("both", 4), images(5)
    assert before.graph.of_type(nn.MaxPool2d) and needs(before.graph, False) is None
    assert len(spiking.graph.of_type(SpikingMaxPool)) == 2 and needs(spiking.graph, False) is not None
    torch.testing.assert_close(before(x), before(x, observe=lambda *_: None), rtol=0, atol=1e-9)


def test_rounding_is_for_what_does_not_change() -> None:
    for place, expected in (("stem", True), ("conv1", False)):
        graph = converted("residual", 4).graph
        name = graph.insert_after(place, Node("grid", Grid(0.25), (place,), graph.shape(place)))
        graph.rewire(place, name, [node for node in graph.users(place) if node.name != name])
        assert (needs(graph, False) is not None) == expected


def test_bfloat16_rounds_each_step() -> None:
    graph = converted("plain", 2).graph
    with synapses_in_bfloat16():
        assert needs(graph, False) is None
    assert needs(graph, False) is not None


def test_no_state_is_left_and_too_many_steps_are_refused(refused: Refused) -> None:
    snn, x = converted("depthwise", 3), images(4)
    assert torch.equal(snn(x), snn(x))
    assert all(node.module.t == 0 for node in snn.graph.of_type(ParallelFire))  # type: ignore[union-attr]
    (pool,) = snn.graph.of_type(SpikingMaxPool)
    assert pool.module.total is None
    refused(InputError, "converted for 3 steps", layerwise, snn.graph, x, 4)
