"""Pages of docs/ with blocks that programs fill: no figure in them is typed by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ftbc.atomic import replacing

BLOCK = re.compile(r"(<!-- table (?P<name>[a-z0-9-]+): [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """A page with each of its blocks made anew.

    >>> filled("<!-- table a: made by b -->\\nold\\n<!-- end -->", {"a": lambda: "new"})
    '<!-- table a: made by b -->\\nnew\\n<!-- end -->'
    """
    for name in (match["name"] for match in BLOCK.finditer(page)):
        if name not in blocks:
            raise SystemExit(f"there is no table '{name}': there are {', '.join(blocks)}")
    return BLOCK.sub(lambda match: f"{match[1]}{blocks[match['name']]()}\n{match[3]}", page)


def fill(page: Path, blocks: Mapping[str, Callable[[], str]]) -> None:
    """Make the blocks of a page anew, where it stands."""
    text = filled(page.read_text(), blocks)
    with replacing(page) as file:
        file.write(text.encode())
