"""One program of the whole network by torch.compile.

On a CPU half the time of a training step is not spent in convolutions: BatchNorm, activations and their gradients each
read and write whole tensors that do not stay in the cache. A compiler makes one loop of many of them. What it computes
is the same up to the order of additions, so that a run that is resumed must be compiled if it began so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ftbc.errors import InputError, first_line


def compiled(model: nn.Module) -> nn.Module:
    """The network as a compiled program that shares its weights; it is compiled when it runs first."""
    return torch.compile(model)  # type: ignore[return-value]


@contextmanager
def failing_to_compile() -> Iterator[None]:
    """Say in one line what to do where there is no compiler, or none that can make a program of this network."""
    try:
        yield
    except RuntimeError as error:
        from torch._dynamo.exc import TorchDynamoException  # takes a second to import

        if not isinstance(error, TorchDynamoException):
            raise
        raise InputError(f"the network cannot be compiled ({first_line(error)}): leave --compile out") from error
