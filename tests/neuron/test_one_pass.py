"""Compiled steps of every kind of neuron against the plain ones, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ftbc.neuron import Burst, Differential, Kind, Plain, Signed, Spiking
from ftbc.neuron.one_pass import OnePass
from ftbc.threads import over_images

pytest.importorskip("numba")

KINDS = {
    "plain": Plain(),
    "signed": Signed(),
    "signed at zero": Signed(lower=0.0),
    "signed and clamped": Signed(lower=0.3, clamp=True),
    "burst": Burst(3),
    "differential": Differential(4),
    "differential of one level": Differential(1),
}
STEPS, IMAGES = 9, 5


def neurons(kind: Kind, item: tuple[int, ...], grain: str, dtype: torch.dtype) -> Spiking:
    size = {"layer": (1,), "channel": item[:1], "neuron": item}[grain]
    theta = torch.rand(size, dtype=dtype) + 0.3
    bias = 0.3 * torch.randn((STEPS, *size), dtype=dtype)
    return kind(STEPS, len(item)).set(theta, theta * torch.rand(size, dtype=dtype), bias)


def both_ways(layer: Spiking, parts: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> list[list[Tensor]]:
    """What is sent and what is remembered, compiled and plainly."""
    found = []
    for loops in ("compiled", "plain"):
        with monkeypatch.context() as patch:
            if loops == "plain":
                patch.setattr("ftbc.neuron.one_pass._loops", lambda: None)
                patch.setattr("ftbc.neuron.fused._kernels", lambda: None)
            layer.reset()
            sent = [layer.run(part) for part in parts]
            found.append([torch.cat(sent), *(getattr(layer, name) for name in layer.STATE)])
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("grain", ["layer", "channel", "neuron"])
@pytest.mark.parametrize("item", [(7,), (3, 5), (6, 4, 5), (70, 5, 5), (2, 3, 2, 2)])
@pytest.mark.parametrize("name", KINDS)
def test_equal_to_the_last_bit(name, item, grain, dtype, monkeypatch) -> None:
    torch.manual_seed(0)
    layer = neurons(KINDS[name], item, grain, dtype)
    x = torch.randn(STEPS, IMAGES, *item, dtype=dtype) + 0.2
    compiled, plain = both_ways(layer, list(x.split([1, 3, 5])), monkeypatch)
    assert plain[0].any()
    for one, other in zip(compiled, plain, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("constant", [True, False])
def test_channels_innermost_and_constant_currents(name, constant, monkeypatch) -> None:
    torch.manual_seed(0)
    layer = neurons(KINDS[name], (6, 4, 5), "neuron", torch.float32)
    x = torch.randn(STEPS * IMAGES, 6, 4, 5).contiguous(memory_format=torch.channels_last)
    x = x[:IMAGES].expand(STEPS, IMAGES, 6, 4, 5) if constant else x.unflatten(0, (STEPS, IMAGES))
    before = x.clone()
    compiled, plain = both_ways(layer, [x], monkeypatch)
    assert plain[0].any() and torch.equal(x, before)
    for one, other in zip(compiled, plain, strict=True):
        assert torch.equal(one, other)
    layer.reset()
    assert layer.run(x).flatten(0, 1).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", KINDS)
def test_threads_share_the_images(name, two_threads, monkeypatch) -> None:
    layer = neurons(KINDS[name], (6, 4, 5), "neuron", torch.float32)
    x = torch.randn(STEPS, IMAGES, 6, 4, 5)
    wanted, shares = layer.run(x), []

    def watched(work: Any, images: int, worth: int) -> Any:
        return over_images(lambda first, last: (shares.append((first, last)), work(first, last)), images, worth)

    monkeypatch.setattr("ftbc.neuron.one_pass._WORTH_A_THREAD", 1)
    monkeypatch.setattr("ftbc.neuron.one_pass.over_images", watched)
    layer.reset()
    assert torch.equal(layer.run(x), wanted)
    assert sorted(set(shares)) == [(0, 2), (2, 5)]


def test_what_no_loop_can_take_goes_the_plain_way() -> None:
    theta, x = torch.ones(4, 5, 5), torch.randn(2, 4, 5, 5)
    assert OnePass.usable(x, theta) and OnePass.usable(x.contiguous(memory_format=torch.channels_last), theta)
    others = (x.to("meta"), x.half(), x.double(), x[..., ::2], x[:0], x.clone().requires_grad_())
    assert not any(OnePass.usable(other, theta) for other in others)


@pytest.mark.parametrize("name", KINDS)
def test_sliced_currents(name) -> None:
    torch.manual_seed(0)
    layer = neurons(KINDS[name], (4, 5, 3), "neuron", torch.float32)
    x = torch.randn(STEPS, IMAGES, 4, 5, 6)[..., ::2]
    sent = layer.run(x)
    layer.reset()
    assert sent.any() and torch.equal(sent, layer.run(x.contiguous()))
