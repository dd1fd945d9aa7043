"""The error of outputs against its formula, for outputs of every shape; and evaluation without labels."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.errors import InputError
from tests.conftest import Refused

STEPS = 4


class _Plane(nn.Module):
    """Image in; a map, a row of scores, a row of rows or a lone number out."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        self.one, self.two, self.ending = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 3, 1), ending

    def forward(self, x: Tensor) -> Tensor:
        z = self.two(F.relu(self.one(x)))
        return {"map": z, "scores": z.mean((2, 3)), "rows": z.flatten(2), "number": z.sum((1, 2, 3))}[self.ending]


ENDINGS = ("map", "scores", "rows", "number")


def _case(ending: str) -> tuple[nn.Module, Tensor, ftbc.SpikingNetwork]:
    torch.manual_seed(4)
    network, x = _Plane(ending).double().eval(), torch.rand(30, 2, 5, 4, dtype=torch.float64)
    return network, x, ftbc.convert(network, x, STEPS)


def _naive(outputs: Tensor, z: Tensor) -> list[float]:
    """Channel by channel, number by number."""
    if z.ndim == 1:
        outputs, z = outputs.unsqueeze(2), z.unsqueeze(1)
    spread = 0.0
    for channel in range(z.shape[1]):
        values = z[:, channel].flatten().tolist()
        mean = sum(values) / len(values)
        spread += sum((value - mean) ** 2 for value in values)
    return [float(((y - z) ** 2).sum()) / spread for y in outputs]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("engine", ["layerwise", "stepwise", "event"])
@torch.no_grad()
def test_the_error_is_its_formula(ending: str, engine: str) -> None:
    network, x, snn = _case(ending)
    found = ftbc.evaluate(snn, x, network, engine=engine, counted_images=7)
    assert found.error == pytest.approx(_naive(snn(x), network(x)), rel=1e-9)
    assert found.images == len(x) and found.accuracy == [] and found.reference_accuracy is None
    assert found.error is not None and 0 < found.error[-1] < found.error[0]


def test_images_in_every_form_give_the_same() -> None:
    network, x, snn = _case("map")
    whole = ftbc.evaluate(snn, x, network).to_dict()
    for data in (list(x.split(7)), (part for part in x.split(13)), [x[:0], x]):
        found = ftbc.evaluate(snn, data, network).to_dict()
        assert found.pop("error") == pytest.approx(whole["error"], rel=1e-12)
        assert found == {name: value for name, value in whole.items() if name != "error"}


def test_labels_bring_the_accuracy_and_leave_the_error() -> None:
    network, x, snn = _case("scores")
    labels = torch.arange(len(x)) % 3
    alone, both = ftbc.evaluate(snn, x, network), ftbc.evaluate(snn, (x, labels), network)
    assert both.error == alone.error and len(both.accuracy) == STEPS and both.reference_accuracy is not None
    without = ftbc.evaluate(snn, (x, labels))
    assert without.error is None and without.accuracy == both.accuracy
    some = ftbc.evaluate(snn, [(x[:20], labels[:20]), x[20:]], network)
    assert some.accuracy == ftbc.evaluate(snn, (x[:20], labels[:20])).accuracy and some.images == 30


def test_outputs_that_never_vary_are_the_same_or_not() -> None:
    x = torch.rand(30, 5, dtype=torch.float64)
    still = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)).double().eval()
    still[2].weight.data.zero_()
    snn, moved = ftbc.convert(still, x, 2, "maximum"), copy.deepcopy(still)
    moved[2].bias.data += 1
    assert ftbc.evaluate(snn, x, still).error == [0.0, 0.0]
    assert ftbc.evaluate(snn, x, moved).error == [1.0, 1.0]


def test_the_table_shows_what_there_is() -> None:
    network, x, snn = _case("number")
    shown = str(ftbc.evaluate(snn, x, network))
    assert "error" in shown and "accuracy" not in shown and "ANN" in shown and "%" not in shown
    network, x, snn = _case("scores")
    assert "error" not in str(ftbc.evaluate(snn, (x, torch.zeros(len(x), dtype=torch.int64))))


class _Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


@pytest.mark.parametrize(
    "given, settings, words",
    [
        ("images", {}, ("reference=",)),
        ("images", {"reference": "own", "stop": ftbc.Confidence(0.9)}, ("stop=", "labels")),
        ("labelled", {"reference": "own"}, ("score per class", "images without labels", "reference=")),
        ("images", {"reference": nn.Flatten()}, ("[40]", "converted from")),
        ("images", {"reference": _Pair()}, ("tuple",)),
        ("targets", {"reference": "own"}, ("one whole number for each image", "images alone")),
    ],
)
def test_what_cannot_be_measured_is_refused(
    given: str, settings: dict[str, Any], words: tuple[str, ...], refused: Refused
) -> None:
    network, x, snn = _case("map")
    data = {"images": x, "labelled": (x, torch.zeros(len(x), dtype=torch.int64)), "targets": [(x, x)]}[given]
    settings = {name: network if value == "own" else value for name, value in settings.items()}
    refused(InputError, words, ftbc.evaluate, snn, data, **settings)
