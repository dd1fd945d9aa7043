"""Results as files: every row carries what it was measured on, and a file is written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.settings import Settings
from ftbc.atomic import make_folder, replacing
from ftbc.measure.machine import machine


def write(settings: Settings, part: str, rows: Iterable[dict[str, Any]], notes: Sequence[str] = ()) -> Path:
    """Write the rows of one part to ``bench-PART.json``; notes say what was left out, and why."""
    facts = machine()
    carried = {"cpu": facts["cpu"], "versions": facts["versions"]}
    content = {
        "part": part,
        "command": f"python -m benchmarks {part}{' --quick' if settings.quick else ''}",
        "machine": facts,
        "notes": list(notes),
        "rows": [{**carried, **row} for row in rows],  # a row of an earlier run keeps what it carries
    }
    path = settings.to / f"bench-{part}.json"
    make_folder(settings.to)
    with replacing(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
    return path


def read(folder: Path, part: str) -> dict[str, Any] | None:
    """What `write` wrote for a part, or None if it was not measured."""
    path = folder / f"bench-{part}.json"
    return json.loads(path.read_text()) if path.is_file() else None
