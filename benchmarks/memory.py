"""Peak memory of both engines against T, each measured in a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys

IMAGES = 32


def run() -> dict[str, float]:
    """Growth of the peak (over that of a ready process) for T = 8 and T = 128."""
    grown = {}
    print(f"peak memory above that of the idle process, ResNet-20, {IMAGES} images, MB")
    for engine in ("stepwise", "layerwise"):
        for steps in (8, 128):
            command = [sys.executable, "-m", "benchmarks.memory", engine, str(steps)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            grown[f"{engine} T={steps}"] = float(output.split()[-1])
            print(f"  {engine:10} T = {steps:3}  {grown[f'{engine} T={steps}']:7.1f}")
    return grown


def _measure(engine: str, steps: int) -> float:
    import ftbc

    model = ftbc.zoo.load("resnet20-cifar10")
    images = ftbc.data.load("cifar10-sample")[0].take(IMAGES).tensor()
    snn = ftbc.convert(model, images[:2], steps, "maximum")
    snn(images[:1], engine=engine)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    snn(images, engine=engine)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


if __name__ == "__main__":
    print(_measure(sys.argv[1], int(sys.argv[2])))
