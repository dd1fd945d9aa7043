"""Networks of operations in any order: every engine and every form of a network gives the same outputs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ftbc

WIDTH, SIZE, STEPS = 4, 5, 6
OPERATIONS = ("convolve", "depthwise", "normalise", "relu", "relu6", "add", "subtract", "scale", "pool", "average")
Plan = list[tuple[str, int, int]]
PLANS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=9)


class Woven(nn.Module):
    """Each entry of the plan makes a value of one or two that stand before it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.stem, self.head = nn.Conv2d(3, WIDTH, 3, padding=1), nn.Linear(WIDTH * SIZE * SIZE, 3)
        self.factor = nn.Buffer(torch.linspace(-1, 2, WIDTH).view(1, -1, 1, 1))
        self.layers = nn.ModuleList(self._layer(kind) for kind, *_ in plan)

    def _layer(self, kind: str) -> nn.Module:
        if kind == "normalise":
            layer = nn.BatchNorm2d(WIDTH)
            for tensor in (layer.weight, layer.bias, layer.running_mean):
                nn.init.normal_(tensor)  # type: ignore[arg-type]
            return layer
        groups = {"convolve": 1, "depthwise": WIDTH}.get(kind)
        return nn.Identity() if groups is None else nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        values = [self.stem(x)]
        values.append(F.relu(values[0]))
        for layer, (kind, first, second) in zip(self.layers, self.plan, strict=True):
            a, b = values[first % len(values)], values[second % len(values)]
            made = {
                "relu": lambda a=a: F.relu(a),
                "relu6": lambda a=a: F.relu6(4 * a),
                "add": lambda a=a, b=b: a + b,
                "subtract": lambda a=a, b=b: a - b,
                "scale": lambda a=a: a * self.factor,
                "pool": lambda a=a: F.max_pool2d(a, 3, 1, 1),
                "average": lambda a=a: F.avg_pool2d(a, 3, 1, 1),
            }.get(kind, lambda a=a, layer=layer: layer(a))
            values.append(made())
        return self.head(F.relu(values[-1] + values[-2]).flatten(1))


def _converted(plan: Plan, dtype: torch.dtype) -> tuple[ftbc.SpikingNetwork, Tensor]:
    torch.manual_seed(len(plan))
    x = torch.rand(12, 3, SIZE, SIZE, dtype=dtype)
    return ftbc.convert(Woven(plan).to(dtype).eval(), x, STEPS, "mean-square"), x


@settings(max_examples=40, deadline=None)
@given(PLANS)
def test_every_engine_gives_the_same(plan: Plan) -> None:
    """In double precision, in which no spike hangs on a rounding error."""
    snn, x = _converted(plan, torch.float64)
    wanted = snn(x, engine="stepwise")
    for found in (snn(x), snn(x, engine="event"), snn.with_unit_thresholds()(x)):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9 * float(wanted.abs().max() + 1))


@settings(max_examples=40, deadline=None)
@given(PLANS)
def test_the_fast_forms_of_single_precision_write_over_nothing(plan: Plan) -> None:
    snn, x = _converted(plan, torch.float32)
    torch.testing.assert_close(snn(x), snn(x, engine="stepwise"), rtol=0, atol=1e-4)
