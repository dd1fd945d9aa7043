"""The engine is made once, and anew when any number of the network has changed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.graph.ops import Affine
from ftbc.neuron import IntegrateFire
from ftbc.simulate.event.fingerprint import fingerprint

from .networks import STRUCTURES
from .support import assert_equal_runs, engine_of, images, rounded, spiking

CASE = STRUCTURES["identity shortcut"]
LAST = "relu_1"


def network() -> tuple[ftbc.SpikingNetwork, Tensor]:
    x = images(CASE.shape)
    return spiking(CASE.make(), x), x


def _weight(snn: ftbc.SpikingNetwork) -> Tensor:
    weight = snn.graph["b"].module.weight
    assert isinstance(weight, Tensor)
    return weight


def _replace(snn: ftbc.SpikingNetwork) -> None:
    snn.graph["b"].module.weight = nn.Parameter(_weight(snn) * 2, requires_grad=False)


def _replace_twice(snn: ftbc.SpikingNetwork) -> None:
    """The second new tensor may lie where the first one lay, with the same count of changes."""
    wanted = _weight(snn).detach().clone() * 2
    address = _weight(snn).data_ptr()
    for _ in range(50):
        snn.graph["b"].module.weight = nn.Parameter(wanted.clone(), requires_grad=False)
        if _weight(snn).data_ptr() == address:
            break


def _swap(snn: ftbc.SpikingNetwork) -> None:
    weight = _weight(snn).data
    weight[[0, 1]] = weight[[1, 0]]


def _load(snn: ftbc.SpikingNetwork) -> None:
    snn.load_state_dict({name: value * 1.5 for name, value in snn.state_dict().items()})


def _neuron(snn: ftbc.SpikingNetwork) -> IntegrateFire:
    neuron = snn.graph[LAST].module
    assert isinstance(neuron, IntegrateFire)
    return neuron


CHANGES: dict[str, Callable[[ftbc.SpikingNetwork], object]] = {
    "in place": lambda snn: _weight(snn).mul_(2),
    "through data": lambda snn: _weight(snn).data.mul_(2),
    "through numpy": lambda snn: _weight(snn).numpy().__imul__(2),
    "one number": lambda snn: _weight(snn).data.view(-1)[-1:].add_(0.5),
    "two rows swapped": _swap,
    "signs": lambda snn: _weight(snn).data.neg_(),
    "a new parameter": _replace,
    "new parameters": _replace_twice,
    "load_state_dict": _load,
    "bias of a layer": lambda snn: snn.graph["b"].module.bias.data.add_(0.3),
    "temporal bias": lambda snn: _neuron(snn).bias.add_(0.3),
    "new temporal bias": lambda snn: setattr(_neuron(snn), "bias", _neuron(snn).bias + 0.3),
    "initial potential": lambda snn: _neuron(snn).initial.add_(0.5),
    "threshold": lambda snn: _neuron(snn).threshold.mul_(0.5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@torch.no_grad()
def test_changes_are_seen(change: Callable[[ftbc.SpikingNetwork], object]) -> None:
    snn, x = network()
    before = snn(x, engine="event")
    engine = engine_of(snn)
    change(snn)
    found = snn(x, engine="event")
    assert engine_of(snn) is not engine and not torch.equal(found, before)
    assert_equal_runs(snn, x, gap=1e-12)


@torch.no_grad()
def test_without_a_change_it_stays() -> None:
    snn, x = network()
    over_time = x.expand(5, *x.shape)
    snn(x, engine="event")
    snn(over_time, time_first=True, engine="event")
    once, over = engine_of(snn), engine_of(snn, time_first=True)
    snn(x)
    snn(x, engine="stepwise")
    snn.step(x)
    snn(images(CASE.shape, 2), engine="event")
    snn(over_time, time_first=True, engine="event")
    assert once is not over and engine_of(snn) is once and engine_of(snn, time_first=True) is over


@torch.no_grad()
def test_inference_tensors_which_torch_does_not_count() -> None:
    with torch.inference_mode():
        snn, x = network()
        before = snn(x, engine="event")
        _weight(snn).mul_(2)
        assert not torch.equal(snn(x, engine="event"), before)
        assert_equal_runs(snn, x, gap=1e-12)


@torch.no_grad()
def test_constants_of_operations_count() -> None:
    x = images((3, 6, 6))
    snn, x = rounded(spiking(STRUCTURES["identity shortcut"].make(), x), x)
    snn(x, engine="event")
    affine = snn.graph.of_type(Affine)[0].module
    affine.scale = affine.scale * 2
    assert_equal_runs(snn, x)


def test_copies_do_not_carry_it() -> None:
    snn, x = network()
    wanted = snn(x, engine="event")
    assert snn._events
    for twin in (copy.deepcopy(snn), pickle.loads(pickle.dumps(snn))):
        assert not twin._events
        assert torch.equal(twin(x, engine="event"), wanted)
    assert not snn.with_unit_thresholds()._events


def test_saving_does_not_carry_it(tmp_path: Path) -> None:
    snn, x = network()
    snn.save(tmp_path / "before.snn")
    wanted = snn(x, engine="event")
    snn.save(tmp_path / "after.snn")
    assert (tmp_path / "before.snn").read_bytes() == (tmp_path / "after.snn").read_bytes()
    assert not any("event" in name for name in snn.state_dict())
    assert torch.equal(ftbc.load(tmp_path / "after.snn")(x, engine="event"), wanted)


def test_other_precisions() -> None:
    snn, x = network()
    snn(x, engine="event")
    assert snn.float()(x.float(), engine="event").dtype == torch.float32
    assert torch.allclose(snn(x.float(), engine="event"), snn(x.float()), atol=1e-5)
    assert_equal_runs(snn.double(), x, gap=1e-12)


def test_a_change_while_running_does_not_reach_the_copy() -> None:
    """The engine computes with numbers of its own: what changes afterwards belongs to the next run."""
    snn, x = network()
    snn(x, engine="event")
    with torch.no_grad():
        engine = engine_of(snn)
        wanted = engine.run(x, 5)
        for parameter in snn.parameters():
            parameter.zero_()
        assert torch.equal(engine.run(x, 5), wanted) and not engine.is_of(snn.graph)


def test_the_sum_is_over_every_number() -> None:
    snn, _ = network()
    tensors = snn.graph.tensors()
    saved = snn.graph.state_dict().values()
    assert sorted(tensor.data_ptr() for tensor in tensors) == sorted(tensor.data_ptr() for tensor in saved)
    for tensor in tensors:
        for index in {0, tensor.numel() // 2, tensor.numel() - 1}:
            before = fingerprint(snn.graph)
            tensor.data.view(-1)[index] += 1.0
            assert fingerprint(snn.graph) != before
