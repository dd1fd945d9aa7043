"""What programs make of neurons, against the equations written out neuron by neuron."""

from __future__ import annotations

import math

import pytest
import torch

from ftbc.export.agreement import recorded
from ftbc.export.semantics import SOFT, Semantics
from ftbc.neuron import IntegrateFire

from .networks import converted

CASES = [
    SOFT,
    Semantics("hard", hard=True),
    Semantics("hard, strict", hard=True, strict=True),
    Semantics("several", several=True),
    Semantics("several, cut off", several=True, lowest=-1.0),
    Semantics("leaky", keep=0.9),
]


def naive(rule: Semantics, currents: list[float], biases: list[float], theta: float, start: float) -> list[float]:
    v, sent = start, []
    for t, (x, b) in enumerate(zip(currents, biases, strict=True)):
        v = (v if t == 0 else v * rule.keep) + x + b
        fires = v > theta if rule.strict else v >= theta
        count = (math.floor(v / theta) if rule.several else 1) if fires else 0
        v = (0.0 if fires else v) if rule.hard else v - count * theta
        if rule.lowest is not None:
            v = max(v, rule.lowest * theta)
        sent.append(count * theta)
    return sent


@pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.name)
def test_spikes_are_those_of_the_equation(rule: Semantics) -> None:
    steps, channels = 12, 5
    currents = torch.randn(steps, 3, channels, dtype=torch.float64) + 0.4
    currents[0, 0] = 1.0  # exactly at the threshold of the first channels
    theta = torch.tensor([1.0, 1.0, 0.5, 2.0, 1.25], dtype=torch.float64)
    bias = 0.1 * torch.randn(steps, channels, dtype=torch.float64)
    bias[0] = 0.0
    initial = torch.tensor([0.0, 0.0, 0.25, 0.3, -0.2], dtype=torch.float64)
    neuron = IntegrateFire(steps, 1).set(theta, initial, bias)
    node = _Node(neuron)
    step = rule.cell()
    found = torch.stack([step(node, x) for x in currents])
    for image in range(3):
        for c in range(channels):
            arguments = currents[:, image, c].tolist(), bias[:, c].tolist(), float(theta[c]), float(initial[c])
            assert found[:, image, c].tolist() == pytest.approx(naive(rule, *arguments), abs=1e-12), (image, c)
    assert bool(found.any())


class _Node:
    def __init__(self, module: IntegrateFire) -> None:
        self.name, self.module = "neurons", module


def test_soft_reset_is_our_own_neuron() -> None:
    snn, images = converted("residual")
    ours = recorded(snn.graph, images, snn.steps)
    for (output, spikes), (found, others) in zip(
        ours, recorded(snn.graph.copy(), images, snn.steps, SOFT.cell()), strict=True
    ):
        assert torch.equal(output, found) and all(torch.equal(spikes[name], others[name]) for name in spikes)


def test_each_difference_changes_spikes() -> None:
    snn, images = converted("residual")
    runs = [
        torch.stack([output for output, _ in recorded(snn.graph, images, snn.steps, rule.cell())]) for rule in CASES
    ]
    for rule, run in zip(CASES[1:], runs[1:], strict=True):
        assert not torch.equal(runs[0], run) or rule.strict, rule.name


def test_words() -> None:
    assert SOFT.in_words == "soft reset"
    words = Semantics("x", hard=True, strict=True, several=True, lowest=-1.0, keep=0.9).in_words
    assert all(word in words for word in ("hard", "above", "several", "-1", "0.9"))
