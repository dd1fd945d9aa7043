"""The figures: each against a slow and obvious way to the same numbers."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import ftbc
from ftbc.calibrate import FTBC
from ftbc.calibrate.base import Calibration
from ftbc.errors import FileError, InputError
from ftbc.measure.membrane import before_firing
from ftbc.measure.speed import folded
from ftbc.neuron import Spiking
from ftbc.recipes import recipe
from ftbc.reproduce import membranes, stability
from ftbc.reproduce.bias_search import Density, search
from ftbc.reproduce.overview import mean_outputs
from ftbc.reproduce.run import reproduce
from ftbc.reproduce.stability import calibration_course
from ftbc.reproduce.written import as_csv, write

from ..conftest import Refused
from .tiny import setting_of


def network() -> tuple[torch.nn.Module, torch.Tensor]:
    layers = [torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(27, 5), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(5, 3)).double(), torch.rand(40, 2, 5, 5, dtype=torch.float64)


# ---- stability -------------------------------------------------------------------------------------------


def test_the_course_is_that_of_ftbc() -> None:
    model, x = network()
    base, piece = recipe("ftbc-cifar"), FTBC(alpha=0.5, batch=16, batches=1, iterations=1, clip=False)
    course = []
    for snn in calibration_course(model, x, 4, base, piece, batches=3, seed=5):
        course.append({node.name: node.module.bias.clone() for node in snn.graph.of_type(Spiking)})
    assert len(course) == 4
    for done in range(4):
        plain = ftbc.convert(model, x, 4, replace(base, calibrate=()), seed=5)
        state = Calibration(folded(model, x[:1]), plain.graph, 4, x, torch.Generator().manual_seed(5))
        if done:
            replace(piece, iterations=done)(state)
        for node in plain.graph.of_type(Spiking):
            assert isinstance(node.module, Spiking)
            wanted = node.module.bias.expand_as(course[done][node.name])
            torch.testing.assert_close(course[done][node.name], wanted, rtol=0, atol=1e-12)
    assert not torch.equal(course[0]["1"], course[3]["1"])


def test_stability_is_kept_and_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, measured = stability.evaluate, []

    def killed(*args: object, **named: object) -> ftbc.Evaluation:
        measured.append(1)
        if len(measured) == 5:
            raise KeyboardInterrupt
        return real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(stability, "evaluate", killed)
    with pytest.raises(KeyboardInterrupt):
        reproduce(setting_of(place, "course"))
    found = reproduce(setting_of(place, "course"))
    assert (found.measured, found.kept) == (2, 4) and len(measured) == 5 + 2
    again = reproduce(setting_of(place, "course", measure=False))
    assert (again.measured, again.kept) == (0, 6) and again.figure is not None and found.figure is not None
    assert again.figure.rows == found.figure.rows and len(found.figure.rows) == 2 * 3 * 2
    monkeypatch.setattr(stability, "evaluate", real)
    setting = setting_of(place, "course")
    setting.folder = place / "other"
    fresh = reproduce(setting).figure
    assert fresh is not None and fresh.rows == found.figure.rows


# ---- membranes -------------------------------------------------------------------------------------------


def test_membranes_before_firing_by_loops() -> None:
    model, x = network()
    snn = ftbc.convert(model, x, 4, recipe("ftbc-cifar", calibrate=(FTBC(iterations=2, batch=16),)))
    first, second = (node.module for node in snn.graph.of_type(Spiking))
    assert isinstance(first, Spiking) and isinstance(second, Spiking)
    currents = model[0](x)
    v = first.spread(first.initial).expand_as(currents).clone()
    u = second.spread(second.initial).expand(len(x), 5).clone()
    names = [node.name for node in snn.graph.of_type(Spiking)]
    for t in range(4):
        v = v + currents + first.spread(first.bias[t])
        torch.testing.assert_close(before_firing(snn, x, names[0], t + 1), v)
        theta = first.spread(first.threshold)
        s = theta * (v >= theta)
        v = v - s
        u = u + model[3](s.flatten(1)) + second.bias[t]
        torch.testing.assert_close(before_firing(snn, x, names[1], t + 1), u)
        u = u - second.threshold * (u >= second.threshold)


def test_membranes_of_what_is_not_there(refused: Refused) -> None:
    model, x = network()
    snn = ftbc.convert(model, x, 4, "mean-square")
    refused(InputError, ("'7'", "1, 4"), before_firing, snn, x, "7", 1)
    refused(InputError, "step 5", before_firing, snn, x, "1", 5)
    refused(InputError, "plain neurons", before_firing, ftbc.convert(model, x, 4, "burst"), x, "1", 1)


def test_a_layer_that_is_not_calibrated_yet() -> None:
    model, x = network()
    base = recipe("ftbc-cifar", calibrate=(FTBC(iterations=2, batch=16),))
    plain, calibrated = ftbc.convert(model, x, 4, replace(base, calibrate=())), ftbc.convert(model, x, 4, base)
    snn = membranes.not_yet(plain, calibrated, "4", 3)
    torch.testing.assert_close(snn.graph["1"].module.bias, calibrated.graph["1"].module.bias)
    torch.testing.assert_close(snn.graph["4"].module.bias[:2], calibrated.graph["4"].module.bias[:2])
    rows = plain.graph["4"].module.bias[2:]
    torch.testing.assert_close(snn.graph["4"].module.bias[2:], rows.expand(2, 5))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.4, 1.0])
def test_the_correction_makes_a_share_fire(share: float) -> None:
    potentials = torch.randn(500, dtype=torch.float64)
    b = membranes.correction_for(potentials, 0.7, share)
    assert float((potentials + b >= 0.7 - 1e-12).double().mean()) == pytest.approx(share)


def test_membrane_files(place: Path, refused: Refused) -> None:
    found = reproduce(setting_of(place, "potentials"))
    assert {path.name for path in write(found, place / "out")} >= {"potentials.png", "potentials.md", "potentials.tex"}
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert len(rows) == 2 * 20 and {(row["layer"], row["step"]) for row in rows} == {("3", "1"), ("2", "2")}
    assert (found.measured, found.kept) == (2, 0)
    assert (reproduce(setting_of(place, "potentials")).kept) == 2
    text = (place / "potentials.toml").read_text()
    (place / "deep.toml").write_text(text.replace("layer = 3", "layer = 99"))
    refused(FileError, ("layer 99", "3 spiking layers"), reproduce, setting_of(place, "deep"))


# ---- the other figures -----------------------------------------------------------------------------------


def test_mean_outputs_by_hand() -> None:
    model, x = network()
    snn = ftbc.convert(model, x, 3, "mean-square")
    node = snn.graph.of_type(Spiking)[0]
    theta = node.module.spread(node.module.threshold)  # type: ignore[operator]
    v, wanted = theta / 2 + torch.zeros(40, 3, 3, 3, dtype=torch.float64), []
    for _ in range(3):
        v = v + model[0](x)
        s = theta * (v >= theta)
        v = v - s
        wanted.append(s.mean((0, 2, 3)))
    torch.testing.assert_close(mean_outputs(snn, x, node.name), torch.stack(wanted))


def test_the_figures_are_written(place: Path) -> None:
    for name, drawn in (("course", "course.png"), ("scheme", "scheme.png")):
        found = reproduce(setting_of(place, name, "small", command=f"ftbc reproduce {name}"))
        paths = {path.name: path for path in write(found, place / "out")}
        assert len(paths) == 5 and paths[drawn].read_bytes().startswith(b"\x89PNG")
        page = paths[f"{name}.md"].read_text()
        assert f"![{found.experiment.title}]({drawn})" in page and "tiny with net.safetensors" in page
        assert all(sentence in page for sentence in found.figure.said)  # type: ignore[union-attr]
        assert "includegraphics" in paths[f"{name}.tex"].read_text()


def test_figures_that_cannot_be_made(place: Path, refused: Refused) -> None:
    setting = setting_of(place, "course")
    setting.material = replace(setting.material, data={}, weights=None)
    refused(InputError, ("course", "net.safetensors", "--data cifar10=PATH"), reproduce, setting)
    text = (place / "course.toml").read_text()
    for before, after, word in (
        ("[networks.subject]", "[networks.other]", "no network"),
        ("batches = 2", "", "batches"),
        ("batches = 2", "batches = 2\nbatchs = 3", "batchs"),
        ("alphas = [0.5, 1.0]", "alphas = 3", "alphas"),
    ):
        (place / "bad.toml").write_text(text.replace(before, after))
        refused(FileError, word, reproduce, setting_of(place, "bad"))
    refused(FileError, ("does not hold", "let it be measured"), reproduce, setting_of(place, "course", measure=False))


# ---- the proposition -------------------------------------------------------------------------------------


def test_density_against_its_integral() -> None:
    density = Density(-0.5, 1.3, 2.0, 3.0)
    x = torch.linspace(-0.5, 1.3, 200_001, dtype=torch.float64)
    steps = torch.cumulative_trapezoid(density.at(x), x)
    assert float(steps[-1]) == pytest.approx(1, abs=1e-6)
    for share in (0.1, 0.4, 0.9):
        place = float(x[1:][steps >= share][0])
        assert density.quantile(share) == pytest.approx(place, abs=1e-4)
        drawn = density.draw(200_000, torch.Generator().manual_seed(0))
        # E[H(x + b* - 1)] = share: what the proposition says of b*.
        assert float((drawn + density.bias_for(share) >= 1).double().mean()) == pytest.approx(share, abs=5e-3)


def test_the_uniform_density_gives_one_half() -> None:
    assert Density(0.0, 1.0, 1.0, 1.0).bias_for(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_rule_finds_the_bias(share: float) -> None:
    density = Density(-0.5, 1.3, 2.0, 3.0)
    course = search(density, share, rate=0.2, batch=2000, iterations=200)
    assert abs(course[-1] - density.bias_for(share)) < 0.02 < abs(course[0] - density.bias_for(share))
