"""The search by correlation: J as its formula says, never rising, alike in both forms."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import ftbc
from ftbc.calibrate import Calibration, CorrelationSearch, QuantileBias, calibrate, descent
from ftbc.calibrate.search import STEPS, descend_plainly, moves, unexplained
from ftbc.errors import RecipeError
from ftbc.neuron import IntegrateFire
from ftbc.neuron.functional import integrate_and_fire
from ftbc.simulate import layerwise
from tests.calibrate.walk.test_plan import graphs
from tests.networks import INPUT_SHAPE, NETWORKS

needs_numba = pytest.mark.skipif(not descent.usable(torch.zeros(1)), reason="needs the extra 'fast'")


def _problem(steps: int, channels: int = 5, places: int = 400, dtype=torch.float64) -> tuple[Tensor, ...]:
    noise = torch.Generator().manual_seed(steps)
    z = torch.randn(channels, places, generator=noise, dtype=dtype)
    x = z + 0.4 * torch.randn(steps, channels, places, generator=noise, dtype=dtype)
    theta = torch.rand(channels, generator=noise, dtype=dtype) + 0.5
    b = 0.3 * torch.randn(steps, channels, generator=noise, dtype=dtype)
    return x, z.clamp(min=0), theta, b


def _weights(b: Tensor, early: float = 0.5) -> Tensor:
    """By how much each step counts, ``[T]``."""
    return CorrelationSearch(early=early).weights(len(b))


def _j(x: Tensor, a: Tensor, theta: Tensor, b: Tensor, early: float = 0.5) -> Tensor:
    return _weights(b, early) @ unexplained(x, a, theta, b)


def _naive(x: Tensor, a: Tensor, theta: float, b: list[float], early: float) -> float:
    """J of one channel with plain Python numbers."""
    steps, places = x.shape
    counts = []
    for p in range(places):
        v, n = 0.0, 0
        for t in range(steps):
            v += float(x[t, p]) + b[t]
            if v >= theta:
                v, n = v - theta, n + 1
            counts.append((t, p, n))
    mean_a = sum(a.tolist()) / places
    var_a = sum((value - mean_a) ** 2 for value in a.tolist()) / places
    total = 0.0
    for t in range(steps):
        n = [count for step, _, count in counts if step == t]
        mean = sum(n) / places
        var = sum((count - mean) ** 2 for count in n) / places
        cov = sum((count - mean) * value for count, value in zip(n, a.tolist(), strict=True)) / places
        e = var_a - max(cov, 0) ** 2 / var if var else var_a
        total += e if t == steps - 1 else early / (steps - 1) * e
    return total / var_a


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("early", [0.0, 0.5])
def test_j_is_its_formula(steps: int, early: float) -> None:
    x, a, theta, b = _problem(steps, places=40)
    found = _j(x, a, theta, b, early)
    wanted = [_naive(x[:, c], a[c], float(theta[c]), b[:, c].tolist(), early) for c in range(5)]
    assert found.tolist() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_j_never_rises_and_ends_where_no_move_helps(steps: int) -> None:
    x, a, theta, b = _problem(steps)
    before = _j(x, a, theta, b)
    new_theta, new_b = descend_plainly(x, a, theta, b, _weights(b))
    after = _j(x, a, new_theta, new_b)
    assert bool((after <= before).all()) and float((before - after).min()) > 0.01
    again = _j(x, a, *descend_plainly(x, a, new_theta, new_b, _weights(b)))
    assert bool((again <= after).all())


@needs_numba
@pytest.mark.parametrize("steps", [1, 2, 4, 9])
@pytest.mark.parametrize("early", [0.0, 0.5])
def test_the_compiled_descent_takes_the_same_moves(steps: int, early: float) -> None:
    x, a, theta, b = _problem(steps)
    weights = _weights(b, early)
    plain, fast = descend_plainly(x, a, theta, b, weights), descent.compiled(x, a, theta, b, weights)
    torch.testing.assert_close(fast[0], plain[0], rtol=1e-12, atol=0)
    torch.testing.assert_close(fast[1], plain[1], rtol=1e-12, atol=1e-12)
    single = descent.compiled(x.float(), a.float(), theta.float(), b.float(), weights)
    assert single[0].dtype == torch.float32
    reached = _j(x, a, single[0].double(), single[1].double(), early)
    torch.testing.assert_close(reached, _j(x, a, *plain, early), rtol=0.02, atol=0.01)


def test_one_step_finds_the_best_threshold_of_all() -> None:
    """With one step a neuron is a step function of its current: brute force over all places of the step."""
    z = torch.linspace(-1, 2, 601, dtype=torch.float64)
    a = z.clamp(min=0)
    found = []
    for place in z.tolist():
        n = (z >= place).double()
        cov, var = ((n - n.mean()) * a).mean(), n.var(unbiased=False)
        found.append(float(1 - cov**2 / var / a.var(unbiased=False)) if var > 0 else 1.0)
    x, ones = z.view(1, 1, -1), torch.ones(1).double()
    theta, b = descend_plainly(x, a.unsqueeze(0), ones, 0.3 * ones.unsqueeze(0), torch.ones(1).double())
    assert float(unexplained(x, a.unsqueeze(0), theta, b)) == pytest.approx(min(found), abs=2e-3)


def test_a_channel_that_never_varies_stays_as_it_is() -> None:
    x, a, theta, b = _problem(3)
    a[1] = 0.25
    for descend in (descend_plainly, descent.compiled) if descent.usable(x) else (descend_plainly,):
        new_theta, new_b = descend(x, a, theta, b, _weights(b))
        assert new_theta[1] == theta[1] and torch.equal(new_b[:, 1], b[:, 1])
        assert not torch.equal(new_b, b)


def test_moves_come_in_pairs_that_undo_each_other() -> None:
    theta, b = torch.rand(3).double() + 0.5, torch.randn(4, 3).double()
    shifts = [move for size in STEPS for move in moves(4, size) if move.stretch == 1]
    for first, second in zip(shifts[::2], shifts[1::2], strict=True):
        torch.testing.assert_close(second.apply(*first.apply(theta, b))[1], b)
    assert len(list(moves(4, 1.0))) == 4 * 4 - 2 + 6


def test_a_threshold_for_each_step_is_a_pair_of_biases_that_the_search_moves_already() -> None:
    """Fired at theta + h[t], reset by theta, step by step; and by biases -h[t] + h[t-1] with the one threshold."""
    generator = torch.Generator().manual_seed(2)
    x, h = (torch.rand(5, 40, generator=generator, dtype=torch.float64) for _ in range(2))
    theta = 0.8
    h = (h - 0.5)[:, :1]
    v, wanted = torch.full((40,), 0.3, dtype=torch.float64), []
    for t in range(5):
        v = v + x[t]
        fired = v >= theta + h[t]
        wanted.append(theta * fired)
        v = v - theta * fired
    bias = torch.cat([-h[:1], h[:-1] - h[1:]])
    found, _ = integrate_and_fire(x, torch.tensor(theta), torch.full((40,), 0.3, dtype=torch.float64), bias)
    assert torch.equal(found != 0, torch.stack(wanted) != 0)
    assert any(move.shift == (0.0, 0.25, -0.25, 0.0, 0.0) and move.stretch == 1 for move in moves(5, 0.25))


def test_a_network_that_is_read_at_any_time_counts_all_steps_from_the_first_on() -> None:
    search = CorrelationSearch(early=0.3, first=2)
    assert search.weights(4).tolist() == pytest.approx([0.3, 1, (2 / 3) ** 3, (2 / 4) ** 3])
    assert search.weights(1).tolist() == [1]
    assert CorrelationSearch(early=0.3).weights(4).tolist() == pytest.approx([0.1, 0.1, 0.1, 1])
    x, a, theta, b = _problem(8)
    late, early = (descend_plainly(x, a, theta, b, CorrelationSearch(first=f).weights(8)) for f in (0, 2))
    assert float((unexplained(x, a, *early)[1] / unexplained(x, a, *late)[1]).mean()) < 0.95


@pytest.mark.parametrize("steps", [16, 17])
def test_best_searches_networks_of_up_to_sixteen_steps(steps: int) -> None:
    """One of more steps is, bit for bit, that of the recipe without the search."""
    images = torch.rand(24, *INPUT_SHAPE, dtype=torch.float64)
    best = ftbc.recipe("best")
    others = tuple(piece for piece in best.calibrate if not isinstance(piece, CorrelationSearch))
    outputs = []
    for pieces in (best.calibrate, others):
        torch.manual_seed(3)
        outputs.append(ftbc.convert(NETWORKS["plain"](), images, steps, replace(best, calibrate=pieces))(images))
    assert torch.equal(*outputs) is (steps > 16)


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"early": -0.1}, {"first": -1}, {"most_steps": -1}, {"rows": 0}):
        with pytest.raises(RecipeError, match="CorrelationSearch"):
            CorrelationSearch(**wrong)


@pytest.mark.parametrize("name", ["plain", "residual"])
def test_a_network_read_at_any_step_keeps_the_means_of_its_last_neurons(name: str) -> None:
    """Nothing behind them could make up for means that change with t: each step has that of the activation."""
    torch.manual_seed(4)
    images = torch.rand(64, *INPUT_SHAPE, dtype=torch.float64)
    found = {}
    for first in (0, 2):
        ann, snn = graphs(NETWORKS[name](), images)
        calibration = Calibration(ann, snn, 3, images, torch.Generator().manual_seed(0))
        calibrate((QuantileBias(), CorrelationSearch(first=first)), calibration)
        seen = {}

        def keep(node, inputs, spikes, start, seen=seen) -> None:
            if isinstance(node.module, IntegrateFire):
                seen[node.name] = spikes / node.module.spread(node.module.threshold)

        layerwise(snn, images, 3, observe=keep)
        found[first] = [rates.mean([1, *range(3, rates.ndim)]) for rates in seen.values()]

    def unevenness(rates: Tensor) -> float:
        return float((rates - rates.mean(0)).abs().mean())

    assert unevenness(found[2][-1]) < 0.02 < unevenness(found[0][-1])
    assert unevenness(found[2][0]) > 0.02  # others are searched for
