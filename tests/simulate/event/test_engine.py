"""Spike for spike what `layerwise` gives: in float64, and to the last bit for rounded networks in float32."""

from __future__ import annotations

import pytest

from ftbc.threshold.activations import Grain

from .networks import GROUPS, PADS, SIZES, STRUCTURES, WIDTHS, WINDOWS, Case
from .support import assert_equal_runs, images, rounded, spiking

CASES = {**WINDOWS, **SIZES, **PADS, **GROUPS, **WIDTHS, **STRUCTURES}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_same_spikes(case: Case) -> None:
    x = images(case.shape)
    snn = spiking(case.make(), x, pool=case.pool)
    assert_equal_runs(snn, x, gap=1e-12)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_same_bits_when_rounded(case: Case) -> None:
    x = images(case.shape)
    snn, x = rounded(spiking(case.make(), x, pool=case.pool), x)
    assert_equal_runs(snn, x)


@pytest.mark.parametrize("grain", ["layer", "neuron"])
@pytest.mark.parametrize("case", STRUCTURES.values(), ids=list(STRUCTURES))
def test_with_other_thresholds(case: Case, grain: Grain) -> None:
    x = images(case.shape)
    assert_equal_runs(spiking(case.make(), x, pool=case.pool, grain=grain), x, gap=1e-12)


@pytest.mark.parametrize("case", STRUCTURES.values(), ids=list(STRUCTURES))
def test_input_over_time(case: Case) -> None:
    x = images((5, *case.shape), 3)
    snn = spiking(case.make(), x[0], pool=case.pool)
    assert_equal_runs(snn, x, time_first=True, gap=1e-12)
    assert_equal_runs(snn, x[:2], time_first=True, gap=1e-12)
