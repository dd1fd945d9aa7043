"""Several processes give what one gives: thresholds, biases, accuracy and tables."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS
from ftbc.calibrate import (
    BiasCorrection,
    DelayedReadout,
    DistributionAware,
    PotentialCorrection,
    QuantileBias,
    Refit,
    ReleasedFTBC,
    Sharpen,
    WeightCorrection,
)
from ftbc.calibrate.walk import flow
from ftbc.errors import InputError, ModelError, NotFiniteError
from ftbc.measure.batches import turns
from ftbc.neuron import Parallel
from ftbc.processes import Team, team
from ftbc.threshold import Gaussian, LocalBalance, Maximum, Percentile, Trained
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, depthwise, residual
from tests.team import in_team

QUICK = ftbc.FTBC(iterations=2, batch=6)
EQUAL = {
    "maximum": ftbc.Recipe(threshold=Maximum()),
    "percentile": ftbc.Recipe(threshold=Percentile(90.0)),
    "mean-square": ftbc.recipe("mean-square"),
    "ftbc": ftbc.recipe("ftbc", calibrate=(QUICK,)),
    "rmp": ftbc.recipe("rmp"),
}
"""Of counts and maxima alone: equal to the last bit."""
CLOSE = {
    "gaussian": ftbc.Recipe(threshold=Gaussian()),
    "ltb": ftbc.Recipe(threshold=LocalBalance(iterations=5, batch=6), calibrate=(DelayedReadout(),)),
    "ftbc-layer": ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=2, batch=6, grain="layer"),)),
    "ftbc-neuron": ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=2, batch=6, grain="neuron"),)),
    "signed": ftbc.recipe("ftbc-signed", calibrate=(QUICK,)),
    "snnc-lp": ftbc.recipe("snnc-lp", calibrate=(BiasCorrection(batch=7, batches=2),)),
    "snnc-ap": ftbc.recipe("snnc-ap", calibrate=(WeightCorrection(iterations=4, batch=3), PotentialCorrection())),
    "best": ftbc.recipe("best"),
    "sharpen": ftbc.Recipe(calibrate=(Refit(), QuantileBias(), Sharpen())),
    "best-anytime": ftbc.recipe("best-anytime"),
}
TRAINED = {
    "released": ftbc.recipe("ftbc-qcfs", calibrate=(ReleasedFTBC(batch=5),)),
    "parallel": ftbc.Recipe(threshold=Trained(), neuron=Parallel(), calibrate=(DistributionAware(batch=6, batches=5),)),
}


FEW = ("ftbc", "rmp", "snnc-lp", "snnc-ap", "gaussian", "ltb", "best", "sharpen")
"""Recipes that are also calibrated on three images: of four processes one has nothing to do."""
SIZES = [2, pytest.param(4, marks=pytest.mark.slow)]


@pytest.fixture
def images() -> Tensor:
    return _images(13)


def _images(count: int) -> Tensor:
    return torch.randn(count, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def gap(one: ftbc.SpikingNetwork, other: ftbc.SpikingNetwork) -> float:
    """The largest difference of all that calibration learns; all of it must be there."""
    mine, theirs = one.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys() and all(mine[key].shape == theirs[key].shape for key in mine)
    return max(float((mine[key] - theirs[key]).abs().max()) for key in mine)


@functools.cache
def converted(size: int) -> list[dict[str, ftbc.SpikingNetwork]]:
    """What each process of a team gives; all recipes at once, for processes take time to start."""
    return in_team(size, _convert_all) if size > 1 else [_convert_all(Team())]


def _convert_all(team: Team) -> dict[str, ftbc.SpikingNetwork]:
    room, flow._ROOM = flow._ROOM, 1 << 14  # else these small networks take all images at once
    try:
        return _converted(team)
    finally:
        flow._ROOM = room


def _converted(team: Team) -> dict[str, ftbc.SpikingNetwork]:
    torch.manual_seed(0)
    plain, trained, other = residual(), residual(QCFS(levels=4, threshold=1.5)), depthwise()
    images = _images(13)
    found = {name: ftbc.convert(plain, images, 3, recipe, team=team) for name, recipe in {**EQUAL, **CLOSE}.items()}
    found |= {name: ftbc.convert(trained, images, 3, recipe, team=team) for name, recipe in TRAINED.items()}
    for name in FEW:
        found[f"few {name}"] = ftbc.convert(other, images[:3], 3, {**EQUAL, **CLOSE}[name], team=team)
    # A batch of twelve, and one of a single image.
    uneven = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1, batch=12),))
    return {**found, "uneven": ftbc.convert(other, images, 3, uneven, team=team)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*EQUAL, "uneven"])
def test_counts_and_maxima_do_not_depend_on_processes(name: str, size: int) -> None:
    alone = converted(1)[0][name]
    for found in converted(size):
        assert gap(alone, found[name]) == 0.0 and found[name].layers() == alone.layers()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*CLOSE, *TRAINED, *(f"few {name}" for name in FEW)])
def test_sums_hardly_depend_on_processes(name: str, size: int) -> None:
    one, *others = converted(size)
    assert gap(converted(1)[0][name], one[name]) < 1e-9
    assert all(gap(one[name], other[name]) == 0.0 for other in others), "all have the same network"


class _Counting(Team):
    """A team that counts its messages."""

    messages: ClassVar[list[int]] = []

    def _reduced(self, own: Tensor, operation: Any) -> Tensor:
        self.messages.append(8 * own.numel())
        return super()._reduced(own, operation)


def test_one_message_for_each_layer_and_step(images: Tensor) -> None:
    """The traffic that docs/scale.md counts: the channels of a layer, and the number of images."""
    model = residual()
    one, two = (in_team(2, _messages, model, images, batches)[0] for batches in (1, 2))
    layers = ftbc.convert(model, images, 3, "mean-square").layers()
    assert two[len(one) :] == [8 * (layer.shape[0] + 1) for _ in range(3) for layer in layers]


def _messages(team: Team, model: nn.Module, images: Tensor, batches: int) -> list[int]:
    recipe = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1, batch=6, batches=batches),))
    ftbc.convert(model, images, 3, recipe, team=_Counting(team.rank, team.size))
    return _Counting.messages


# ---- evaluation ------------------------------------------------------------------------------------------


def test_every_image_is_seen_once() -> None:
    for count in (1, 2, 7, 8):
        batches = [(torch.full((3 if i < count - 1 else 2,), i), None) for i in range(count)]
        for size in (1, 2, 3, 5):
            seen, lengths = [], set()
            for rank in range(size):
                taken = list(turns(batches, Team(rank, size)))
                lengths.add(len(taken))
                assert taken[-1].seen == 3 * count - 1
                seen += [(int(turn.own[0][0]), turn.begins) for turn in taken if turn.own is not None]
            assert sorted(seen) == [(i, 3 * i) for i in range(count)] and len(lengths) == 1


@pytest.mark.parametrize("size", SIZES)
def test_evaluations_are_equal(size: int) -> None:
    model = residual()
    x = torch.randn(57, *INPUT_SHAPE, dtype=torch.float64)
    model.head.bias.data -= model(x).mean(0)  # else it answers all images alike
    y = model(x).argmax(1)
    batches = list(zip(x.split(9), y.split(9), strict=True))
    snn = ftbc.convert(model, x[:12], 3, "mean-square")
    alone = _evaluate(Team(), snn, batches, model)
    assert alone.images == 57 and alone.reference_accuracy == 100.0 and alone.accuracy[0] < 100.0
    for found in in_team(size, _evaluate, snn, batches, model):
        assert found.error == pytest.approx(alone.error, rel=1e-12)  # sums of real numbers
        assert dataclasses.replace(found, error=alone.error) == alone


def _evaluate(team: Team, snn: ftbc.SpikingNetwork, batches: Any, model: nn.Module) -> ftbc.Evaluation:
    return ftbc.evaluate(snn, batches, model, stop=ftbc.Confidence(0.6), counted_images=20, team=team)


def test_an_error_of_one_is_an_error_of_all(images: Tensor) -> None:
    """Numbers that only one of them sees: none must wait for it."""
    model = residual()
    model.conv1.weight.data *= 1e200
    images[-1] *= 1e200
    found = in_team(3, _convert, model, images)
    assert [type(error) for error in found] == [NotFiniteError] * 3 and len({str(error) for error in found}) == 1
    snn, labels = ftbc.convert(residual(), images[:4], 2, "maximum"), torch.zeros(4, dtype=torch.int64)
    found = in_team(2, _evaluate, snn, [(images[:4], labels), (images[:4, :2], labels)], residual())
    assert [type(error) for error in found] == [InputError] * 2 and "shape" in str(found[0])


def _convert(team: Team, model: nn.Module, images: Tensor) -> ftbc.SpikingNetwork:
    return ftbc.convert(model, images, 3, EQUAL["maximum"], team=team)


def test_errors_travel_whole() -> None:
    first, second = in_team(2, _fail)
    assert type(first) is ModelError and str(first) == str(second) == "no such thing"


def _fail(team: Team) -> None:
    with team.agreed():
        if team.rank == 1:
            raise ModelError("no such thing")


def test_tables_are_equal(tmp_path: Path, images: Tensor) -> None:
    model = residual()
    x = torch.randn(31, *INPUT_SHAPE, dtype=torch.float64)
    exam = (x, model(x).argmax(1))
    alone = _compare(Team(), model, images, exam, None)
    assert "qcfs" in alone.refused()
    for counts in ((8, 0), (0, 8)):
        for table in in_team(2, _compare, model, images, exam, tmp_path):
            assert isinstance(table, ftbc.Comparison), table
            assert timeless(table) == timeless(alone) and table.ann == alone.ann
            assert (table.measured, table.kept) == counts


def timeless(table: ftbc.Comparison) -> list[Any]:
    return [dataclasses.replace(row, calibration_seconds=None) for row in table.rows]


def _compare(team: Team, model: nn.Module, images: Tensor, exam: Any, results: Path | None) -> ftbc.Comparison:
    recipes = ["maximum", ftbc.recipe("ftbc", name="quick", calibrate=(QUICK,)), "qcfs"]
    return ftbc.compare(
        model, images, exam, recipes, (1, 3), seeds=2, images=8, limit=9, full_up_to=1, results=results, team=team
    )


# ---- teams -----------------------------------------------------------------------------------------------


def test_parts_cover_everything() -> None:
    for count in range(9):
        for size in (1, 2, 3, 5):
            whole = [i for rank in range(size) for i in range(count)[Team(rank, size).own(count)]]
            assert whole == list(range(count))


def test_alone_by_default(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with team() as own:
        assert (own.rank, own.size, own.leads, own.device.type) == (0, 1, True, "cpu")
    refused(InputError, ("'tpu'", "cpu"), team("tpu").__enter__)
    if not torch.cuda.is_available():
        refused(InputError, ("'cuda'", "cpu"), team("cuda").__enter__)
