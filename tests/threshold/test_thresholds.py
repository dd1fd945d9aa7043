"""Threshold rules against their formulas written out over the activations themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ftbc.errors import RecipeError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.threshold import Maximum, MeanSquare, MeanSquareUpTo, Percentile
from ftbc.threshold.activations import BINS, gather


class _Channels(nn.Module):
    """ReLU of the input itself, so that a test chooses the activations."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def _gathered(x: torch.Tensor, grain: str, parts: int = 3):
    ann = canonical(trace(_Channels(), x)).graph
    return gather(ann, x.chunk(parts), grain)["relu"]  # type: ignore[arg-type]


def _activations(seed: int = 0) -> torch.Tensor:
    """``[N, 3, 5, 5]`` with channels of different scale and shape: normal, exponential, uniform."""
    g = torch.Generator().manual_seed(seed)
    normal = torch.randn(90, 5, 5, generator=g)
    heavy = -torch.log(torch.rand(90, 5, 5, generator=g)) * 7
    uniform = torch.rand(90, 5, 5, generator=g) * 0.01
    return torch.stack([normal, heavy, uniform], 1).double()


def test_maximum_is_the_largest_activation_of_each_group() -> None:
    x = _activations()
    assert torch.equal(Maximum("channel")(_gathered(x, "channel"), 4), x.amax((0, 2, 3)))
    assert torch.equal(Maximum("layer")(_gathered(x, "layer"), 4), x.amax().reshape(1))
    per_neuron = Maximum("neuron")(_gathered(x, "neuron"), 4)
    assert torch.equal(per_neuron, x.amax(0))


@pytest.mark.parametrize("percent", [50.0, 99.0, 99.9, 100.0])
def test_percentile_of_the_positive_activations_to_a_bin(percent: float) -> None:
    x = _activations()
    found = Percentile(percent)(_gathered(x, "channel"), 4)
    for channel, theta in enumerate(found):
        positive = x[:, channel][x[:, channel] > 0]
        bin_width = positive.max() / BINS
        lower, higher = (torch.quantile(positive, percent / 100, interpolation=end) for end in ("lower", "higher"))
        assert lower - bin_width <= theta <= higher + bin_width


@pytest.mark.parametrize("steps", [1, 2, 8, 32])
@pytest.mark.parametrize("rounding", ["nearest", "floor"])
def test_mean_square_is_within_one_grid_step_of_the_search_over_all_activations(steps: int, rounding: str) -> None:
    x = _activations()
    found = MeanSquare(rounding)(_gathered(x, "channel"), steps)  # type: ignore[arg-type]
    for channel, theta in enumerate(found):
        a = x[:, channel].clamp(min=0)
        best, best_error = None, float("inf")
        for i in range(95):
            candidate = a.max() * (1 - 0.01 * i)
            scaled = a * steps / candidate + (0.5 if rounding == "nearest" else 0.0)
            error = (a - candidate / steps * scaled.floor().clamp(0, steps)).pow(2).sum()
            if error < best_error:
                best, best_error = candidate, error
        assert abs(theta - best) <= 0.0101 * a.max()


def test_rounding_changes_the_choice() -> None:
    seen = _gathered(_activations(), "channel")
    assert not torch.equal(MeanSquare("nearest")(seen, 2), MeanSquare("floor")(seen, 2))
    bounded = MeanSquareUpTo(most=4)
    assert torch.equal(bounded(seen, 32), MeanSquare()(seen, 4)) and torch.equal(
        bounded(seen, 2), MeanSquare()(seen, 2)
    )
    assert not torch.equal(MeanSquare()(seen, 32), MeanSquare()(seen, 4))
    with pytest.raises(RecipeError, match="most"):
        MeanSquareUpTo(most=0)


def test_the_number_of_batches_does_not_matter() -> None:
    x = _activations()
    one, many = _gathered(x, "channel", 1), _gathered(x, "channel", 9)
    assert torch.equal(one.counts, many.counts)
    assert torch.equal(one.maximum, many.maximum)


def test_a_silent_channel_gets_a_positive_threshold() -> None:
    x = _activations()
    x[:, 1] = -1.0
    for rule in (Maximum(), Percentile(), MeanSquare()):
        theta = rule(_gathered(x, "channel"), 4)
        assert torch.isfinite(theta).all()
        assert theta[1] == theta.max() > 0
    everything_silent = MeanSquare()(_gathered(-torch.ones(4, 3, 2, 2).double(), "channel"), 4)
    assert torch.equal(everything_silent, torch.ones(3, dtype=torch.float64))


def test_percentile_settings_are_checked() -> None:
    for wrong in (0, -1, 100.5):
        with pytest.raises(RecipeError, match="Percentile"):
            Percentile(wrong)
