"""The documentation: the site builds without a warning, links lead somewhere, and the support table is true."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ftbc.reproduce import experiments

from .support_page import PAGE, page

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def test_the_support_table_is_what_the_tests_convert() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.support_page --write"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for place, _ in LINK.findall(path.read_text()):
        if not place.startswith(("http", "mailto")):
            assert (path.parent / place).exists(), place


def test_every_experiment_is_on_its_page() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text()
    for name, experiment in experiments().items():
        assert f"`{name}`" in text, name
        assert (ROOT / "experiments" / f"{name}.toml").is_file() and experiment.title


def test_every_example_is_told_of() -> None:
    text = (ROOT / "docs" / "how-to.md").read_text() + (ROOT / "docs" / "index.md").read_text()
    for path in sorted((ROOT / "examples").glob("*.py")):
        assert f"examples/{path.name}" in text, path.name


def _build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The site, with links checked as `make docs` does; --quiet would hide what --strict counts."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("link", ["[x](errata.md#no-such-heading)", "[x](no-such-page.md)"])
def test_a_broken_link_stops_the_site(tmp_path: Path, link: str) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "results" / "reproduce", tmp_path / "results" / "reproduce")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    with (tmp_path / "docs" / "compare.md").open("a") as page:
        page.write(f"\n{link}\n")
    done = _build(tmp_path, tmp_path / "site")
    assert done.returncode != 0 and "compare.md" in done.stderr, done.stderr


def test_the_site_builds(tmp_path: Path) -> None:
    done = _build(ROOT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    start = (tmp_path / "index.html").read_text()
    assert "Start in five minutes" in start
    for name in ("how-to", "support", "theory", "errata", "reproduce", "methods", "compare", "export", "speed"):
        assert (tmp_path / f"{name}.html").is_file()
    assert (tmp_path / "reproduced" / "overview.html").is_file()
    # Nothing is loaded from elsewhere.
    assert not re.findall(r'src="(?:https?:)?//|<link[^>]*href="(?:https?:)?//(?!.*rel="canonical")', start)
