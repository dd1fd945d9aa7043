"""Figure `fig dist`: the bias that makes a neuron fire as often as it should, found step by step from batches.

    b <- b + c ( share - E ) ,      E = mean over a batch of [ x + b >= 1 ]

for x of a density on [low, high] whose distribution is known in closed form, so that b* is known exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ftbc.report.paper_plots import search_of_bias
from ftbc.reproduce.result import Figure
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.toml_table import TomlTable


class Density:
    """The density of Kumaraswamy on [low, high]: its distribution is F(u) = 1 - (1 - u^p)^q, u from 0 to 1.

    >>> density = Density(0.0, 1.0, 1.0, 1.0)  # uniform
    >>> density.bias_for(0.5), float(density.draw(10**5, torch.Generator().manual_seed(0)).mean().round(decimals=1))
    (0.5, 0.5)
    """

    def __init__(self, low: float, high: float, p: float, q: float) -> None:
        self.low, self.high, self.p, self.q = low, high, p, q

    def at(self, x: Tensor) -> Tensor:
        """The density."""
        u = ((x - self.low) / (self.high - self.low)).clamp(0, 1)
        inner = self.p * self.q * u ** (self.p - 1) * (1 - u**self.p) ** (self.q - 1)
        return torch.where((x >= self.low) & (x <= self.high), inner / (self.high - self.low), torch.zeros_like(x))

    def quantile(self, share: float) -> float:
        """The x below which this share lies."""
        return self.low + (self.high - self.low) * (1 - (1 - share) ** (1 / self.q)) ** (1 / self.p)

    def bias_for(self, share: float) -> float:
        """b* of the proposition: with it, this share of x is at the threshold of 1 or above."""
        return 1 - self.quantile(1 - share)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """So many x."""
        u = torch.rand(count, generator=generator, dtype=torch.float64)
        return self.low + (self.high - self.low) * (1 - (1 - u) ** (1 / self.q)) ** (1 / self.p)


def search(density: Density, share: float, rate: float, batch: int, iterations: int, seed: int = 0) -> list[float]:
    """b before the first batch, which is 0, and after each.

    >>> found = search(Density(0.0, 1.0, 1.0, 1.0), 0.5, rate=0.5, batch=10000, iterations=40)
    >>> abs(found[-1] - 0.5) < 0.02
    True
    """
    generator = torch.Generator().manual_seed(seed)
    course = [0.0]
    for _ in range(iterations):
        fired = float((density.draw(batch, generator) + course[-1] >= 1).double().mean())
        course.append(course[-1] + rate * (share - fired))
    return course


def measure_bias_search(setting: Setting) -> Figure:
    """The course of b for the density, the share and the rates of the file."""
    table = TomlTable(dict(setting.experiment.figure), f"{setting.experiment.name}, figure")
    density = Density(*(table.get(key, float) for key in ("low", "high", "p", "q")))
    share, batch, iterations = table.get("share", float), table.get("batch", int), table.get("iterations", int)
    rates = [float(rate) for rate in table.get("rates", list)]
    table.close()
    courses = {rate: search(density, share, rate, batch, iterations, setting.seed) for rate in rates}
    exact = density.bias_for(share)
    rows = [
        {"rate": rate, "batches": done, "bias": round(b, 6), "exact": round(exact, 6)}
        for rate, course in courses.items()
        for done, b in enumerate(course)
    ]
    ends = "; ".join(f"c = {rate:g}: {course[-1]:+.4f}" for rate, course in courses.items())
    said = (
        f"{100 * share:g} % should reach the threshold: b* = {exact:+.4f}, from the distribution in closed form. After "
        f"{iterations} batches of {batch} the rule is at {ends}."
    )
    grid = torch.linspace(density.low - 0.1, density.high + 0.1, 400, dtype=torch.float64)
    curve = list(zip(grid.tolist(), density.at(grid).tolist(), strict=True))
    return Figure(rows, [said], lambda path: search_of_bias(path, curve, courses, exact, share))
