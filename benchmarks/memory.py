"""Peak memory of every engine against T, each measured in a process of its own (Linux)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import ftbc
from benchmarks import results
from benchmarks.networks import cifar, resnet20
from benchmarks.settings import Settings
from ftbc.measure.speed import ENGINES, density
from ftbc.measure.timing import Spread

FORGET = Path("/proc/self/clear_refs")


def run(settings: Settings) -> None:
    """How much the peak of a process that has run the network on one image grows while it runs on many."""
    images = settings.pick(64, 4)
    if not FORGET.exists():
        print("memory: left out, it is measured by /proc of Linux\n")
        results.write(settings, "memory", [], ["left out: it is measured by /proc of Linux"])
        return
    rows: list[dict[str, Any]] = []
    subject = resnet20(settings, "mean-square")
    print(f"growth of peak memory while running, MB, {subject.name}, {images} images")
    grown: dict[str, dict[int, Spread]] = {name: {} for name in ENGINES}
    for steps in settings.pick((8, 128), (2, 4)):
        with tempfile.TemporaryDirectory() as folder:
            snn = ftbc.convert(subject.model, subject.images[:64], steps, subject.recipe)
            snn.save(Path(folder) / "as-it-is.snn")
            snn.rounded(subject.images[:64]).save(Path(folder) / "whole.snn")
            values: dict[str, list[float]] = {name: [] for name in ENGINES}
            for _ in range(settings.repeats):
                for name, engine in ENGINES.items():
                    path = Path(folder) / ("whole.snn" if engine.whole else "as-it-is.snn")
                    values[name].append(in_a_process("benchmarks.memory", str(path), engine.engine, str(images)))
        spikes = density(snn, cifar(images))
        for name in ENGINES:
            grown[name][steps] = Spread.of(values[name])
            rows.append(
                {
                    **subject.about(),
                    "engine": name,
                    "steps": steps,
                    "n": images,
                    "threads": torch.get_num_threads(),
                    "density": spikes,
                    "repeats": settings.repeats,
                    "grown_mb": grown[name][steps].to_dict(),
                }
            )
            print(f"  {name:12} T = {steps:3}  {grown[name][steps]!s:>22}", flush=True)
    for name, spreads in grown.items():
        short, long = min(spreads), max(spreads)
        print(f"  {name:12} T = {long} over T = {short}  {spreads[long].median / spreads[short].median:.2f} x")
    results.write(settings, "memory", rows)


def in_a_process(module: str, *arguments: str) -> float:
    """The number that a module prints last, run by a Python of its own."""
    command = [sys.executable, "-m", module, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def _measure(path: str, engine: str, count: int) -> float:
    snn = ftbc.load(path)
    images = cifar(count)
    snn(images[:1], engine=engine)
    forget_peak()
    before = peak()
    snn(images, engine=engine)
    return peak() - before


def forget_peak() -> None:
    """Lower the recorded peak to what is in use now. Some kernels take no notice: growth is then understated."""
    FORGET.write_text("5")


def peak() -> float:
    """Largest resident memory since it was last forgotten, in MB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    print(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))
