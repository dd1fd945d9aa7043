"""Comparing runs: every neuron-step counts, and networks that are not the same are refused."""

from __future__ import annotations

import torch

from ftbc.errors import InputError
from ftbc.export.agreement import agreement, recorded
from ftbc.export.semantics import Semantics

from ..conftest import Refused
from .networks import converted


def test_a_run_agrees_with_itself() -> None:
    snn, images = converted("plain")
    found = agreement(recorded(snn.graph, images, 5), recorded(snn.graph.copy(), images, 5))
    per_image = sum(torch.Size(row.shape).numel() for row in snn.layers())
    assert found.equal and found.share == 1 and found.largest == 0
    assert found.neuron_steps == 5 * len(images) * per_image and found.spikes > 0
    assert str(found) == f"all {found.spikes:,} spikes equal"


def test_differences_are_counted_one_by_one() -> None:
    snn, images = converted("residual")
    rule = Semantics("hard", hard=True)
    found = agreement(recorded(snn.graph, images, 5), recorded(snn.graph.copy(), images, 5, rule.cell()))
    expected = dict.fromkeys((row.name for row in snn.layers()), 0)
    for (_, a), (_, b) in zip(
        recorded(snn.graph, images, 5), recorded(snn.graph.copy(), images, 5, rule.cell()), strict=True
    ):
        for name in expected:
            expected[name] += sum(bool(x) != bool(y) for x, y in zip(a[name].flatten(), b[name].flatten(), strict=True))
    assert found.layers == expected and found.different == sum(expected.values()) > 0
    first = next(name for name, count in expected.items() if count)
    assert f"first in '{first}'" in str(found) and 0 < found.share < 1


def test_parts_add_up() -> None:
    snn, images = converted("plain")
    rule = Semantics("hard", hard=True)

    def compared(x: torch.Tensor):
        return agreement(recorded(snn.graph, x, 5), recorded(snn.graph.copy(), x, 5, rule.cell()))

    whole, parts = compared(images), compared(images[:2]) + compared(images[2:])
    assert (whole.neuron_steps, whole.spikes, whole.different, whole.layers) == (
        parts.neuron_steps, parts.spikes, parts.different, parts.layers,
    )  # fmt: skip


def test_another_network_is_refused(refused: Refused) -> None:
    snn, images = converted("plain")
    other, _ = converted("residual")
    refused(InputError, "another network", agreement, recorded(snn.graph, images, 5), recorded(other.graph, images, 5))
