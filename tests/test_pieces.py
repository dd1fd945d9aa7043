"""Pieces of one's own: in recipes, in files, in saved networks, and what is kept of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import ftbc
from ftbc import pieces
from ftbc.calibrate.base import Calibration
from ftbc.errors import FtbcError, RecipeError
from ftbc.pieces import Elsewhere
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, residual

ALL = {"threshold": "MeanSquare", "initial": "Half", "neuron": "Plain", "calibrate": "FTBC"}


@ftbc.piece("calibrate")
@dataclass(frozen=True)
class Lift(ftbc.Piece):
    by: float = 0.25

    def __call__(self, calibration: Calibration) -> None:
        for node in calibration.neurons():
            node.module.bias.add_(self.by * node.module.threshold)  # type: ignore[operator, union-attr]


@ftbc.piece("threshold")
@dataclass(frozen=True)
class Same(ftbc.Piece):
    theta: float = 2.0

    def choose(self, ann: Any, images: Tensor, *_: Any) -> dict[str, Tensor]:
        sites = [node.name for node in ann if type(node.module).__name__ == "Activation"]
        return {name: images.new_full((1,), self.theta) for name in sites}


@ftbc.piece("initial")
@dataclass(frozen=True)
class Full(ftbc.Piece):
    def __call__(self, theta: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        return theta, theta.new_zeros((steps, *theta.shape))


MINE = ftbc.Recipe(name="mine", threshold=Same(), initial=Full(), calibrate=[Lift(by=0.5)])  # type: ignore[list-item]


@pytest.fixture
def images() -> Tensor:
    return torch.randn(10, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_they_do_what_they_say(images: Tensor) -> None:
    snn = ftbc.convert(residual().eval(), images, 3, MINE)
    for node in snn.graph.of_type(ftbc.neuron.IntegrateFire):  # type: ignore[attr-defined]
        neuron: Any = node.module
        assert float(neuron.threshold.unique()) == 2.0 and float(neuron.initial.unique()) == 2.0
        assert float(neuron.bias.unique()) == 1.0


def test_a_recipe_survives_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.to_toml())
    assert ftbc.read_recipe(tmp_path / "mine.toml") == MINE
    assert ftbc.Recipe.from_dict(MINE.to_dict()) == MINE


def test_a_saved_network_needs_them_not(
    images: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    """Who is sent the file has not the code: the network runs, and its recipe is a record."""
    model = residual().eval()
    snn = ftbc.convert(model, images, 3, MINE)
    snn.save(tmp_path / "net.snn")
    monkeypatch.setattr(pieces, "_OWN", {role: {} for role in pieces._OWN})
    there = ftbc.load(tmp_path / "net.snn")
    assert torch.equal(there(images), snn(images))
    assert there.recipe.to_dict() == MINE.to_dict() and there.recipe.calibrate == (Elsewhere("Lift", (("by", 0.5),)),)
    there.save(tmp_path / "again.snn")
    assert (tmp_path / "again.snn").read_bytes() == (tmp_path / "net.snn").read_bytes()
    refused(RecipeError, "'Same' is not known here: import", ftbc.convert, model, images, 3, there.recipe)
    refused(RecipeError, "no piece of type 'Same'", ftbc.Recipe.from_dict, MINE.to_dict())
    refused(RecipeError, "is a list", Elsewhere, "Lift", (("by", [1]),))


def test_what_is_kept_holds_for_one_code(images: Tensor, tmp_path: Path) -> None:
    """A measurement of a piece that has been rewritten since is made again."""
    file = tmp_path / "shift.py"
    code = (
        "from dataclasses import dataclass\nimport ftbc\n\n@ftbc.piece('calibrate')\n@dataclass(frozen=True)\n"
        "class Shift(ftbc.Piece):\n    def __call__(self, calibration):\n"
        "        for node in calibration.neurons():\n            node.module.bias.add_(SIZE)\n"
        "mine = ftbc.Recipe(name='mine', calibrate=[Shift()])\n"
    )
    from ftbc.cli.options import find_recipe

    model, test = residual().eval(), (images, torch.arange(10) % 3)

    def measured(size: str) -> tuple[int, int]:
        file.write_text(code.replace("SIZE", size))
        table = ftbc.compare(
            model, images, test, [find_recipe(f"{file}:mine")], [2], seeds=1, results=tmp_path / "kept"
        )
        return table.measured, table.kept

    assert measured("0.1") == (1, 0) and measured("0.1") == (0, 1) and measured("0.2") == (1, 0)
    assert "code" not in ftbc.recipe("best").key() and set(MINE.key()["code"]) == {"Same", "Full", "Lift"}


@pytest.mark.parametrize("role", ALL)
def test_each_part_takes_pieces_of_its_role_alone(role: str, refused: Refused) -> None:
    for other, name in ALL.items():
        piece = pieces.named({"type": name})
        assert pieces.fits(piece, role) == (other == role)
        if other != role:
            given = (piece,) if role == "calibrate" else piece
            said = refused(RecipeError, f"is not one of {pieces.names(role)}", ftbc.Recipe, **{role: given})
            assert ALL[role] in said


THRESHOLDS = {
    "no dict": ("give a dict", lambda good: list(good)),
    "a site is missing": ("gave no threshold for", lambda good: dict(list(good.items())[1:])),
    "no site": ("is no site", lambda good: {**good, "nowhere": torch.ones(1)}),
    "not a number": ("not finite and above 0", lambda good: {name: theta * torch.nan for name, theta in good.items()}),
    "negative": ("not finite and above 0", lambda good: {name: -theta for name, theta in good.items()}),
    "zero": ("not finite and above 0", lambda good: {name: 0 * theta for name, theta in good.items()}),
    "another shape": ("shape [1] or", lambda good: {name: torch.ones(7) for name in good}),
    "no tensor": ("a float", lambda good: dict.fromkeys(good, 1.0)),
}
CHARGES = {
    "one tensor": ("no pair", lambda theta, steps: theta),
    "another shape": ("give v[0]", lambda theta, steps: (theta, theta)),
    "not a number": ("finite", lambda theta, steps: (theta * torch.inf, theta.new_zeros((steps, *theta.shape)))),
}


@pytest.mark.parametrize("case", THRESHOLDS)
def test_thresholds_that_mean_nothing(case: str, images: Tensor, refused: Refused) -> None:
    words, spoil = THRESHOLDS[case]

    @dataclass(frozen=True)
    class Spoilt(Same):
        def choose(self, ann: Any, images: Tensor, *rest: Any) -> Any:
            return spoil(super().choose(ann, images, *rest))

    ftbc.piece("threshold")(Spoilt)
    refused(RecipeError, ("Spoilt", words), ftbc.convert, residual().eval(), images, 3, ftbc.Recipe(threshold=Spoilt()))


@pytest.mark.parametrize("case", CHARGES)
def test_charges_that_mean_nothing(case: str, images: Tensor, refused: Refused) -> None:
    words, charge = CHARGES[case]

    @dataclass(frozen=True)
    class Odd(ftbc.Piece):
        def __call__(self, theta: Tensor, steps: int) -> Any:
            return charge(theta, steps)

    ftbc.piece("initial")(Odd)
    refused(RecipeError, ("Odd", words), ftbc.convert, residual().eval(), images, 3, ftbc.Recipe(initial=Odd()))


def test_what_is_no_piece(refused: Refused) -> None:
    class Loose:
        def __call__(self, calibration: Calibration) -> None: ...

    @dataclass(frozen=True)
    class Idle(ftbc.Piece):
        pass

    @dataclass(frozen=True)
    class FTBC(ftbc.Piece):
        def __call__(self, calibration: Calibration) -> None: ...

    refused(RecipeError, "no own pieces of role 'neuron'", ftbc.piece, "neuron")
    refused(RecipeError, "'Loose' must be a dataclass(frozen=True) that inherits", ftbc.piece("calibrate"), Loose)
    refused(RecipeError, "'Idle' has no __call__", ftbc.piece("calibrate"), Idle)
    refused(RecipeError, "'Idle' has no choose", ftbc.piece("threshold"), Idle)
    refused(RecipeError, "a piece 'FTBC' already", ftbc.piece("calibrate"), FTBC)
    refused(RecipeError, "a piece 'Lift' already", ftbc.piece("initial"), Lift)
    assert ftbc.piece("calibrate")(Lift) is Lift, "a cell of a notebook may be run again"
    refused(FtbcError, "is not a piece of a recipe", pieces.named, 3)
