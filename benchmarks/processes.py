"""Processes that wait to be asked: each loads one program, and all run in turn, so that noise hits all of them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from benchmarks.rivals.task import Task
from benchmarks.settings import Settings
from ftbc.measure.timing import Timing, Way, fastest, interleaved
from ftbc.network import SpikingNetwork

ROOT = Path(__file__).parents[1]
PAUSE = 0.1
"""Seconds before each run: threads of the process before may still be spinning."""
LIMIT = 900.0
"""Seconds after which a process that does not answer is given up."""


class RivalError(Exception):
    """A program that is missing or does not work here; its words, in one line."""


class Rival:
    """One program in a process of its own."""

    def __init__(self, kind: str, python: Path, folder: Path, threads: int, limit: float = LIMIT) -> None:
        self.kind, self.folder, self.limit = kind, folder, limit
        self.complaints = folder / f"{kind}.stderr"
        paths = [str(ROOT / "src"), str(ROOT)]
        command = [str(python.absolute()), "-m", "benchmarks.rivals", kind, str(folder), str(threads)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(threads)}
        if not python.is_file():
            raise RivalError(f"there is no {python}: make peers")
        with self.complaints.open("wb") as errors:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        try:
            said = self._answer()
        except BaseException:
            self.close()
            raise
        if "error" in said:
            self.close()
            raise RivalError(said["error"])
        self.offers: dict[str, int] = said["offers"]
        self.versions: dict[str, str] = said["versions"]

    def run(self, name: str) -> float:
        """Seconds that one run of an offer took, by the clock of the process itself."""
        return self._ask("run", name)["seconds"]

    def output(self, name: str) -> Tensor:
        """What an offer gives for the images."""
        self._ask("output", name)
        return load_file(self.folder / f"{self.kind}.safetensors")["output"]

    def _ask(self, word: str, name: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        time.sleep(PAUSE)
        try:
            self.process.stdin.write(f"{word} {name}\n".encode())
            self.process.stdin.flush()
        except OSError as error:
            raise RivalError(f"{self.kind} is gone: {self._last_words()}") from error
        return self._answer()

    def close(self) -> None:
        """End the process and wait for it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Rival:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], self.limit)[0]:
            self.process.kill()
            raise RivalError(f"{self.kind} did not answer in {self.limit:.0f} seconds")
        line = self.process.stdout.readline()
        if not line:
            raise RivalError(f"{self.kind} ended without an answer: {self._last_words()}")
        return json.loads(line)

    def _last_words(self) -> str:
        lines = self.complaints.read_text(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


@contextmanager
def opened(
    kinds: Sequence[str], snn: SpikingNetwork, images: Tensor, threads: int, settings: Settings
) -> Iterator[tuple[dict[str, Rival], list[str]]]:
    """The processes of these kinds that work here, and a note on each that does not; "own" is always there."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        Task.write(Path(folder), snn, images)
        rivals: dict[str, Rival] = {}
        notes = []
        for kind in kinds:
            python = Path(sys.executable) if kind == "own" else settings.peers
            try:
                rivals[kind] = stack.enter_context(Rival(kind, python, Path(folder), threads))
            except RivalError as error:
                if kind == "own":
                    raise
                notes.append(f"{kind} was left out: {error}")
        yield rivals, notes


def group(name: str) -> str:
    """What an offer is, whatever its batch.

    >>> group("own: ANN, torch, batch 8, plain layout")
    'own: ANN, torch'
    """
    return name.partition(", batch")[0]


def alone(name: str) -> bool:
    """Whether an offer takes one image at a time."""
    return ", batch 1" in name and name.partition(", batch 1")[2][:1] in ("", ",")


def race(rivals: Mapping[str, Rival], repeats: int, names: Sequence[str]) -> dict[str, Timing]:
    """Time offers of all processes in turn; they are named ``KIND: OFFER``."""
    ways = {}
    for name in names:
        kind, _, offer = name.partition(": ")
        ways[name] = Way(lambda rival=rivals[kind], offer=offer: rival.run(offer), rivals[kind].offers[offer])
    return interleaved(ways, repeats, clock=lambda run: run())  # type: ignore[arg-type, return-value]


def best_of_each(rivals: Mapping[str, Rival], groups: Sequence[str], single: bool = True) -> list[str]:
    """For each group the offer that is fastest in a short race, and the fastest that takes one image at a time.

    single: without it, those that take one image at a time do not even start.
    """
    names = [f"{kind}: {offer}" for kind, rival in rivals.items() for offer in rival.offers]
    timings = race(rivals, 1, [name for name in names if group(name) in groups and (single or not alone(name))])
    chosen = []
    for each in dict.fromkeys(map(group, timings)):
        members = {name: timing for name, timing in timings.items() if group(name) == each}
        chosen += [*fastest(members), *fastest({name: timing for name, timing in members.items() if alone(name)})]
    return list(dict.fromkeys(chosen))
