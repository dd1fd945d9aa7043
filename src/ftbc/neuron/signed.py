"""Signed neurons with memory: a spike that came too early is taken back.

    v[t] = v[t-1] + x[t] + b[t]
    s[t] = theta                if v[t] >= theta
         = -theta               if v[t] <= -lower * theta  and  m[t-1] > 0
         = 0                    else
    v[t] <- v[t] - s[t] ,       m[t] = m[t-1] + sign(s[t])

m, the memory, counts the positive spikes less the negative ones, so that it never falls below zero: a ReLU is never
negative. A plain neuron keeps what it sent to an input that turns negative later; this one takes it back.
``clamp`` is an addition of others (known as R0): while m = 0, a membrane below zero is lifted to zero, which forgets
negative input as long as nothing is sent.
Reference: Wang, Zhang, Chen, Qu, IJCAI 2022 (SNM), with lower = 1, v[0] = 0 and a threshold for each neuron.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ftbc.errors import RecipeError
from ftbc.graph.spec import register
from ftbc.neuron.kind import Kind, Spikes
from ftbc.neuron.spiking import Spiking


@dataclass(frozen=True)
class Signed(Kind):
    """Signed neurons with memory; lower: how many thresholds below zero a spike is taken back."""

    lower: float = 1.0
    clamp: bool = False

    spikes: ClassVar[Spikes] = "ternary"
    timeless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower < 0:
            raise RecipeError(f"Signed(lower={self.lower}): give a number from 0 on")

    def __call__(self, steps: int, rank: int) -> Spiking:
        """Neurons to be given thresholds."""
        return SignedFire(steps, rank, self.lower, self.clamp)


@register("steps", "rank", "lower", "clamp")
class SignedFire(Spiking):
    """The neurons of one layer; the count m is part of the state.

    >>> neuron = SignedFire(steps=3, rank=1, lower=1.0, clamp=False).set(torch.ones(1), torch.zeros(1))
    >>> neuron.run(torch.tensor([1.5, -2.0, -2.0]).view(3, 1, 1)).flatten().tolist()
    [1.0, -1.0, 0.0]
    """

    STATE = ("v", "m")
    LOOP = "signed"
    m: Tensor | None

    def __init__(self, steps: int, rank: int, lower: float, clamp: bool) -> None:
        super().__init__(steps, rank)
        kind = Signed(lower, clamp)
        self.lower, self.clamp = kind.lower, kind.clamp

    def _settings(self) -> tuple[float, ...]:
        return self.lower, self.clamp

    def _fire(self, v: Tensor, theta: Tensor, output: Tensor) -> None:
        m = self.m
        assert m is not None
        sign = (v >= theta).to(v.dtype) - ((v <= -self.lower * theta) & (m > 0)).to(v.dtype)
        torch.mul(sign, theta, out=output)
        v -= output
        m += sign
        if self.clamp:
            v.copy_(torch.where(m > 0, v, v.clamp(min=0)))
