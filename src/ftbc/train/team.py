"""Several processes that train one network together, each on its part of every batch; started by torchrun.

``torchrun --nproc-per-node 2 -m ftbc train ...``: gloo on CPUs, nccl on GPUs. Gradients are averaged over the
processes, which is the gradient of the whole batch. BatchNorm takes its statistics from the part that its process sees;
those of the first process are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn

from ftbc.errors import InputError


@dataclass(frozen=True)
class Team:
    """Which process of how many this one is, and where it computes; by default alone on the CPU."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def part(self, batch: int) -> slice:
        """The part of a batch that is this process's own."""
        if batch % self.size:
            raise InputError(f"a batch of {batch} cannot be shared by {self.size} processes: choose a multiple")
        own = batch // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def join(self, model: nn.Module) -> nn.Module:
        """The network as it is trained: alone, or averaging its gradients with those of the others."""
        if self.size == 1:
            return model
        devices = [self.device] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=devices)

    def total(self, *numbers: float) -> list[float]:
        """Sums over all processes."""
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        if self.size > 1:
            dist.all_reduce(sums)
        return sums.tolist()

    def wait(self) -> None:
        """Go on when all are here."""
        if self.size > 1:
            dist.barrier()


@contextmanager
def team() -> Iterator[Team]:
    """The team that torchrun has started, or this process alone, on a GPU if there is one."""
    cuda = torch.cuda.is_available()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Team(device=torch.device("cuda" if cuda else "cpu"))
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        yield Team(dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()
