"""What the tests of graph/ share: small networks written as one line, and how a network is cleaned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.graph.canonical import Cleaned, canonical
from ftbc.graph.fold import fold
from ftbc.graph.trace import by_export, by_fx, trace

ROUTES = {"fx": (by_fx,), "export": (by_export,)}


class Net(nn.Module):
    """Named layers, and a forward given as a function of the module and its input."""

    def __init__(self, run: Callable[[Any, Tensor], Any], **layers: nn.Module | Tensor) -> None:
        super().__init__()
        self.run = run
        for name, layer in layers.items():
            if isinstance(layer, Tensor) and not isinstance(layer, nn.Parameter):
                self.register_buffer(name, layer)
            else:
                setattr(self, name, layer)

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


def settled(model: nn.Module, seed: int = 3) -> nn.Module:
    """Double precision, evaluation, the same weights each time, and BatchNorms that do something."""
    generator = torch.Generator().manual_seed(seed)
    model = model.double().eval()
    for parameter in model.parameters():
        fan_in = parameter[0].numel() if parameter.ndim > 1 else 4
        parameter.data.normal_(0, fan_in**-0.5, generator=generator)
        if not parameter.ndim:  # a threshold
            parameter.data.abs_().add_(0.3)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            module.running_mean.uniform_(-0.5, 0.5, generator=generator)
            module.running_var.uniform_(0.3, 2.0, generator=generator)
    for name, buffer in model.named_buffers(recurse=False):
        buffer.normal_(0, 1, generator=generator)
        if name in ("v", "var"):
            buffer.abs_().add_(0.3)
    return model


def images(shape: Sequence[int], count: int = 5, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((count, *shape), generator=generator, dtype=torch.float64)


def clean(model: nn.Module, x: Tensor, route: str | None = None, folded: bool = True) -> Cleaned:
    """The clean graph of a network, or an error that lists what stands in the way."""
    with torch.no_grad():
        cleaned = canonical(trace(model, x, ROUTES[route]) if route else trace(model, x)).require()
        if folded:
            fold(cleaned.graph)
    return cleaned


def answer(cleaned: Cleaned, x: Tensor) -> Tensor:
    """What the clean graph and its head give."""
    with torch.no_grad():
        found = cleaned.graph(x)
        return found if cleaned.head is None else cleaned.head(found)
