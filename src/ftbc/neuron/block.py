"""A block of integrate-and-fire neurons over all steps, written as LLVM vector code for numba.

Compiled from a plain loop, each step would load and store its membranes, in registers of half the length; here they
stay in registers from the first step to the last.
"""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ftbc.vectors import NONE, Code, registers, repeat, revision

REVISION = revision(sys.modules[__name__])
"""Of the vector code: a loop that closes over it is compiled anew when the code has changed."""

SIZE = registers()[0] * (8 if registers()[1] > 16 else 4)
"""Bytes of a block: its membranes, its thresholds and what is computed fit into the registers."""


@intrinsic
def integrate_and_fire_block(
    _: Any, element: Any, steps: Any, currents: Any, current_step: Any, spikes: Any, spike_step: Any, biases: Any,
    bias_step: Any, thresholds: Any, begin: Any, left: Any,
) -> Any:  # fmt: skip
    """Spikes of a block at each of ``steps`` steps, which are at least one.

    element: an array of the type of all numbers. Addresses of a block of each: currents and spikes (which may be the
    same) and biases, with the bytes from one step to the next; thresholds; the membranes to begin with; where to leave
    them (which may be the same).
    """
    signature = types.void(element, *[types.int64] * 10)

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        steps, currents, current_step, spikes, spike_step, biases, bias_step, thresholds, begin, left = arguments[1:]
        number = element.dtype
        code = Code(builder, number.name, SIZE // (number.bitwidth // 8))
        theta, begun, nothing = code.load(thresholds), code.load(begin), code.splat(0)

        def step(values: list[Any]) -> list[Any]:
            current_at, spikes_at, bias_at, *membranes = values
            # In this order, as torch adds them up: the last bit depends on it.
            u = [code.add(*pair) for pair in zip(membranes, code.load(current_at), strict=True)]
            u = [code.add(*pair) for pair in zip(u, code.load(bias_at), strict=True)]
            sent = [builder.select(code.reached(*pair), pair[1], nothing) for pair in zip(u, theta, strict=True)]
            code.store(sent, spikes_at)
            places = ((current_at, current_step), (spikes_at, spike_step), (bias_at, bias_step))
            rest = [code.subtract(*pair) for pair in zip(u, sent, strict=True)]
            return [*(builder.add(*place) for place in places), *rest]

        _, _, _, *rest = repeat(builder, steps, [currents, spikes, biases, *begun], step)
        code.store(rest, left)
        return NONE

    return signature, generate
