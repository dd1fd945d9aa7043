"""Methods on trial: what is measured, what it is measured on, and what is kept."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import ftbc
from ftbc.calibrate import Calibration, CorrelationSearch, QuantileBias, ReadOut, Refit, Sharpen
from ftbc.calibrate.walk import trial
from tests.calibrate.walk.test_walk import OWN, lively, pictures

OTHERS = (Refit(last=False), QuantileBias(), CorrelationSearch())


def _converted(x: Tensor, *pieces: object, steps: int = 2) -> ftbc.SpikingNetwork:
    torch.manual_seed(2)
    return ftbc.convert(lively(OWN["residual"]()), x, steps, ftbc.recipe("best", calibrate=(*OTHERS, *pieces)))


def _same(one: ftbc.SpikingNetwork, other: ftbc.SpikingNetwork) -> bool:
    return all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))


@pytest.mark.parametrize("helps", [True, False])
def test_the_smaller_error_on_images_set_aside_decides(helps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is that of a recipe with the piece or of one without it, to the last bit."""
    x, seen = pictures(25), []

    def error(calibration: Calibration, aside: Tensor) -> float:
        every = torch.cat([calibration.images, aside]).flatten(1)
        assert len(aside) == 6 and torch.equal(every.sum(1).sort().values, x.flatten(1).sum(1).sort().values)
        seen.append(aside)
        return (1.0, 2.0 if helps else 0.5)[len(seen) - 1]

    monkeypatch.setattr(trial, "_output_error", error)
    found = _converted(x, Sharpen(on_trial=True))
    assert len(seen) == 2 and torch.equal(*seen)
    assert _same(found, _converted(x, Sharpen()) if helps else _converted(x))
    assert not _same(found, _converted(x) if helps else _converted(x, Sharpen()))


def test_the_error_is_that_of_the_answers_after_all_steps() -> None:
    """A read-out that weighs the steps counts, too; more images than are run at once."""
    x, aside = pictures(20), pictures(70, seed=1)
    torch.manual_seed(2)
    network = lively(OWN["residual"]())
    snn = ftbc.convert(network, x, 3, ftbc.recipe("best", calibrate=(*OTHERS, ReadOut())))
    wanted = (snn(aside)[-1] - network(aside).detach()).pow(2).sum()

    class Answers(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return network(images).detach()

    state = Calibration(Answers(), snn.graph, 3, x, torch.Generator(), readout=snn.readout)  # type: ignore[arg-type]
    assert trial._output_error(state, aside) == pytest.approx(float(wanted), rel=1e-9)
    assert snn.readout is not None


@pytest.mark.parametrize(("images", "steps"), [(3, 2), (25, 3)])
def test_no_trial_of_too_few_images_or_beyond_the_bound_of_steps(
    images: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_output_error", None)
    x = pictures(images)
    found = _converted(x, Sharpen(most_steps=2, on_trial=True), steps=steps)
    assert _same(found, _converted(x, steps=steps))


def test_best_is_one_of_two_recipes() -> None:
    """Whichever it takes, on networks of one and two steps."""
    torch.manual_seed(4)
    network, x = lively(OWN["plain"]()), pictures(32)
    for steps in (1, 2):
        best, sharpened = (ftbc.convert(network, x, steps, name) for name in ("best", "best-sharpened"))
        plain = tuple(piece for piece in best.recipe.calibrate if not isinstance(piece, Sharpen))
        assert _same(best, sharpened) != _same(
            best, ftbc.convert(network, x, steps, ftbc.recipe("best", calibrate=plain))
        )
