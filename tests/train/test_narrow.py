"""Narrow networks are trained without oneDNN on AVX2, and all others with it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ftbc.train.narrow import safe_gradients


@pytest.mark.parametrize(
    ("capability", "channels", "on"), [("AVX2", 4, False), ("AVX2", 16, True), ("AVX512", 4, True)]
)
def test_only_narrow_networks_on_avx2_do_without(
    capability: str, channels: int, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    before = torch._C._get_mkldnn_enabled()
    with safe_gradients(nn.Sequential(nn.Conv2d(3, channels, 3))):
        assert torch._C._get_mkldnn_enabled() is (on and before)
    assert torch._C._get_mkldnn_enabled() is before
