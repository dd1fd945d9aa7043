"""Tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


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
