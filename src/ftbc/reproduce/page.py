"""A reproduction as a page in Markdown: the paper's figures and those of here side by side, and what made them."""

from __future__ import annotations

from ftbc.protocol.plan import PROTOCOLS
from ftbc.protocol.rows import DIGITS
from ftbc.reproduce.experiment import Part
from ftbc.reproduce.result import Reproduction
from ftbc.reproduce.table import Line


def as_markdown(found: Reproduction) -> str:
    """The whole page."""
    experiment = found.experiment
    source = f" In the paper: `{experiment.source}`." if experiment.source else ""
    blocks = [f"# {experiment.title}", experiment.about + source, _made(found)]
    if found.figure is not None:
        blocks += [f"![{experiment.title}]({experiment.name}.png)", *found.figure.said]
    else:
        blocks += [f"![{experiment.title}]({experiment.name}.png)", _explained(found)]
        for part in (part for part in experiment.parts if columns(found, part)):
            blocks += [f"## {part.title}", _table(found, part), *_networks(found, part)]
    blocks += _lacking(found)
    if experiment.notes:
        blocks += ["## What to know", "\n".join(f"- {note}" for note in experiment.notes)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def columns(found: Reproduction, part: Part) -> list[int]:
    """The T of a part: those of the paper and those measured."""
    lines = [line for line in found.lines if line.part is part]
    return sorted({t for line in lines for t in (*line.paper.paper, *line.rows)})


def _made(found: Reproduction) -> str:
    made = found.made
    versions = ", ".join(f"{name} {version}" for name, version in made["machine"]["versions"].items())
    facts = {
        "scale": found.scale,
        **found.facts,
        "command": f"`{made['command']}`" if made["command"] else None,
        "commit": made["commit"],
        "versions": versions,
        "processor": f"{made['machine']['cpu']}, {made['machine']['cores']} cores",
        "made": made["time"],
    }
    rows = [f"| {name} | {_cell(str(value))} |" for name, value in facts.items() if value is not None]
    return "\n".join(["| | |", "|---|---|", *rows])


def _explained(found: Reproduction) -> str:
    spread = any(row.spread is not None for line in found.lines for row in line.rows.values())
    if not found.experiment.source:
        return f"Accuracy in %, {PROTOCOLS['per-t']}" + (", mean ± standard deviation over draws." if spread else ".")
    means = ", as mean ± standard deviation over draws of calibration images" if spread else ""
    return (
        f"Accuracy in %, {PROTOCOLS['per-t']}. *Here* is what this command measured{means}; *difference* is here less "
        "the paper's. Compare it with the difference of the ANNs, which are other networks where the scale is small."
    )


def _table(found: Reproduction, part: Part) -> str:
    steps = columns(found, part)
    lines = [f"| method | | ANN |{''.join(f' T={t} |' for t in steps)}", f"|---|---|{'---:|' * (1 + len(steps))}"]
    for line in (line for line in found.lines if line.part is part):
        paper = line.paper
        cells = [_percent(paper.ann), *(_percent(paper.paper.get(t)) for t in steps)]
        name = f"{_cell(paper.method)}{f' ({paper.trained})' if paper.trained else ''}"
        if paper.paper:
            lines.append(_row(name, "paper", cells))
        if line.rows:
            here = [_percent(line.ann), *(_here(line, t) for t in steps)]
            lines.append(_row("" if paper.paper else name, "here", here))
        if line.rows and paper.paper:
            gap = None if paper.ann is None or line.ann is None else line.ann - paper.ann
            lines.append(_row("", "difference", [_signed(gap), *(_signed(line.difference(t)) for t in steps)]))
    return "\n".join(lines)


def _networks(found: Reproduction, part: Part) -> list[str]:
    """What the lines of a part were measured on."""
    said: dict[tuple[str, str], list[str]] = {}
    for line in found.lines:
        if line.part is part and line.rows:
            said.setdefault((line.network, line.data), []).append(line.paper.method)
    lines = [f"{', '.join(methods)} on `{network}` and {data}" for (network, data), methods in said.items()]
    images = {row.test_images for line in found.lines if line.part is part for row in line.rows.values()}
    calibration = {row.calibration_images for line in found.lines if line.part is part for row in line.rows.values()}
    if not lines:
        return []
    counts = (
        f"{' or '.join(f'{count:,}' for count in sorted(images, reverse=True))} test images, "
        f"{' or '.join(str(count) for count in sorted(filter(None, calibration)))} calibration images."
    )
    return [f"Measured: {'; '.join(lines)}. {counts}"]


def _lacking(found: Reproduction) -> list[str]:
    missing = found.lacking()
    if not missing:
        return []
    rows = [f"- {', '.join(methods)}: {reason}" for reason, methods in missing.items()]
    return ["## Not measured", "\n".join(rows)]


def _here(line: Line, t: int) -> str:
    row = line.rows.get(t)
    if row is None:
        return "-"
    return _percent(row.accuracy) + ("" if row.spread is None else f" ± {row.spread:.{DIGITS}f}")


def _row(name: str, what: str, cells: list[str]) -> str:
    return f"| {name} | {what} |{''.join(f' {cell} |' for cell in cells)}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.{DIGITS}f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.{DIGITS}f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
