"""Pages written by commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import ftbc

from .conftest import Outcome

Command = Callable[..., Outcome]


def _data(path: Path) -> dict:
    found = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_report_shows_what_evaluate_measures(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command(
        "report", "nets.py:good", "--data", "squares", "--images", "16", "--steps", "3", "--recipe", "mean-square",
        "--against", "maximum", "--to", "page.html", "--json", "page.json",
    )  # fmt: skip
    assert outcome.status == 0 and not outcome.err and "The report is in page.html" in outcome.out
    data, written = _data(folder / "page.html"), json.loads((folder / "page.json").read_text())
    assert [series["name"] for series in data["series"]] == ["mean-square", "maximum"]
    assert written["series"] == data["series"] and written["baselines"] == data["baselines"]
    shown = ftbc_command(
        "evaluate", "nets.py:good", "--data", "squares", "--images", "16", "--steps", "3", "--recipe", "mean-square",
        "--energy", "--json", "e.json",
    )  # fmt: skip
    (row,) = json.loads((folder / "e.json").read_text())["results"]
    table = [re.split(r"  +", line.strip()) for line in shown.out.partition("an image:\n")[2].splitlines()[:5]]
    assert table[0] == ["t", "accuracy", *row["energies"]] and [line[0] for line in table[1:]] == ["1", "2", "3", "ANN"]
    assert table[3][2:] == [f"{values[2]:.4g}" for values in row["energies"].values()]
    assert table[4][2] == f"{row['reference_energy']:.4g}" and table[4][-1] == "-"
    points = data["series"][0]["points"]
    assert [point["accuracy"] for point in points] == row["accuracy"]
    assert [point["energy"]["45 nm, 32-bit float"] for point in points] == row["energy"]
    assert len(data["answers"]) == 12 and len(data["layers"]) == 2


def test_report_of_a_saved_network(ftbc_command: Command, folder: Path) -> None:
    options = ("--data", "squares", "--images", "16")
    made = ftbc_command(
        "convert", "nets.py:good", *options, "--steps", "2", "--recipe", "mean-square", "--to", "net.snn",
        "--report", "made.html",
    )  # fmt: skip
    assert made.status == 0 and not made.err and "The report is in made.html" in made.out
    outcome = ftbc_command("report", "nets.py:good", *options, "--snn", "net.snn", "--against", "", "--to", "page.html")
    assert outcome.status == 0 and not outcome.err
    assert _data(folder / "page.html")["series"] == _data(folder / "made.html")["series"]
    (series,) = _data(folder / "page.html")["series"]
    direct = ftbc.evaluate(ftbc.load(folder / "net.snn"), ftbc.data.read(folder / "squares", "test"))
    assert [point["accuracy"] for point in series["points"]] == direct.accuracy


def test_compare_writes_a_page_of_its_table(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command(
        "compare", "nets.py:good", "--data", "squares", "--images", "16", "--steps", "1,2", "--seeds", "2",
        "--recipes", "maximum,mean-square", "--report", "page.html", "--energy-plot", "energy.svg",
        "--json", "table.json",
    )  # fmt: skip
    assert outcome.status == 0 and not outcome.err
    data, table = _data(folder / "page.html"), json.loads((folder / "table.json").read_text())
    drawn = (folder / "energy.svg").read_text()
    assert "<svg" in drawn and len(re.findall("microjoules", drawn)) == 1
    found = [(s["name"], p["t"], p["accuracy"], p["spread"]) for s in data["series"] for p in s["points"]]
    assert found == [(row["recipe"], row["steps"], row["accuracy"], row["spread"]) for row in table["rows"]]
    assert data["perT"] and data["layers"] == [] and data["baselines"][0]["accuracy"] == table["ann"]["2"]


def test_a_method_against_itself(fails: Callable[..., str]) -> None:
    line = fails("report", "nets.py:good", "--recipe", "maximum", "--against", "mean-square,maximum")
    assert "--against mean-square,maximum" in line and "'maximum'" in line


def test_a_page_that_cannot_be_written(fails: Callable[..., str]) -> None:
    assert "nowhere" in fails("report", "nets.py:good", "--data", "squares", "--to", "nowhere/page.html")
    for command in (("convert", "--to", "x.snn"), ("compare",)):
        line = fails(command[0], "nets.py:good", *command[1:], "--data", "squares", "--report", "nowhere/page.html")
        assert "nowhere" in line
