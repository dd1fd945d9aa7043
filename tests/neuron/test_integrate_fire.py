"""The integrate-and-fire neuron against its equations written out, number by number."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from ftbc.errors import InputError
from ftbc.graph.spec import clone
from ftbc.neuron import IntegrateFire, fire, integrate_and_fire

STEPS, BATCH = 6, 3
SHAPES = {"one": (5,), "two": (4, 3), "image": (4, 3, 2)}


def naive(x: Tensor, theta: Tensor, v0: Tensor, b: Tensor) -> Tensor:
    """v += x + b; a spike of size theta where v >= theta; v -= theta there. All constants for each neuron."""
    spikes = torch.zeros_like(x)
    for n in range(x.shape[1]):
        for place in itertools.product(*map(range, x.shape[2:])):
            v = float(v0[place])
            for t in range(len(x)):
                v = v + float(x[(t, n, *place)])
                v = v + float(b[(t, *place)])
                if v >= float(theta[place]):
                    spikes[(t, n, *place)] = theta[place]
                    v = v - float(theta[place])
    return spikes


def constants(grain: str, shape: tuple[int, ...], steps: int = STEPS) -> tuple[Tensor, Tensor, Tensor]:
    size = {"layer": (1,), "channel": shape[:1], "neuron": shape}[grain]
    theta = torch.rand(size, dtype=torch.float64) + 0.3
    return theta, torch.rand(size, dtype=torch.float64), 0.4 * torch.randn((steps, *size), dtype=torch.float64)


def spread(constant: Tensor, grain: str, shape: tuple[int, ...]) -> Tensor:
    """A constant written out for each neuron of a layer."""
    if grain == "channel":
        constant = constant.view(*constant.shape, *[1] * (len(shape) - 1))
    if grain == "layer":
        constant = constant.view(*constant.shape[:-1], *[1] * len(shape))
    return constant.expand(*constant.shape[: constant.ndim - len(shape)], *shape)


@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
@pytest.mark.parametrize("name", SHAPES)
def test_run_and_steps_are_the_equations(name: str, grain: str) -> None:
    torch.manual_seed(0)
    shape = SHAPES[name]
    theta, v0, b = constants(grain, shape)
    neuron = IntegrateFire(STEPS, len(shape)).set(theta, v0, b)
    x = torch.randn(STEPS, BATCH, *shape, dtype=torch.float64)
    wanted = naive(x, *(spread(constant, grain, shape) for constant in (theta, v0, b)))
    assert 0.05 < float((wanted > 0).double().mean()) < 0.95
    assert torch.equal(neuron.run(x), wanted)
    for cuts in ([2, 4], [1, 3, 2]):
        neuron.reset()
        assert torch.equal(torch.cat([neuron.run(part) for part in x.split(cuts)]), wanted)
    neuron.reset()
    assert torch.equal(torch.stack([neuron(current) for current in x]), wanted)


def test_constants_are_copied_and_zero_bias_has_a_row_for_each_step() -> None:
    theta = torch.ones(4)
    neuron = IntegrateFire(STEPS, 3).set(theta, torch.zeros(1))
    theta.zero_()
    assert neuron.threshold.tolist() == [1.0] * 4 and neuron.initial.shape == (4,)
    assert neuron.bias.shape == (STEPS, 4)
    neuron.bias[0] += 1
    assert neuron.bias[1:].abs().sum() == 0, "rows of the bias share memory"


def test_fewer_steps_use_the_first_biases() -> None:
    torch.manual_seed(0)
    neuron = IntegrateFire(STEPS, 1).set(*constants("channel", (5,)))
    x = torch.randn(STEPS, 2, 5, dtype=torch.float64)
    few = neuron.run(x[:2])
    neuron.reset()
    assert torch.equal(few, neuron.run(x)[:2])


def test_one_step_too_many_is_an_error() -> None:
    neuron = IntegrateFire(2, 1).set(torch.ones(1), torch.zeros(1))
    current = torch.ones(1, 1)
    neuron(current), neuron(current)
    with pytest.raises(InputError, match="step 3 of a network converted for 2 steps"):
        neuron(current)
    with pytest.raises(InputError):
        neuron.run(torch.ones(1, 1, 1))
    neuron.reset()
    neuron(current)


def test_steps_do_not_change_what_they_are_given_or_gave() -> None:
    torch.manual_seed(0)
    neuron = IntegrateFire(3, 1).set(torch.ones(2), torch.full((2,), 0.5))
    x = torch.rand(4, 2)
    kept = x.clone()
    outputs = [neuron(x) for _ in range(2)]
    first = outputs[0].clone()
    neuron(x)
    assert torch.equal(x, kept) and torch.equal(outputs[0], first)
    assert neuron.initial.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
@pytest.mark.parametrize("bias_grain", ["layer", "channel", "neuron"])
def test_mean_output_is_the_mean_of_the_next_spikes_and_changes_nothing(grain: str, bias_grain: str) -> None:
    shape = (4, 3, 2)
    threshold, initial, _ = constants(grain, shape, 3)
    bias = {"layer": (3, 1), "channel": (3, 4), "neuron": (3, *shape)}[bias_grain]
    neuron = IntegrateFire(3, 3).set(
        threshold, initial, torch.linspace(-0.2, 0.3, torch.Size(bias).numel()).view(bias).double()
    )
    for layout in (torch.contiguous_format, torch.channels_last):
        neuron.reset()
        for t in range(3):
            x = torch.rand(5, *shape, dtype=torch.float64).contiguous(memory_format=layout)
            before = None if neuron.v is None else neuron.v.clone()
            mean = neuron.mean_output(x)
            assert neuron.t == t and (neuron.v is None if before is None else torch.equal(neuron.v, before))
            spikes = neuron(x)
            expected = {
                "layer": spikes.mean().reshape(1),
                "channel": spikes.mean((0, 2, 3)),
                "neuron": spikes.mean(0),
            }[bias_grain]
            assert spikes.any()
            torch.testing.assert_close(mean, expected, rtol=1e-12, atol=0)


def test_state_is_no_part_of_what_is_saved() -> None:
    neuron = IntegrateFire(3, 3).set(*constants("channel", (4, 2, 2), 3))
    neuron(torch.rand(1, 4, 2, 2, dtype=torch.float64))
    assert set(neuron.state_dict()) == {"threshold", "initial", "bias"}
    fresh = clone(neuron)
    assert fresh.v is None and fresh.t == 0
    x = torch.rand(3, 2, 4, 2, 2, dtype=torch.float64)
    neuron.reset()
    assert torch.equal(copy.deepcopy(neuron).run(x), fresh.run(x))


@settings(max_examples=50, deadline=None)
@given(
    theta=some.floats(0.1, 4.0),
    share=some.floats(0.0, 1.0),
    v0=some.floats(0.0, 0.99),
    steps=some.integers(1, 32),
)
def test_a_constant_current_is_kept_up_to_one_spike(theta: float, share: float, v0: float, steps: int) -> None:
    """With 0 <= x <= theta and 0 <= v0 < theta the membrane stays in [0, theta): the sum is known to one spike."""
    x = torch.full((steps, 1, 1), share * theta, dtype=torch.float64)
    theta_, v0_ = torch.tensor([theta], dtype=torch.float64), torch.tensor([v0 * theta], dtype=torch.float64)
    s, v = integrate_and_fire(x, theta_, v0_.expand(1, 1), torch.zeros(steps, 1, 1, dtype=torch.float64))
    torch.testing.assert_close(s.sum(0) + v, x.sum(0) + v0_)  # charge is neither made nor lost
    assert bool(((s == 0) | (s == theta_)).all())
    assert -1e-9 <= float(v) <= theta * (1 + 1e-9)


def test_fire_at_the_threshold_and_below_zero() -> None:
    s, v = fire(torch.tensor([-3.0, 0.999, 1.0, 3.5]), torch.tensor(1.0))
    assert s.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert torch.equal(v, torch.tensor([-3.0, 0.999, 0.0, 2.5]))


def test_chosen_images_go_on_as_if_alone() -> None:
    x = torch.rand(6, 5, 3, 4, 4, dtype=torch.float64)
    neuron = IntegrateFire(6, 3).set(torch.rand(3).double() + 0.2, torch.rand(3).double(), torch.rand(6, 3).double())
    wanted = neuron.run(x)
    neuron.reset()
    neuron.select(torch.tensor([0]))  # at rest there is nothing to forget
    neuron.run(x[:2])
    chosen = torch.tensor([3, 0])
    neuron.select(chosen)
    assert torch.equal(neuron.run(x[2:, chosen]), wanted[2:, chosen]) and neuron.v is not None and len(neuron.v) == 2
