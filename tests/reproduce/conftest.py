"""A folder with all that tiny experiments need."""

from __future__ import annotations

from pathlib import Path

import pytest

from .tiny import make_place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_place(tmp_path, monkeypatch)
