"""A layer at chosen positions is a matrix product, whatever its kind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ftbc.calibrate.walk.rows import (
    add_to_bias,
    at_positions,
    channel_dimension,
    draw_positions,
    matrix,
    patches,
    set_matrix,
)

LAYERS = {
    "3x3": (nn.Conv2d(4, 6, 3, padding=1), (4, 7, 6)),
    "strided": (nn.Conv2d(4, 6, 3, stride=2, padding=1), (4, 8, 7)),
    "1x1": (nn.Conv2d(4, 6, 1), (4, 5, 5)),
    "1x1 strided": (nn.Conv2d(4, 6, 1, stride=2), (4, 5, 5)),
    "uneven": (nn.Conv2d(4, 6, (5, 2), stride=(2, 3), padding=(3, 1), dilation=(1, 2)), (4, 9, 8)),
    "grouped": (nn.Conv2d(4, 6, 3, padding=1, groups=2), (4, 5, 5)),
    "depthwise": (nn.Conv2d(4, 8, 3, padding=1, groups=4), (4, 5, 5)),
    "same": (nn.Conv2d(4, 6, 4, padding="same"), (4, 5, 5)),
    "valid": (nn.Conv2d(4, 6, 3, padding="valid"), (4, 5, 5)),
    "reflected": (nn.Conv2d(4, 6, 3, padding=2, padding_mode="reflect"), (4, 5, 5)),
    "1d": (nn.Conv1d(4, 6, 3, padding=1), (4, 9)),
    "3d": (nn.Conv3d(2, 3, 3, padding=1, stride=(1, 2, 1)), (2, 4, 5, 3)),
    "linear": (nn.Linear(4, 6), (4,)),
    "tokens": (nn.Linear(4, 6), (3, 4)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), (4, 4, 5)),
    "transposed, grouped": (nn.ConvTranspose2d(4, 6, (2, 3), stride=(1, 3), dilation=2, groups=2), (4, 4, 5)),
    "transposed, cropped": (nn.ConvTranspose1d(2, 3, 3, stride=2, padding=3), (2, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("last", [False, True])
def test_patches_times_matrix_is_the_layer(name: str, last: bool) -> None:
    layer, shape = LAYERS[name]
    layer = layer.double()
    x = torch.rand(3, *shape, dtype=torch.float64)
    if last and x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        y = layer(x)
        dim = channel_dimension(layer, tuple(y.shape[1:]))
        for rows in (1, 12, 10_000):
            positions = draw_positions(3, tuple(y.shape[1:]), dim, rows, torch.Generator().manual_seed(1))
            read = patches(layer, x, positions)
            found = torch.einsum("rgk,gkm->rgm", read, matrix(layer)).flatten(1) + layer.bias
            torch.testing.assert_close(found, at_positions(y, dim, positions))


@pytest.mark.parametrize("name", LAYERS)
def test_weights_go_into_a_matrix_and_back(name: str) -> None:
    layer, _ = LAYERS[name]
    before = layer.weight.detach().clone()
    value = matrix(layer).detach().clone()
    set_matrix(layer, torch.zeros_like(value))
    assert float(layer.weight.detach().abs().max()) == 0
    set_matrix(layer, value)
    assert torch.equal(layer.weight.detach(), before)


def test_positions_are_all_or_about_as_many_as_wanted() -> None:
    generator = torch.Generator().manual_seed(0)
    every = draw_positions(5, (3, 4, 4), 0, 80, generator)
    assert torch.equal(every.sort(1).values, torch.arange(16).expand(5, 16))
    assert not torch.equal(every[0], every[1])  # so that the first few are a sample
    some = draw_positions(5, (3, 4, 4), 0, 12, generator)
    assert some.shape == (5, 3) and int(some.max()) < 16 and int(some.min()) >= 0
    assert draw_positions(5, (7,), 0, 100, generator).shape == (5, 1)
    # Of more images than 1,024 as many are taken of each as of 1,024: rows grow with them.
    assert draw_positions(1024, (1, 4, 4), 0, 3000, generator).shape == (1024, 3)
    assert draw_positions(5000, (1, 4, 4), 0, 3000, generator).shape == (5000, 3)
    value = torch.arange(5 * 3 * 16).view(5, 3, 4, 4).float()
    rows = at_positions(value, 0, some)
    for image in range(5):
        for place in range(3):
            at = int(some[image, place])
            assert torch.equal(rows[image * 3 + place], value[image, :, at // 4, at % 4])


def test_a_bias_is_added_where_there_is_none() -> None:
    layer = nn.Conv2d(2, 3, 1, bias=False)
    add_to_bias(layer, torch.tensor([1.0, 2.0, 3.0]))
    add_to_bias(layer, torch.tensor([1.0, 0.0, 0.0]))
    assert layer.bias.tolist() == [2, 2, 3] and not layer.bias.requires_grad
