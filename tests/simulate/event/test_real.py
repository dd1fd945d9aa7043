"""The shipped network, in float32 as it is and rounded."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor

import ftbc

from .support import assert_equal_runs, dense_run, engine_of, event_run, events

IMAGES = 12


@functools.cache
def converted() -> tuple[ftbc.SpikingNetwork, Tensor]:
    calibration, test = ftbc.data.load("cifar10-sample", calibration=32, test=IMAGES)
    snn = ftbc.convert(ftbc.zoo.load("resnet20-cifar10"), calibration, 4, "mean-square")
    return snn, test.tensor()


def test_in_float32_hardly_a_spike_differs() -> None:
    """Events are added in the order of pixels and channels, dense sums in torch's own, so that membranes differ by a
    few units in the last place, about 1e-6 of a threshold. A spike differs where a threshold lies in between: for
    about one neuron in a million. Each such spike changes currents behind it by whole weights, so that in deep layers
    more of them differ, in the images in which it happened.
    """
    snn, x = converted()
    wanted, spikes = dense_run(snn, x)
    found, others = event_run(snn, x)
    rates = [float((spikes[name] != others[name]).double().mean()) for name in spikes]
    assert len(rates) == 19 and all(bool(fired.any()) for fired in spikes.values())
    assert max(rates[:3]) < 2e-5, rates
    assert max(rates) < 0.05, rates
    close = (found - wanted).abs().amax((0, 2)) < 1e-3 * wanted.abs().max()
    assert int(close.sum()) >= 0.75 * IMAGES
    assert int((found[-1].argmax(1) == wanted[-1].argmax(1)).sum()) >= 0.75 * IMAGES


def test_rounded_it_runs_in_16_bits_to_the_last_bit() -> None:
    snn, x = converted()
    close = snn.rounded(x[:8])
    assert events(close) == ["dense", *["int16"] * 18] and events(snn) == ["dense", *["float32"] * 18]
    assert_equal_runs(close, x)
    assert not engine_of(close).reserve
    assert torch.equal(close(x[:1], engine="event"), close(x)[:, :1])


def test_rounding_takes_little_from_the_outputs() -> None:
    """Mean outputs over four steps: by as much as another draw of a few spikes would change them."""
    snn, x = converted()
    plain, close = snn(x)[-1], snn.rounded(x)(x)[-1]
    assert float((plain - close).pow(2).mean()) < 0.3 * float(plain.var())


@pytest.mark.slow
def test_rounding_takes_nothing_from_the_accuracy() -> None:
    """On 1,000 images one standard error of a difference is at most 2 %."""
    calibration, test = ftbc.data.load("cifar10-sample", calibration=128)
    snn = ftbc.convert(ftbc.zoo.load("resnet20-cifar10"), calibration, 8, ftbc.recipe("ftbc"))
    x, labels = test.tensor(), test.labels
    hits = [
        (network(x, engine="event")[-1].argmax(1) == labels).double().mean() for network in (snn, snn.rounded(x[:32]))
    ]
    assert hits[0] > 0.7 and float(hits[1]) > float(hits[0]) - 0.04
