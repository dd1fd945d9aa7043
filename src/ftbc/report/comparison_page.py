"""A comparison of methods as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ftbc.protocol.plan import PROTOCOLS
from ftbc.report.comparison import notes
from ftbc.report.html import Page
from ftbc.report.series import of_comparison

if TYPE_CHECKING:
    from ftbc.comparison import Comparison


def comparison_page(table: Comparison) -> Page:
    """Curves, energy and the record of a comparison."""
    series, baselines = of_comparison(table)
    tests = sorted({row.test_images for row in table.rows}, reverse=True)
    versions = table.made["machine"]["versions"]
    facts = {
        "network": table.model,
        "test images": f"{' or '.join(f'{count:,}' for count in tests)} of {table.data}",
        "protocol": f"{table.protocol}: {PROTOCOLS[table.protocol]}",
        "seeds": ", ".join(map(str, table.seeds)),
        "command": table.made["command"],
        "commit": table.made["commit"],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "made": table.made["time"],
    }
    many = len(table.seeds) > 1
    return Page(
        title=f"{table.model} on {table.data}",
        summary=f"{len(series)} methods compared"
        + (f"; means over {len(table.seeds)} calibrations, bands of one standard deviation." if many else "."),
        series=series,
        baselines=baselines,
        per_t=table.protocol == "per-t",
        facts={name: value for name, value in facts.items() if value is not None},
        notes=notes(table),
    )
