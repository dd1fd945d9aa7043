"""Averaged weights, and BatchNorm statistics that fit them."""

from __future__ import annotations

import torch
from torch import nn

from ftbc.train.average import average_weights


def _network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 64, 2)
    )


def test_weights_are_half_way_and_statistics_are_those_of_the_new_weights() -> None:
    first, second = _network(0), _network(1)
    expected = [(a + b) / 2 for a, b in zip(first.parameters(), second.parameters(), strict=True)]
    images = torch.randint(0, 256, (300, 3, 8, 8), dtype=torch.uint8)
    average_weights(first, second, images, lambda x: x.float() / 255)
    for own, wanted in zip(first.parameters(), expected, strict=True):
        assert torch.allclose(own, wanted, atol=1e-6)
    assert not first.training
    assert first[1].momentum == 0.1
    with torch.no_grad():
        outputs = first[0](images.float() / 255)
    # Random crops put zeros at the borders, so the statistics are near, not equal.
    assert torch.allclose(first[1].running_mean, outputs.mean((0, 2, 3)), atol=0.1)
    assert torch.allclose(first[1].running_var, outputs.var((0, 2, 3)), rtol=0.6)
