"""What each epoch did: the rows that are shown, kept in checkpoints, and written as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ftbc.atomic import replacing


@dataclass(frozen=True)
class Epoch:
    """Means over the training images of one epoch, as they were seen; ``seconds_left`` for all epochs that follow."""

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float
    images_per_second: float
    seconds_left: float = 0.0


def write_log(path: Path, epochs: Sequence[Epoch]) -> None:
    """Write all epochs as CSV: whole, so that a run that goes on after a kill leaves no row twice."""
    text = io.StringIO(newline="")
    rows = csv.DictWriter(text, [field.name for field in fields(Epoch)], lineterminator="\n")
    rows.writeheader()
    rows.writerows(asdict(epoch) for epoch in epochs)
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def read_log(path: Path) -> list[Epoch]:
    """The epochs of a file that `write_log` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Epoch(int(row.pop("epoch")), **{k: float(v) for k, v in row.items()}) for row in csv.DictReader(file)]
