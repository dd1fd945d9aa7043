"""Tables of comparisons: what stands in them, and that LaTeX and CSV are read back as they were meant."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from ftbc.comparison import Comparison
from ftbc.errors import FileError
from ftbc.protocol.measured import Measured
from ftbc.protocol.rows import Row, averaged, best
from ftbc.report.comparison import accuracies, as_text
from ftbc.report.latex import escaped
from ftbc.report.plot import compared_curves


def measured(accuracy: float, extra_steps: int = 0) -> Measured:
    lists = {"accuracy": [accuracy] * 4, "spikes": [5.0, 10.0, 15.0, 20.0], "synops": [1e5, 2e5, 3e5, 4e5]}
    return Measured(
        images=100, **lists, energy=[0.5, 1.0, 1.5, 2.0], reference_energy=7.0, neurons=50, firing_rate={"a": 0.1},
        extra_steps=extra_steps, calibration_images=32, calibration_seconds=1.25,
    )  # fmt: skip


def row(name: str, steps: int, *figures: float, **named: Any) -> Row:
    extra = named.pop("extra_steps", 0)
    return averaged(name, steps, steps, {k: measured(f, extra) for k, f in enumerate(figures)}, 91.5, 100, **named)


def table(*rows: Row, **named: Any) -> Comparison:
    names = list(dict.fromkeys(entry.recipe for entry in rows))
    steps = tuple(dict.fromkeys(entry.steps for entry in rows))
    settings: dict[str, Any] = {
        "model": "net_20%", "data": "squares & circles", "protocol": "per-t", "engine": "layerwise", "steps": steps,
        "seeds": (0, 1), "rows": rows, "recipes": tuple({"name": name} for name in names),
        "ann": dict.fromkeys(steps, 91.5), "kept": 0, "measured": 0, "made": {"command": None, "codes": ["one"]},
    }  # fmt: skip
    return Comparison(**{**settings, **named})


PLAIN = table(row("a", 1, 10.0, 20.0), row("a", 2, 30.0, 30.0), row("b", 1, 15.0, 15.0), row("b", 2, 29.994, 29.994))


def test_means_and_spreads() -> None:
    one = row("a", 2, 10.0, 20.0)
    assert one.accuracy == 15.0 and one.spread == pytest.approx(50**0.5) and one.accuracies == (10.0, 20.0)
    assert one.spikes == 10.0 and one.firing_rate == pytest.approx(10 / 50 / 2) and one.energy == 1.0
    assert row("a", 2, 10.0).spread is None
    late = row("a", 2, 10.0, extra_steps=3)
    assert late.firing_rate == pytest.approx(10 / 50 / 5) and late.extra_steps == 3 and not late.plain


def test_text() -> None:
    lines = str(PLAIN).splitlines()
    assert "net_20% on squares & circles, 100 images" in lines[0]
    assert "protocol per-t: each T with a calibration of its own; 32 calibration images, seeds 0, 1" in lines[1]
    start = next(index for index, line in enumerate(lines) if "T=1" in line)
    shown = [line.split("  ") for line in lines[start : start + 4]]
    assert [[part.strip() for part in line if part.strip()] for line in shown] == [
        ["T=1", "T=2"], ["a", "15.00 +-7.07*", "30.00 +-0.00*"], ["b", "15.00 +-0.00*", "29.99 +-0.00"],
        ["ANN", "91.50", "91.50"],
    ]  # fmt: skip
    assert "* best at its T, as far as the table shows it" in lines and "best of those" not in str(PLAIN)
    assert str(PLAIN).isascii() and not any(line != line.rstrip() for line in lines)
    costs = [line.split() for line in lines if line.startswith("b ") and " uJ" in line]
    assert costs[1] == ["b", "2", "0.1000", "10", "2e+05", "1", "uJ", "1.25", "s", "32", "0", "?", "?"]


def test_a_narrow_terminal_gets_columns_below_each_other() -> None:
    wide, narrow = accuracies(PLAIN), accuracies(PLAIN, 24)
    assert wide.count("ANN") == 1 and narrow.count("ANN") == 2 and max(map(len, narrow.splitlines())) <= 24
    assert as_text(PLAIN, 24).count("T=2") == 1
    assert accuracies(PLAIN, 1).count("ANN") == 2, "one column at least"


def test_test_images_are_shown_where_they_differ() -> None:
    few = table(row("a", 1, 10.0), replace(row("a", 2, 30.0), test_images=2000), ann={1: 91.5, 2: None}, seeds=(0,))
    assert ["test", "images", "100", "2,000"] in [line.split() for line in str(few).splitlines()]
    assert ["ANN", "91.50", "-"] in [line.split() for line in str(few).splitlines()]
    assert "2,000 or 100 images" in str(few) and "+-" not in str(few)
    assert "test images & 100 & 2,000" in few.to_latex()


def test_best_is_what_the_reader_sees() -> None:
    assert best([row("a", 1, 50.001), row("b", 1, 50.004)]) == {("a", 1): "best", ("b", 1): "best"}
    assert best([row("a", 1, 50.0), row("b", 1, 50.01)]) == {("b", 1): "best"}
    assert best([row("a", 1, 50.0)]) == {}, "alone"
    assert best([row("a", 1, 50.0), row("b", 1, reason="no")]) == {}, "alone"
    rows = [row("a", 1, 50.0), row("b", 1, 60.0, levels="ternary"), row("c", 1, 40.0), row("d", 1, 55.0, extra_steps=2)]
    assert best(rows) == {("b", 1): "best", ("a", 1): "best plain"}
    assert best([*rows, row("e", 1, 60.0, levels="binary")]) == {("b", 1): "best", ("e", 1): "best"}
    assert best([*rows[:2], row("e", 1, 58.0, steppable=False)]) == {("b", 1): "best", ("a", 1): "best plain"}
    assert best([row("b", 1, 60.0, levels="ternary"), row("d", 1, 55.0, extra_steps=2)]) == {("b", 1): "best"}


def test_what_is_special_is_told() -> None:
    special = row("b", 1, 60.0, levels="multi-level", needs="gradients", steppable=False, extra_steps=2)
    rows = [row("a", 1, 50.0, levels="binary", needs=""), special]
    rows += [row(name, t, reason="no QCFS") for name in "cd" for t in (1, 2)]
    rows += [row("e", 1, reason="late"), row("e", 2, 10.0, steppable=False)]
    rows += [row(name, 2, 20.0) for name in "ab"]
    text, latex = str(table(*rows)), table(*rows).to_latex()
    costs = [line.split()[-3:] for line in text.splitlines() if " uJ" in line]
    assert costs[:2] == [["0", "binary", "-"], ["2", "multi-level", "gradients"]]
    assert "o best of those with binary spikes that take one step at a time and no extra ones" in text
    lines = text.splitlines()
    assert {"b: multi-level spikes", "b: 2 steps before the T", "c, d: no QCFS", "e: at T = 1: late"} <= {*lines}
    assert "b, e: each layer waits for several steps" in lines
    assert r"\underline{50.00}" in latex and r"\textbf{60.00}" in latex and "Underlined: best of those" in latex
    assert re.search(r"^c & -- & -- \\\\$", latex, re.MULTILINE) and "c, d: no QCFS." in latex


def test_csv() -> None:
    lines = list(csv.DictReader(io.StringIO(PLAIN.to_csv())))
    assert list(lines[0]) == [
        "model", "data", "protocol", "engine", *(field.name for field in fields(Row)), "best",
    ]  # fmt: skip
    assert len(lines) == 4 and lines[1]["accuracy"] == "30.0" and lines[1]["best"] == "best" and lines[3]["best"] == ""
    assert lines[0]["accuracies"] == "10.0 20.0" and lines[0]["seeds"] == "0 1" and lines[0]["model"] == "net_20%"
    refused = table(row("a", 1, reason='no "QCFS", here'))
    (line,) = csv.DictReader(io.StringIO(refused.to_csv()))
    assert line["accuracy"] == "" and line["reason"] == 'no "QCFS", here' and line["seeds"] == ""


def test_json(tmp_path: Path) -> None:
    text = PLAIN.to_json(tmp_path / "t.json")
    content = json.loads(text)
    assert (tmp_path / "t.json").read_text() == text
    assert [entry["best"] for entry in content["rows"]] == ["best", "best", "best", None]
    assert content["rows"][0]["accuracies"] == [10.0, 20.0] and content["protocol"] == "per-t"
    assert content["ann"] == {"1": 91.5, "2": 91.5}


# ---- LaTeX -----------------------------------------------------------------------------------------------

NASTY = 'a_b & 50% #1 {x} $y$ ~z^2 \\n <"|">\x07'


KNOWN = {
    "begin", "end", "centering", "caption", "toprule", "midrule", "bottomrule", "textbf", "underline", "scriptsize",
    "footnotesize", "par", "pm", "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater",
    "textbar", "textquotedbl",
}  # fmt: skip


def check_latex(text: str) -> list[list[str]]:
    """The cells of the table, after a look at all that LaTeX would stumble over."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    body = "\n".join(lines)
    stripped = re.sub(r"\\\\|\\[{}$&%#_]", "", body)  # line ends and escaped letters
    depth = 0
    for letter in stripped:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0 and stripped.count("$") % 2 == 0
    assert not re.search(r"[%#_^~\"<>|]", stripped)
    assert all(letter.isprintable() or letter == "\n" for letter in body)
    assert set(re.findall(r"\\([a-zA-Z]+)", stripped)) <= KNOWN
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened and body.count(r"\toprule") == body.count(r"\bottomrule") == 1
    inside = body[body.index(r"\toprule") : body.index(r"\bottomrule")]
    rows = [re.split(r"(?<!\\)&", line[: -len(r" \\")]) for line in inside.splitlines() if line.endswith(r"\\")]
    (columns,) = re.findall(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", body)
    assert {len(cells) for cells in rows} == {len(columns)}
    return [[cell.strip() for cell in cells] for cells in rows]


def test_latex() -> None:
    rows = check_latex(PLAIN.to_latex())
    assert rows[0] == ["Method", "$T=1$", "$T=2$"] and rows[1] == ["ANN", "91.50", "91.50"]
    assert rows[2] == ["a", r"\textbf{15.00} {\scriptsize $\pm$ 7.07}", r"\textbf{30.00} {\scriptsize $\pm$ 0.00}"]
    assert rows[3] == ["b", r"\textbf{15.00} {\scriptsize $\pm$ 0.00}", r"29.99 {\scriptsize $\pm$ 0.00}"]
    assert r"net\_20\% on squares \& circles" in PLAIN.to_latex() and "Protocol per-t" in PLAIN.to_latex()


def test_latex_of_nasty_names() -> None:
    named = table(
        row(NASTY, 1, 10.0),
        row("b", 1, reason=NASTY),
        model=NASTY,
        data=NASTY,
        made={"command": f"x\n{NASTY}", "codes": []},
    )
    rows = check_latex(named.to_latex())
    assert rows[2][0] == escaped(NASTY).strip() and len(rows) == 4
    assert named.to_latex().splitlines()[1] == r"\begin{table}"


# ---- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plot(tmp_path: Path, suffix: str, start: bytes) -> None:
    many = [row(f"recipe {k}", t, 10.0 + k, 12.0 + k) for k in range(12) for t in (1, 2)]
    nasty = [row("$x_$", t, reason="no") for t in (1, 2)]
    for number, drawn in enumerate((PLAIN, table(*many, *nasty), table(row("$\\frac", 1, 50.0), ann={1: None}))):
        path = tmp_path / f"{number}.{suffix}"
        drawn.plot(path)
        assert path.read_bytes().startswith(start)


def test_a_plot_of_no_known_kind(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"\.png, \.svg, \.pdf"):
        compared_curves(tmp_path / "curve.txt", PLAIN)
    assert not list(tmp_path.iterdir())
