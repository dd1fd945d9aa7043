"""The rules of all kinds of neurons for one neuron and plain numbers, step by step, as the papers write them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Numbers = Sequence[float]
Rule = Callable[[Numbers, float, float, Numbers], list[float]]
"""What one neuron sends for its currents, threshold, initial potential and biases."""


def plain(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
    sent = []
    for current, bias in zip(x, b, strict=False):
        v += current + bias
        sent.append(theta if v >= theta else 0.0)
        v -= sent[-1]
    return sent


def signed(lower: float, clamp: bool) -> Rule:
    def rule(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
        sent, count = [], 0
        for current, bias in zip(x, b, strict=False):
            v += current + bias
            if v >= theta:
                spike = 1
            elif v <= -lower * theta and count > 0:
                spike = -1
            else:
                spike = 0
            v -= spike * theta
            count += spike
            if clamp and count == 0:
                v = max(v, 0.0)
            sent.append(spike * theta)
        return sent

    return rule


def burst(most: int) -> Rule:
    def rule(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
        sent = []
        for current, bias in zip(x, b, strict=False):
            v += current + bias
            spikes = 0
            while spikes < most and v >= theta:
                v -= theta
                spikes += 1
            sent.append(spikes * theta)
        return sent

    return rule


def differential_changes(levels: int) -> Rule:
    """What is really sent: changes; the currents are told as changes too, and both sides keep their running means."""

    def rule(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
        mean_in = mean_out = total = 0.0
        sent = []
        for t, (current, bias) in enumerate(zip(x, b, strict=False), 1):
            told = current - mean_in
            v += told + mean_in - mean_out + bias
            total += mean_out
            change = 0.0
            for k in range(levels):
                size = theta / 2**k
                if v >= 0.75 * size:
                    change = size
                    break
                if v <= -0.75 * size and total >= size * (1 - 1e-9):
                    change = -size
                    break
            v -= change
            total += change
            mean_in += told / t
            mean_out += change / t
            sent.append(change)
        return sent

    return rule


def decoded(changes: Numbers) -> list[float]:
    """The values that a receiver reads from changes."""
    mean, values = 0.0, []
    for t, change in enumerate(changes, 1):
        values.append(mean + change)
        mean += change / t
    return values


def differential(levels: int) -> Rule:
    return lambda x, theta, v, b: decoded(differential_changes(levels)(x, theta, v, b))


def parallel(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
    steps = len(x)
    mean = sum(current + bias for current, bias in zip(x, b, strict=False)) / steps
    return [theta if steps / k * mean + v / k >= theta else 0.0 for k in range(1, steps + 1)]


def residual(extra: int, margin: float) -> Rule:
    def rule(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
        first = plain(x[:extra], theta, v, b)
        left = v + sum(x[:extra]) + sum(b[:extra]) - sum(first)
        then = plain(x[extra:], theta, v, b)
        return first + [spike if left > margin * theta else 0.0 for spike in then]

    return rule


def offset_beginning(x: Numbers, theta: float, v0: float, b: Numbers, rounds: int) -> float:
    """Where a neuron begins, for the currents of its extra steps."""
    start, first = v0, None
    for done in range(rounds):
        v, fired, silent = start, [], []
        for current, bias in zip(x, b, strict=False):
            v += current + bias
            if v >= theta:
                fired.append(v)
                v -= theta
            else:
                silent.append(v)
        first = (v, len(fired)) if first is None else first
        if first[0] < -done * theta and first[1] > done and fired:
            start -= max(theta, min(fired) - theta + 0.001 * theta)
        if first[0] >= (done + 1) * theta:
            start += max(theta, theta - max(silent) + 0.001 * theta) if silent else theta
    return start


def offset(extra: int, rounds: int) -> Rule:
    def rule(x: Numbers, theta: float, v: float, b: Numbers) -> list[float]:
        start = offset_beginning(x[:extra], theta, v, b, rounds)
        return plain(x[:extra], theta, start, b) + plain(x[extra:], theta, start, b)

    return rule


def staircase(z: float, theta: float, levels: int) -> float:
    return theta / levels * min(max(math.floor(z * levels / theta + 0.5), 0), levels)


def each_neuron(rule: Rule, x: Tensor, theta: Tensor, v0: Tensor, b: Tensor) -> Tensor:
    """A rule for each neuron of a layer; x ``[T, N, ...]``, the constants written out for each neuron."""
    sent = torch.zeros_like(x)
    for place in itertools.product(*map(range, x.shape[1:])):
        own = (slice(None), *place[1:])
        constants = float(theta[place[1:]]), float(v0[place[1:]]), b[own].tolist()
        numbers = rule(x[(slice(None), *place)].tolist(), *constants)
        sent[(slice(None), *place)] = torch.tensor(numbers, dtype=x.dtype)
    return sent
