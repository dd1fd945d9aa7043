"""A bound on memory that ends with its block."""

from __future__ import annotations

import sys

import pytest
import torch

from ftbc.export.bounded import at_most

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the bound")


def test_what_is_too_large_is_refused_and_only_inside() -> None:
    with at_most(64 << 20):
        assert torch.zeros(1 << 20).sum() == 0
        with pytest.raises((MemoryError, RuntimeError)):
            torch.zeros(1 << 30)
    assert torch.zeros(1 << 27).sum() == 0


def test_the_old_bound_is_back_after_an_error() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(ValueError, match="inside"), at_most(1 << 30):
        raise ValueError("inside")
    assert resource.getrlimit(resource.RLIMIT_AS) == before
