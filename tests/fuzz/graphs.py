"""Random small networks: convolutions, norms, pools, sums, joins, shared modules, odd shapes and scales."""

from __future__ import annotations

import random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SCALES = (1e-6, 1e-3, 0.3, 1.0, 1.0, 1.0, 30.0, 1e4)


class Grown(nn.Module):
    """A network of a few blocks, each drawn by chance; ``said`` tells how it was built."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        chance = random.Random(seed)
        torch.manual_seed(seed)
        channels, side = chance.choice((1, 2, 3)), chance.choice((5, 6, 7, 9))
        self.shape = (channels, side, chance.choice((side, side + 2)))
        self.plan: list[tuple[str, Any]] = []
        self.layers = nn.ModuleList()
        self.said: list[str] = []
        for _ in range(chance.randint(1, 4)):
            channels = self._grow(channels, chance)
        wide = chance.choice((3, 8))
        self.ends_wide = chance.random() < 0.5
        self.flat = nn.Flatten()
        with torch.no_grad():
            size = self._body(torch.zeros(2, *self.shape)).flatten(1).shape[1]
        self.hidden, self.head = nn.Linear(size, wide), nn.Linear(wide if self.ends_wide else size, 4)
        self._disturb(chance)

    def _add(self, module: nn.Module) -> int:
        self.layers.append(module)
        return len(self.layers) - 1

    def _conv(self, given: int, made: int, chance: random.Random, kernel: int | None = None) -> int:
        groups = chance.choice([g for g in (1, given) if given % g == 0 and made % g == 0])
        kernel = chance.choice((1, 3)) if kernel is None else kernel
        bias = chance.random() < 0.7
        return self._add(nn.Conv2d(given, made, kernel, padding=kernel // 2, groups=groups, bias=bias))

    def _grow(self, channels: int, chance: random.Random) -> int:
        kind = chance.choice(("plain", "plain", "residual", "join", "shared", "pool"))
        if sum(known == "pool" for known, _ in self.plan) == 2:  # a third could find a single pixel
            kind = "plain"
        made = chance.choice((1, 2, 4, 5)) if kind in ("plain", "join") else channels
        entry: dict[str, Any] = {"conv": self._conv(channels, made, chance)}
        if chance.random() < 0.5:
            entry["norm"] = self._add(nn.BatchNorm2d(made))
        if kind == "residual":
            entry["back"] = self._conv(made, channels, chance)
        if kind == "join":
            entry["other"] = self._conv(channels, 2, chance)
        if kind == "pool":
            pools: tuple[nn.Module, ...] = (
                nn.MaxPool2d(2),
                nn.AvgPool2d(2),
                nn.AvgPool2d(3, 1, 1),
                nn.MaxPool2d(3, 1, 1),
            )
            entry["pool"] = self._add(chance.choice(pools))
        entry["six"] = chance.random() < 0.2
        self.plan.append((kind, entry))
        self.said.append(f"{kind} {channels}->{made}")
        return made + 2 if kind == "join" else made

    def _disturb(self, chance: random.Random) -> None:
        """Odd statistics, dead channels, zero weights, huge and tiny scales."""
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-0.5, 0.5)  # type: ignore[union-attr]
                module.running_var.uniform_(0.3, 2.0)  # type: ignore[union-attr]
                module.weight.data.uniform_(-1.5, 1.5)
            elif isinstance(module, nn.Conv2d | nn.Linear) and module is not self.head:
                module.weight.data *= chance.choice(_SCALES)
                if module.bias is not None and chance.random() < 0.2:
                    module.bias.data[0] = -1e3  # that channel never fires
                if chance.random() < 0.1:
                    module.weight.data[-1] = 0
                if chance.random() < 0.03:
                    module.weight.data.zero_()

    def _activated(self, x: Tensor, six: bool) -> Tensor:
        return F.relu6(x) if six else F.relu(x)

    def _body(self, x: Tensor) -> Tensor:
        for kind, entry in self.plan:
            before = x
            x = self.layers[entry["conv"]](x)
            x = self.layers[entry["norm"]](x) if "norm" in entry else x
            x = self._activated(x, entry["six"])
            if kind == "residual":
                x = F.relu(self.layers[entry["back"]](x) + before)
            elif kind == "join":
                x = torch.cat([x, F.relu(self.layers[entry["other"]](before))], 1)
            elif kind == "shared":
                x = F.relu(self.layers[entry["conv"]](x))
            elif kind == "pool":
                x = self.layers[entry["pool"]](x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        x = self.flat(self._body(x))
        return self.head(F.relu(self.hidden(x)) if self.ends_wide else x)
