"""The learning rate of each step against the schedulers of torch."""

from __future__ import annotations

import pytest
import torch

from ftbc.train import TrainSettings
from ftbc.train.schedule import learning_rate


def _by_torch(make, total: int) -> list[float]:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = make(optimiser)
    rates = []
    for _ in range(total):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return rates


@pytest.mark.parametrize("warm_up", [0.1, 0.15, 0.5])
@pytest.mark.parametrize("total", [3, 20, 101])
def test_one_cycle(total: int, warm_up: float) -> None:
    wanted = _by_torch(
        lambda optimiser: torch.optim.lr_scheduler.OneCycleLR(
            optimiser, 0.3, total_steps=total + 1, pct_start=warm_up, cycle_momentum=False, div_factor=10,
            final_div_factor=1e4,
        ),
        total + 1,
    )  # fmt: skip
    found = [
        learning_rate(TrainSettings(learning_rate=0.3, warm_up=warm_up), step, total + 1) for step in range(total + 1)
    ]
    assert found == pytest.approx(wanted, rel=1e-9)


def test_plain_cosine() -> None:
    wanted = _by_torch(lambda optimiser: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 50), 50)
    found = [learning_rate(TrainSettings(learning_rate=0.3, warm_up=0.0), step, 50) for step in range(50)]
    assert found == pytest.approx(wanted, rel=1e-9) and found[0] == 0.3


@pytest.mark.parametrize("total", range(1, 12))
def test_short_runs_have_a_learning_rate(total: int) -> None:
    for warm_up in (0.0, 0.15, 0.5):
        settings = TrainSettings(warm_up=warm_up)
        assert all(0 < learning_rate(settings, step, total) <= 0.1 for step in range(total))
