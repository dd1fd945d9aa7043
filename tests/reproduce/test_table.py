"""A tiny table from its file to its files: what it measures, keeps, writes, and says of what it lacks."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

import ftbc
from ftbc.errors import FtbcError, InputError
from ftbc.protocol import work
from ftbc.reproduce.page import as_markdown
from ftbc.reproduce.run import reproduce
from ftbc.reproduce.setting import scale_of
from ftbc.reproduce.written import as_csv, as_latex, panels, write

from ..conftest import Refused
from .tiny import setting_of


def test_lines_are_what_conversions_give(place: Path) -> None:
    setting = setting_of(place, "tiny")
    found = reproduce(setting)
    lines = {line.paper.method: line for line in found.lines}
    assert list(lines) == ["FTBC", "QCFS", "RTS", "TET_x"] and (found.measured, found.kept) == (4, 0)
    (source,) = (setting.experiment.networks["net"]["full"],)
    model, test = setting.material.network(source), setting.material.test("cifar10", source)
    for t in (1, 2):
        accuracies = [
            ftbc.evaluate(
                ftbc.convert(
                    model, setting.material.draws("cifar10", source, 16)(seed), t,
                    lines["FTBC"].paper.method_here("full"), seed=seed,
                ),
                test,
            ).accuracy[-1]
            for seed in (0, 1)
        ]  # fmt: skip
        assert lines["FTBC"].rows[t].accuracies == tuple(accuracies)
        assert lines["FTBC"].here(t) == pytest.approx(sum(accuracies) / 2)
    assert lines["FTBC"].difference(1) == pytest.approx((lines["FTBC"].here(1) or 0) - 50.0)
    assert lines["FTBC"].difference(2) is None and lines["FTBC"].difference(4) is None
    assert lines["FTBC"].ann == ftbc.evaluate(ftbc.convert(model, test, 1, "maximum"), test, model).reference_accuracy
    assert "plain ReLU" in lines["QCFS"].reason and "gone.safetensors" in lines["RTS"].reason
    assert not lines["TET_x"].rows and not lines["TET_x"].reason
    assert "standard deviation" in as_markdown(found) and " ± " in as_markdown(found)
    assert list(found.lacking().values()) == [["QCFS (ResNet-20 on CIFAR-10)"], ["RTS (ResNet-20 on CIFAR-10)"]]


def test_a_killed_run_goes_on_and_a_second_is_over_at_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = work.convert

    def killed(*args: object, **named: object) -> ftbc.SpikingNetwork:
        made.append(1)
        if len(made) == 4:
            raise KeyboardInterrupt
        return real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(work, "convert", killed)
    with pytest.raises(KeyboardInterrupt):
        reproduce(setting_of(place, "tiny"))
    begun = len(list((place / "kept").glob("t*.json")))
    assert 0 < begun < 4
    second = reproduce(setting_of(place, "tiny"))
    assert (second.measured, second.kept) == (4 - begun, begun)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(work, "convert", lambda *a, **k: never() if a[3].name == "FTBC" else real(*a, **k))
    third = reproduce(setting_of(place, "tiny"))
    assert (third.measured, third.kept) == (0, 4)
    assert [line.rows for line in third.lines] == [line.rows for line in second.lines]
    shown = reproduce(setting_of(place, "tiny", measure=False))
    assert shown.lines[0].rows == third.lines[0].rows


def test_nothing_measured_is_an_error(place: Path, refused: Refused) -> None:
    setting = setting_of(place, "tiny", measure=False)
    refused(InputError, ("tiny", "not measured yet"), reproduce, setting)
    setting = setting_of(place, "tiny")
    setting.material = replace(setting.material, weights=None)
    refused(InputError, ("tiny", "net.safetensors", "--weights"), reproduce, setting)
    setting.material = replace(setting.material, data={}, weights=place / "weights")
    refused(InputError, ("tiny", "--data cifar10=PATH"), reproduce, setting)


def test_a_part_without_figures_is_named_but_not_drawn(place: Path) -> None:
    row = '[[part.row]]\nmethod = "FTBC"\nrecipe = "ftbc"\npaper = {}\nnetwork = '
    with (place / "tiny.toml").open("a") as file:
        for title, network in (("Measured", "net"), ("Lacking", "gone")):
            file.write(f'[[part]]\ntitle = "{title}"\ndata = "cifar10"\n{row}"{network}"\n')
        file.write(row.replace('method = "FTBC"', 'method = "again"') + '"gone"\n')
    found = reproduce(setting_of(place, "tiny"))
    drawn = panels(found)
    assert list(drawn) == ["ResNet-20 on CIFAR-10", "Measured"]
    paper, here = drawn["Measured"]
    assert paper == {"FTBC": {}} and set(here["FTBC"]) == {1, 2}
    (missing,) = [names for names in found.lacking().values() if "Lacking" in names]
    assert not any("again" in name for name in missing), "one name for all lines of a part"
    page = as_markdown(found)
    assert "## Measured" in page and "## Lacking" not in page and "Lacking" in page.split("## Not measured")[1]


def test_files(place: Path) -> None:
    found = reproduce(setting_of(place, "tiny", "small", command="ftbc reproduce tiny"))
    paths = write(found, place / "out" / "deep")
    assert [path.name for path in paths] == ["tiny.png", "tiny.svg", "tiny.csv", "tiny.tex", "tiny.md"]
    assert paths[0].read_bytes().startswith(b"\x89PNG") and b"<svg" in paths[1].read_bytes()
    rows = list(csv.DictReader(io.StringIO(paths[2].read_text())))
    line = found.lines[0]
    assert [(row["method"], row["steps"], row["paper"]) for row in rows] == [
        ("FTBC", "1", "50.0"), ("FTBC", "2", ""), ("FTBC", "4", "60.25"), ("QCFS", "1", "40.0"), ("RTS", "1", "30.0"),
        ("TET_x", "2", "20.0"),
    ]  # fmt: skip
    assert float(rows[0]["here"]) == line.here(1) and float(rows[0]["difference"]) == line.difference(1)
    assert (
        rows[0]["test_images"] == "10"
        and rows[0]["calibration_images"] == "16"
        and '"alpha": 0.2' in rows[0]["calibrate"]
    )
    assert rows[2]["here"] == "" and "gone.safetensors" not in rows[0]["reason"]
    page = paths[4].read_text()
    assert f"| FTBC | paper | 95.00 | 50.00 | - | 60.25 |\n|  | here | {line.ann:.2f} | {line.here(1):.2f} |" in page
    assert f"|  | difference | {line.ann - 95:+.2f} | {line.difference(1):+.2f} | - | - |" in page  # type: ignore[operator]
    assert "| TET_x (training through time) | paper | - | - | 20.00 | - |" in page
    assert "`ftbc reproduce tiny`" in page and "torch" in page and "![A tiny table](tiny.png)" in page
    assert "## Not measured" in page and "a network at scale small" in page and "- A note." in page
    latex = paths[3].read_text()
    assert latex.startswith("% needs") and "made by ftbc reproduce tiny" in latex.splitlines()[0]
    assert f" & here & {line.ann:.2f} & {line.here(1):.2f} & {line.here(2):.2f} & -- \\\\" in latex
    assert "TET\\_x & paper" in latex and latex.count("\\begin") == latex.count("\\end")
    assert "100 %" not in latex


def test_a_table_that_is_not_in_the_paper(place: Path) -> None:
    text = (place / "tiny.toml").read_text().replace('source = "tab:tiny"', "").replace("1 = 50.0, 4 = 60.25", "")
    pieces = '{ type = "QuantileBias", clip = false }'
    text = text.replace("settings = { iterations = 2, batch = 8, batches = 1, alpha = 0.2 }", f"calibrate = [{pieces}]")
    (place / "own.toml").write_text(text)
    found = reproduce(setting_of(place, "own", "small"))
    line, page = found.lines[0], as_markdown(found)
    assert line.recipe["calibrate"] == [{"type": "QuantileBias", "clip": False, "rows": 65536}]
    assert f"| FTBC | here | {line.ann:.2f} | {line.here(1):.2f} | {line.here(2):.2f} |" in page
    assert "In the paper" not in page and "difference" not in page
    assert "of the paper" not in as_latex(found) and "FTBC & here" in as_latex(found)
    assert as_csv(found).splitlines()[1].startswith("own,,small,ResNet-20 on CIFAR-10,FTBC,1,,")


def test_scales(place: Path, refused: Refused) -> None:
    experiment = setting_of(place, "tiny").experiment
    assert scale_of(experiment, "full", seeds=5).seeds == 5
    assert scale_of(experiment, "small", test_images=3).test_images == 3
    assert scale_of(experiment, "full", most_steps=1).steps == (1,)
    refused(FtbcError, ("huge", "full or small"), scale_of, experiment, "huge")
    limited = ftbc.reproduce.experiments()["imagenet"]
    refused(FtbcError, ("imagenet", "4, 8"), scale_of, limited, "small", most_steps=2)


def test_a_limit_above_the_number_of_test_images_is_none(place: Path) -> None:
    setting = setting_of(place, "tiny")
    setting.scale = replace(setting.scale, seeds=1, limit=2000, full_up_to=1)
    assert {row.test_images for row in reproduce(setting).lines[0].rows.values()} == {20}
    setting.scale = replace(setting.scale, limit=10)
    assert [row.test_images for row in reproduce(setting).lines[0].rows.values()] == [20, 10]


def test_wrong_data(place: Path, refused: Refused) -> None:
    setting = setting_of(place, "tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ftbc.reproduce.material.CLASSES, "cifar10", 5)
        refused(InputError, ("pictures", "label 9", "not cifar10"), reproduce, setting)
