"""The compiled neuron against the plain one, to the last bit."""

from __future__ import annotations

import pytest
import torch

from ftbc.neuron import fused
from ftbc.neuron.functional import integrate_and_fire, spike_counts

pytest.importorskip("numba")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(5, 3, 4, 6, 7), (5, 3, 4), (1, 2, 3, 9), (4, 1, 2, 3, 2, 2)])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("per_theta", "per_bias"), [("layer", "channel"), ("channel", "channel"), ("channel", "layer")]
)
def test_equal_to_the_last_bit(dtype, shape, constant, per_theta, per_bias) -> None:
    generator = torch.Generator().manual_seed(0)
    steps, images, channels, *rest = shape
    x = torch.randn(shape, generator=generator, dtype=dtype)
    x = x[:1].expand(shape) if constant else x
    theta = torch.rand(channels if per_theta == "channel" else 1, generator=generator, dtype=dtype) + 0.3
    b = torch.randn(steps, channels if per_bias == "channel" else 1, generator=generator, dtype=dtype) * 0.2
    v = torch.rand(images, channels, *rest, generator=generator, dtype=dtype)
    before = v.clone()
    wide = (-1, *[1] * len(rest))
    spikes, left = integrate_and_fire(x, theta.view(wide), v, b.view(steps, 1, *wide))
    assert fused.usable(x, theta, b)
    fused_spikes, fused_left = fused.integrate_and_fire(x, theta, v, b)
    assert spikes.any()
    assert torch.equal(fused_spikes, spikes)
    assert torch.equal(fused_left, left)
    assert torch.equal(v, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("channels", "side"), [(1, 3), (5, 7), (16, 32), (64, 9), (3000, 2)])
