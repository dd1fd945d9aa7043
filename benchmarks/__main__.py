"""Run the benchmarks and write what was measured to results/: python -m benchmarks [PART ...]"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from benchmarks import (
    anns,
    calibration,
    calibration_memory,
    engines,
    growth,
    kinds,
    memory,
    peers,
    profiles,
    sparing,
    training,
)
from benchmarks.networks import SUBJECTS
from benchmarks.settings import Settings
from ftbc.measure.machine import machine

PARTS = {
    "engines": engines,
    "anns": anns,
    "peers": peers,
    "growth": growth,
    "kinds": kinds,
    "sparing": sparing,
    "calibration": calibration,
    "training": training,
    "memory": memory,
    "calibration-memory": calibration_memory,
    "profiles": profiles,
}


def main() -> None:
    """Read the options and run the parts that were asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; else all")
    parser.add_argument("--to", type=Path, help="folder for the results, else results (quick: runs/bench-quick)")
    parser.add_argument("--repeats", type=int, default=5, help="how often everything is measured, in turn")
    parser.add_argument("--shared", type=Path, help="folder with weights/ and data/ (or FTBC_SHARED)")
    parser.add_argument("--vgg", type=Path, help="trained weights for vgg16-cifar")
    parser.add_argument("--peers", type=Path, default=Settings.peers, help="the Python that has the peers")
    parser.add_argument(
        "--network", action="append", choices=SUBJECTS, help="measure the engines on this one; repeat it"
    )
    parser.add_argument("--quick", action="store_true", help="a few images and steps: see that all runs")
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    if given.repeats < 1:
        parser.error("--repeats: give a whole number, at least 1")
    shared = given.shared or (Path(os.environ["FTBC_SHARED"]) if os.environ.get("FTBC_SHARED") else None)
    for option, path in (("--shared", shared), ("--vgg", given.vgg)):
        if path is not None and not path.exists():
            parser.error(f"{option}: '{path}' does not exist")
    settings = Settings(
        to=given.to or Path("runs/bench-quick" if given.quick else "results"),
        repeats=given.repeats,
        shared=shared,
        vgg=given.vgg,
        peers=given.peers,
        networks=tuple(given.network or ()),
        quick=given.quick,
    )
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, threads {settings.threads}, versions {facts['versions']}")
    print(f"Ratios: the median of {settings.repeats} interleaved rounds (smallest..largest).\n", flush=True)
    for part in given.parts or PARTS:
        begun = time.perf_counter()
        PARTS[part].run(settings)
        print(f"[{part}: {(time.perf_counter() - begun) / 60:.1f} minutes]\n", flush=True)


if __name__ == "__main__":
    main()
