"""Several processes that do one piece of work together; started by torchrun, on one machine or several.

``torchrun --nproc-per-node 2 -m ftbc evaluate ...``: gloo on CPUs, nccl on GPUs. Every process reads the same images in
the same order and computes its part of each batch; what is learnt from a batch are sums and maxima over its images,
which are brought together here and nowhere else. So the result does not depend on the number of processes, but for the
order in which floating-point numbers are added; counts and maxima are equal to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ftbc.errors import FtbcError, InputError, ProcessError, first_line
from ftbc.graph.precision import synapses_in_bfloat16

Value = TypeVar("Value")


@dataclass(frozen=True)
class Team:
    """Which process of how many this one is, and where it computes; by default alone on the CPU.

    >>> Team(rank=1, size=3).own(10), Team().sum(torch.ones(2)).tolist()
    (slice(3, 6, None), [1.0, 1.0])
    """

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    # ---- shares of the work ------------------------------------------------------------------------------

    def own(self, count: int) -> slice:
        """The part of ``count`` images that is this process's own; perhaps none, if they are fewer than processes."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def part(self, batch: int) -> slice:
        """The same where all parts must be equal, as in training."""
        if batch % self.size:
            raise InputError(f"a batch of {batch} cannot be shared by {self.size} processes: choose a multiple")
        return self.own(batch)

    def join(self, model: nn.Module) -> nn.Module:
        """The network as it is trained: alone, or averaging its gradients with those of the others.

        That average is the gradient of the whole batch. BatchNorm takes its statistics from the part that its process
        sees; those of the first process are kept.
        """
        if self.size == 1:
            return model
        devices = [self.device] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=devices)

    # ---- what all of them know together ------------------------------------------------------------------

    def sum(self, own: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        return own if self.size == 1 else self._reduced(own, dist.ReduceOp.SUM)

    def largest(self, own: Tensor) -> Tensor:
        """The largest over all processes, entry by entry."""
        return own if self.size == 1 else self._reduced(own, dist.ReduceOp.MAX)

    def mean(self, sums: Tensor, count: float) -> Tensor:
        """Sums over all processes, over their counts, in float64: one message for both."""
        whole = self.sum(torch.cat([sums.double().flatten(), sums.new_tensor([count], dtype=torch.float64)]))
        return (whole[:-1] / whole[-1]).view(sums.shape)

    def rows(self, own: Tensor) -> Tensor:
        """The rows ``[n, ...]`` of all processes, one process after another; each may have another number of them."""
        if self.size == 1:
            return own
        counts = self.sum(torch.eye(self.size, dtype=torch.int64)[self.rank] * len(own)).tolist()
        first = sum(counts[: self.rank])
        whole = own.new_zeros(sum(counts), *own.shape[1:])
        whole[first : first + len(own)] = own
        return self.sum(whole)  # of each row and zeros: the row itself

    def total(self, *numbers: float) -> list[float]:
        """Sums of numbers over all processes."""
        return self.sum(torch.tensor(numbers, dtype=torch.float64, device=self.device)).tolist()

    def told(self, value: Value) -> Value:
        """What the leading process says."""
        return value if self.size == 1 else self._gathered(value)[0]

    def wait(self) -> None:
        """Go on when all are here."""
        if self.size > 1:
            self.total(0.0)

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """A block in which no process asks others for anything: an error meant for the user is raised by all or none.

        Else one of them would stop or go on to something else, and the others wait for it.
        """
        error: FtbcError | None = None
        try:
            yield
        except FtbcError as raised:
            error = raised
        if self.size > 1 and self.total(float(error is not None))[0]:
            known = self._gathered(None if error is None else (type(error), str(error)))
            if error is None:
                kind, text = next(entry for entry in known if entry is not None)
                error = Exception.__new__(kind, text)
        if error is not None:
            raise error

    def _reduced(self, own: Tensor, operation: Any) -> Tensor:
        whole = own.detach().to(self.device, copy=True).contiguous()
        with _others_alive():
            dist.all_reduce(whole, operation)
        return whole.to(own.device)

    def _gathered(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.size
        with _others_alive():
            dist.all_gather_object(values, value)
        return values


ALONE = Team()


def leads() -> bool:
    """Whether this process speaks for its team, inside `team` or not."""
    return os.environ.get("RANK", "0") == "0"


def started() -> int:
    """How many processes torchrun has started for this job; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def team(device: str | None = "cpu") -> Iterator[Team]:
    """The team that torchrun has started, or this process alone.

    device: "cpu", "cuda" (each process of a machine takes a GPU of its own) or another of torch's; None: a GPU if there
    is one. With "+bf16", as in "cuda+bf16", synapses compute in bfloat16 inside the block (`graph/precision.py`).
    """
    kind, plus, precision = (device or ("cuda" if torch.cuda.is_available() else "cpu")).partition("+")
    if plus and precision != "bf16":
        raise InputError(f"there is no precision '{precision}' (--device {device}): choose {kind} or {kind}+bf16")
    with synapses_in_bfloat16(bool(plus)), _team_on(kind) as own:
        yield own


@contextmanager
def _team_on(kind: str) -> Iterator[Team]:
    count, number = started(), int(os.environ.get("LOCAL_RANK", "0"))
    place = torch.device(kind, number) if kind == "cuda" and count > 1 else _device(kind)
    if count == 1:
        yield Team(device=place)
        return
    with _others_alive():
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Team(dist.get_rank(), dist.get_world_size(), place)
    finally:
        dist.destroy_process_group()


def _device(name: str) -> torch.device:
    try:
        place = torch.device(name)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"no device '{name}' here ({first_line(error)}): choose cpu, or cuda with a GPU") from error
    return place


@contextmanager
def _others_alive() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch has no common kind of its own for a peer that is gone
        raise ProcessError(
            f"another process of this job has ended or cannot be reached ({first_line(error)}): see what it wrote "
            "above; the same command goes on with what is kept"
        ) from error
