"""Spikes in one bit each: nothing is lost, and means are those of the spikes."""

from __future__ import annotations

import pytest
import torch

from ftbc.calibrate.walk.spikes import Counts, Dense, Spikes, keep


def _spikes(
    steps: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor]:
    fired = torch.rand(steps, *shape) < 0.4
    amplitude = (torch.rand(shape[1], *[1] * (len(shape) - 2)) + 0.2).to(dtype)
    return fired * amplitude, amplitude


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4, 5), (2, 8, 4, 4), (1, 1), (2, 3, 7), (0, 4), (0, 3, 4, 5)])
@pytest.mark.parametrize("steps", [1, 3, 33])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_kept_comes_back(shape: tuple[int, ...], steps: int, dtype: torch.dtype) -> None:
    values, amplitude = _spikes(steps, shape, dtype)
    kept = Spikes(values, amplitude)
    assert torch.equal(kept.values(), values) and kept.values().dtype == dtype
    assert kept.bytes() == steps * max(1, -(-values[0].numel() // 8))
    weights = torch.rand(steps, dtype=dtype)
    wanted = torch.einsum("t,t...->...", weights, values)
    torch.testing.assert_close(kept.mean(weights), wanted)
    torch.testing.assert_close(Dense(values).mean(weights), wanted)


def test_channels_last_stays_channels_last() -> None:
    values, amplitude = _spikes(3, (4, 6, 5, 5))
    values = values.flatten(0, 1).contiguous(memory_format=torch.channels_last).unflatten(0, (3, 4))
    kept = Spikes(values, amplitude)
    assert torch.equal(kept.values(), values)
    assert kept.values().flatten(0, 1).is_contiguous(memory_format=torch.channels_last)


def test_each_image_may_weigh_the_steps_in_its_own_way() -> None:
    values, amplitude = _spikes(4, (3, 2, 2, 2))
    weights = torch.rand(4, 3)
    wanted = torch.stack([sum(weights[t, n] * values[t, n] for t in range(4)) for n in range(3)])
    torch.testing.assert_close(Spikes(values, amplitude).mean(weights), wanted)
    torch.testing.assert_close(Dense(values).mean(weights), wanted)


@pytest.mark.parametrize("steps", [1, 3, 33, 300])
def test_counts_are_trains_whose_spikes_come_first(steps: int) -> None:
    shape = (2, 3, 4, 5)
    counts, size = torch.randint(0, steps + 1, shape), torch.rand(3, 1, 1) + 0.2
    trains = torch.stack([(counts > t) * size for t in range(steps)])
    kept = Counts(counts.float(), size, steps)
    assert torch.equal(kept.values(), trains) and kept.bytes() == counts.numel() * (1 if steps < 256 else 4)
    for weights in (torch.rand(steps), torch.rand(steps, 2), torch.rand(steps, 2, dtype=torch.float64)):
        torch.testing.assert_close(kept.mean(weights), Dense(trains).mean(weights.float()))


def test_no_images_are_kept_as_none() -> None:
    kept = keep(torch.zeros(3, 0, 4, 2, 2))
    assert kept.values().shape == (3, 0, 4, 2, 2) and kept.mean(torch.ones(3)).shape == (0, 4, 2, 2)


def test_only_what_has_one_size_a_channel_becomes_bits() -> None:
    values, _ = _spikes(4, (3, 5, 2, 2))
    values[:, :, 2] = 0
    assert isinstance(keep(values), Spikes)
    torch.testing.assert_close(keep(values).values(), values)
    rounded = values * (1 + 1e-6 * torch.rand(values.shape))  # what is left of sums and differences
    torch.testing.assert_close(keep(rounded).values(), values, rtol=1e-5, atol=0)
    for other in (values * torch.rand(values.shape), -values, values - 0.1):
        assert isinstance(keep(other), Dense)
        assert torch.equal(keep(other).values(), other)
