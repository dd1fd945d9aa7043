"""Peak memory of both engines against T, each measured in a process of its own (Linux)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import ftbc

IMAGES = 128


def run() -> dict[str, float]:
    """How much the peak of a process that has loaded the network grows while it runs, for T = 8 and T = 128."""
    grown = {}
    print(f"growth of peak memory while running, ResNet-20, {IMAGES} images, MB")
    model = ftbc.zoo.load("resnet20-cifar10")
    calibration, _ = ftbc.data.load("cifar10-sample")
    with tempfile.TemporaryDirectory() as folder:
        for steps in (8, 128):
            path = Path(folder) / f"{steps}.snn"
            ftbc.convert(model, calibration.take(8), steps, "maximum").save(path)
            for engine in ("stepwise", "layerwise"):
                command = [sys.executable, "-m", "benchmarks.memory", str(path), engine]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                grown[f"{engine} T={steps}"] = float(output.split()[-1])
                print(f"  {engine:10} T = {steps:3}  {grown[f'{engine} T={steps}']:7.1f}")
    return grown


def _measure(path: str, engine: str) -> float:
    snn = ftbc.load(path)
    images = ftbc.data.load("cifar10-sample")[0].take(IMAGES).tensor()
    snn(images[:1], engine=engine)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _peak()
    snn(images, engine=engine)
    return _peak() - before


def _peak() -> float:
    """Largest resident memory since it was last forgotten, in MB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    print(_measure(sys.argv[1], sys.argv[2]))
