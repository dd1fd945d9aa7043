"""What `ftbc reproduce` wrote into results/reproduce becomes part of the site, under reproduced/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

IN_REPOSITORY, IN_SITE = "../results/reproduce/", "reproduced/"


def on_files(files: Any, config: Any) -> Any:
    """Add pages and pictures."""
    folder = Path(config.config_file_path).parent / "results" / "reproduce"
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".md", ".png"):
            place = IN_SITE + path.relative_to(folder).as_posix()
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that work in the repository work in the site."""
    return markdown.replace(f"({IN_REPOSITORY}", f"({IN_SITE}")