@pytest.mark.parametrize("constant", [True, False])
def test_channels_last_is_equal_to_the_last_bit_and_stays_so(dtype, channels, side, constant) -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (4, 3, channels, side, side)
    x = torch.randn(12, *shape[2:], generator=generator, dtype=dtype).contiguous(memory_format=torch.channels_last)
    x = x[:3].expand(shape) if constant else x.unflatten(0, (4, 3))
    theta = torch.rand(channels, generator=generator, dtype=dtype) + 0.3
    b = torch.randn(4, channels, generator=generator, dtype=dtype) * 0.2
    v = torch.rand(shape[1:], generator=generator, dtype=dtype)
    spikes, left = integrate_and_fire(x, theta.view(-1, 1, 1), v, b.view(4, 1, -1, 1, 1))
    fused_spikes, fused_left = fused.integrate_and_fire(x, theta, v, b)
    assert spikes.any() and torch.equal(fused_spikes, spikes) and torch.equal(fused_left, left)
    assert fused_left.is_contiguous(memory_format=torch.channels_last)
    counts = spike_counts(x[0], theta.view(-1, 1, 1), v, b[0].view(-1, 1, 1))
    assert torch.equal(fused.spike_counts(x[0], theta, v, b[0]), counts)
    assert torch.equal(fused.spike_counts(x[0].contiguous(), theta, v, b[0]), counts)
    assert torch.equal(counts, (spikes[0] != 0).sum((0, 2, 3)))


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("constant", [True, False])
def test_spikes_take_the_place_of_currents_where_they_may(channels_last: bool, constant: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    order = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(12, 5, 8, 8, generator=generator).contiguous(memory_format=order)
    x = x[:3].expand(4, 3, 5, 8, 8) if constant else x.unflatten(0, (4, 3))
    theta, b, v = torch.rand(5, generator=generator) + 0.3, torch.zeros(4, 5), torch.zeros(3, 5, 8, 8)
    before, address = x.clone(), x.data_ptr()
    wanted, left = fused.integrate_and_fire(x, theta, v, b)
    assert torch.equal(x, before) and not v.any(), "neither is written over unless it may be"
    spikes, membrane = fused.integrate_and_fire(x, theta, v, b, overwrite=True)
    assert wanted.any() and torch.equal(spikes, wanted) and torch.equal(membrane, left)
    assert (spikes.data_ptr() == address) is not constant


def test_channels_last_and_sliced_currents() -> None:
    x = torch.randn(3, 2, 4, 5, 5).to(memory_format=torch.channels_last_3d)[..., ::2]
    theta, b, v = torch.ones(4), torch.zeros(3, 4), torch.zeros(x.shape[1:])
    spikes, left = integrate_and_fire(x, theta.view(-1, 1, 1), v, b.view(3, 1, 4, 1, 1))
    fused_spikes, fused_left = fused.integrate_and_fire(x, theta, v, b)
    assert torch.equal(fused_spikes, spikes) and torch.equal(fused_left, left)


def test_constants_per_neuron_take_the_plain_form() -> None:
    x = torch.randn(3, 2, 4, 5, 5)
    assert not fused.usable(x, torch.ones(4, 5, 5), torch.zeros(3, 4))
    assert not fused.usable(x, torch.ones(4), torch.zeros(3, 4, 5, 5))
    assert not fused.usable(x.to("meta"), torch.ones(4), torch.zeros(3, 4))


def test_numbers_of_different_types_take_the_plain_form() -> None:
    x, theta, b = torch.randn(3, 2, 4, 5, 5), torch.ones(4), torch.zeros(3, 4)
    assert fused.usable(x, theta, b)
    assert not fused.usable(x.double(), theta, b)
    assert not fused.usable(x, theta.double(), b)
    assert not fused.usable(x, theta, b.double())


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("shape", [(4, 1, 5, 4, 4), (1, 3, 5, 4, 4), (4, 1, 5, 1, 6), (4, 2, 1, 3, 3), (4, 3, 6, 1, 1)])
def test_dimensions_of_size_one_hide_no_layout(shape: tuple[int, ...], channels_last: bool) -> None:
    """A single image has any stride along the images: it is recognised, and written over, all the same."""
    generator = torch.Generator().manual_seed(0)
    order = torch.channels_last if channels_last else torch.contiguous_format
    steps, images, channels = shape[:3]
    x = torch.randn(steps * images, *shape[2:], generator=generator).contiguous(memory_format=order)
    x = x.unflatten(0, (steps, images))
    theta, b = torch.rand(channels, generator=generator) + 0.3, torch.zeros(steps, channels)
    v = torch.zeros(shape[1:])
    wanted, left = integrate_and_fire(x, theta.view(-1, 1, 1), v, b.view(steps, 1, -1, 1, 1))
    address = x.data_ptr()
    spikes, membrane = fused.integrate_and_fire(x, theta, v, b, overwrite=True)
    assert wanted.any() and torch.equal(spikes, wanted) and torch.equal(membrane, left)
    assert spikes.data_ptr() == address
    assert spikes.flatten(0, 1).is_contiguous(memory_format=order) and membrane.is_contiguous(memory_format=order)


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("entries", [1, 5])
def test_membranes_begin_at_a_constant(channels_last: bool, overwrite: bool, entries: int) -> None:
    generator = torch.Generator().manual_seed(0)
    order = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(12, 5, 8, 8, generator=generator).contiguous(memory_format=order).unflatten(0, (4, 3))
    theta, b = torch.rand(5, generator=generator) + 0.3, torch.randn(4, 5, generator=generator) * 0.2
    initial = torch.rand(entries, generator=generator)
    before = initial.clone()
    membrane = torch.zeros(3, 5, 8, 8) + initial.view(-1, 1, 1)
    wanted = fused.integrate_and_fire(x, theta, membrane, b)
    found = fused.integrate_and_fire(x, theta, initial, b, overwrite)
    assert wanted[0].any() and torch.equal(found[0], wanted[0]) and torch.equal(found[1], wanted[1])
    assert torch.equal(initial, before)


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_current_that_repeats_is_read_where_it_is(channels_last: bool, overwrite: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    order = torch.channels_last if channels_last else torch.contiguous_format
    current = torch.randn(3, 5, 8, 8, generator=generator).contiguous(memory_format=order)
    before = current.clone()
    theta, b = torch.rand(5, generator=generator) + 0.3, torch.randn(6, 5, generator=generator) * 0.2
    repeated = current.expand(6, *current.shape)
    wanted = fused.integrate_and_fire(torch.stack([current] * 6), theta, torch.zeros(3, 5, 8, 8), b)
    found = fused.integrate_and_fire(repeated, theta, torch.zeros(3, 5, 8, 8), b, overwrite)
    assert wanted[0].any() and torch.equal(found[0], wanted[0]) and torch.equal(found[1], wanted[1])
    assert torch.equal(current, before)
    assert found[0].flatten(0, 1).is_contiguous(memory_format=order)
