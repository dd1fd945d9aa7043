"""In which numbers synapses multiply: those of their weights, or bfloat16, which GPUs multiply several times as fast.

Only convolutions and matrices are concerned. What they give is brought back to the type of their input at once:
membranes, sums and all that calibration learns stay in float32, because bfloat16 has three digits and a membrane that
collects small currents over many steps would lose them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

_BFLOAT16 = ContextVar("bfloat16", default=False)


@contextmanager
def synapses_in_bfloat16(on: bool = True) -> Iterator[None]:
    """Inside the block every synapse of a graph computes in bfloat16; or not, where it must be exact.

    >>> with synapses_in_bfloat16():
    ...     run_synapse(nn.Linear(2, 2), torch.ones(1, 2)).dtype, in_bfloat16()
    (torch.float32, True)
    """
    before = _BFLOAT16.set(on)
    try:
        yield
    finally:
        _BFLOAT16.reset(before)


@contextmanager
def without_autocast() -> Iterator[None]:
    """Inside the block torch changes no numbers on its own, whatever the caller has asked of it for other networks."""
    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        yield


def in_bfloat16() -> bool:
    """Whether synapses compute in bfloat16 here."""
    return _BFLOAT16.get()


def run_synapse(module: nn.Module, *inputs: Tensor) -> Tensor:
    """What a convolution or a matrix gives, in the type of its input."""
    if not in_bfloat16():
        return module(*inputs)
    if inputs[0].device.type == "cpu":
        return _as_a_gpu_would(module, inputs)
    with torch.autocast(inputs[0].device.type, torch.bfloat16):
        return module(*inputs).to(inputs[0].dtype)


def _as_a_gpu_would(module: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """The same numbers on a CPU: factors are rounded, their products added up in float32, the sum is rounded.

    torch's own kernels are no choice: they are slower than float32 without AMX, and where a virtual machine hides it
    from a processor that has it, they end the process by an illegal instruction.
    """
    weights = {name: _rounded(value) for name, value in module.named_parameters()}
    return _rounded(torch.func.functional_call(module, weights, tuple(_rounded(x) for x in inputs)))


def _rounded(x: Tensor) -> Tensor:
    return x.bfloat16().to(x.dtype)
