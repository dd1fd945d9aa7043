"""Tables of text."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ftbc.measure.evaluation import Evaluation
from ftbc.measure.inside import LayerInside
from ftbc.measure.speed import Speed
from ftbc.measure.stages import Stage


def accuracy_table(steps: Sequence[int], columns: Mapping[str, Mapping[int, float]], reference: float | None) -> str:
    """Accuracy in percent, a row for each T and a column for each method, the ANN last.

    >>> print(accuracy_table([1, 2], {"ftbc": {1: 50.0, 2: 61.25}}, 91.5))
       T    ftbc     ANN
       1  50.00%  91.50%
       2  61.25%  91.50%
    """
    widths = {name: max(len(name), 6) + 2 for name in columns}
    lines = ["   T" + "".join(f"{name:>{width}}" for name, width in widths.items())]
    if reference is not None:
        lines[0] += f"{'ANN':>8}"
    for t in steps:
        cells = [f"{columns[name][t]:{width - 1}.2f}%" for name, width in widths.items()]
        lines.append(f"{t:4}" + "".join(cells) + ("" if reference is None else f"{reference:7.2f}%"))
    return "\n".join(lines)


def energy_table(found: Evaluation, cached: bool = False) -> str:
    """Accuracy and microjoules per image at each step, a column for each energy model; the ANN last, where it runs."""
    energies, ann = found.energies(cached), found.reference_energies()
    lines = [["t", "accuracy", *energies]]
    for t, accuracy in enumerate(found.accuracy, 1):
        lines.append([str(t), f"{accuracy:.2f}%", *(f"{row[t - 1]:.4g}" for row in energies.values())])
    reference = "-" if found.reference_accuracy is None else f"{found.reference_accuracy:.2f}%"
    lines.append(["ANN", reference, *(f"{ann[name]:.4g}" if name in ann else "-" for name in energies)])
    return f"energy in microjoules an image:\n{_aligned(lines)}"


def error_table(layers: Sequence[LayerInside]) -> str:
    """Firing rates, where each layer of plain neurons departs from the ANN, in percent, and at which one most is lost.

    >>> from ftbc.measure.error_split import ErrorSplit
    >>> split = ErrorSplit(0.5, 0.125, 0.03125, 0.25, 0.0625, 0.375)
    >>> print(error_table([LayerInside("relu", (4,), (1, 1, 1), [0.25, 0.5], split, None, [], [], [], [])]))
    layer  firing rate  clipping  quantisation  unevenness  inherited  total  unexplained
     relu       0.3750      12.5           3.1         6.2       25.0   50.0         37.5
    Most is lost at relu: clipping 12.5 %. Least is told at relu: 37.5 % of the variance is unexplained.
    """
    words = ["clipping", "quantisation", "unevenness", "inherited", "total", "unexplained"]
    lines, known = [["layer", "firing rate", *words]], {}
    for layer in layers:
        shares = {} if layer.split is None else layer.split.to_dict()
        cells = [f"{100 * shares[word]:.1f}" if word in shares else "-" for word in words]
        lines.append([layer.name, f"{sum(layer.rate) / len(layer.rate):.4f}", *cells])
        if layer.split is not None:
            known[layer.name] = layer.split
    if not known:
        return f"{_aligned(lines)}\nErrors are known of plain neurons alone, in the units of the ANN."
    lossy = max(known, key=lambda name: sum(known[name].own.values()))
    vague = max(known, key=lambda name: known[name].unexplained)
    own = known[lossy].own
    part = max(own, key=lambda name: own[name])
    return (
        f"{_aligned(lines)}\nMost is lost at {lossy}: {part} {100 * own[part]:.1f} %. Least is told at {vague}: "
        f"{100 * known[vague].unexplained:.1f} % of the variance is unexplained."
    )


def piece_table(found: Sequence[Stage]) -> str:
    """The error of each layer before the first piece of a recipe and after each, in percent, and what did most.

    >>> from ftbc.measure.error_split import ErrorSplit
    >>> split = lambda total, vague: {"relu": ErrorSplit(total, 0, 0, 0, 0, vague)}
    >>> print(piece_table([Stage("thresholds", split(0.5, 0.25), 0.4), Stage("FTBC", split(0.25, 0.125), 0.1)]))
    unexplained  thresholds  FTBC
           relu        25.0  12.5
    <BLANKLINE>
      total  thresholds  FTBC
       relu        50.0  25.0
    outputs        40.0  10.0
    The outputs gain most by FTBC: 40.0 to 10.0 %.
    """
    names = [name for name in found[0].errors if all(name in stage.errors for stage in found)]
    tables = []
    for word in ("unexplained", "total"):
        rows = [[f"{100 * getattr(stage.errors[name], word):.1f}" for stage in found] for name in names]
        tables.append(
            [[word, *(stage.piece for stage in found)], *([name, *row] for name, row in zip(names, rows, strict=True))]
        )
    tables[-1].append(["outputs", *(f"{100 * stage.outputs:.1f}" for stage in found)])
    text = "\n\n".join(map(_aligned, tables))
    if len(found) == 1:
        return text
    before, after = max(itertools.pairwise(found), key=lambda pair: pair[0].outputs - pair[1].outputs)
    return f"{text}\nThe outputs gain most by {after.piece}: {100 * before.outputs:.1f} to {100 * after.outputs:.1f} %."


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns, to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    rows = ("  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(rows)


def speed_table(rows: Sequence[Speed]) -> str:
    """A line for each engine, T and number of threads: its speed over that of the ANN, many images at once and one."""
    lines = [
        f"{'T':>4}  {'threads':>7}  {'engine':12} {'images/s over ANN':>19}  {'image-steps/s over ANN':>22}  "
        f"{'one image at a time':>19}"
    ]
    alone = {(row.engine, row.steps, row.threads): row for row in rows if row.batch == 1}
    together = {(row.engine, row.steps, row.threads): row for row in rows if row.batch > 1} or alone
    for key, row in together.items():
        single = str(alone[key].over_ann) if key in alone else "-"
        lines.append(
            f"{row.steps:4}  {row.threads:7}  {row.engine:12} {row.over_ann!s:>19}  {row.steps_over_ann!s:>22}  "
            f"{single:>19}"
        )
    return "\n".join(lines)
