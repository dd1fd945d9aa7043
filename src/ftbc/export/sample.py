"""The images on which a file is run before it is called done."""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.errors import InputError
from ftbc.network import SpikingNetwork

_NOISE = 4


def require_network(snn: SpikingNetwork) -> None:
    """Refuse what is no converted network."""
    if not isinstance(snn, SpikingNetwork):
        raise InputError(f"a {type(snn).__name__} cannot be exported: give the network that ftbc.convert gave back")


def sample(snn: SpikingNetwork, images: Tensor | None) -> tuple[Tensor, str]:
    """Images of the user's or, if there are none, of noise; and what they are, in words."""
    if images is None:
        noise = torch.randn(_NOISE, *snn.graph.input_shape, generator=torch.Generator().manual_seed(0))
        return noise.to(snn.graph.tensors()[0]), f"{_NOISE} images of noise"
    snn._check(images, time_first=False)
    return images, f"{len(images)} images"
