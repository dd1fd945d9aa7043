"""How much faster several processes are than one: python -m benchmarks.together [--write] puts it into docs/scale.md.

Each round starts torchrun anew with each number of processes, in turn. Every process has one thread, and what is timed
begins when all of them are ready: reading, tracing and compiling are left out, as they take the same time in each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.page import fill
from benchmarks.settings import Settings
from ftbc.measure.timing import Timing

PAGE = Path("docs/scale.md")
PROCESSES = (1, 2)
WORK = {"calibration": "FTBC, T = 8, 10 iterations of 2 x 128 images", "evaluation": "T = 8, 1,000 images"}
_STEPS = 8


def work(quick: bool) -> None:
    """What one process of the team does: the leading one prints the seconds."""
    import torch

    import ftbc

    torch.set_num_threads(1)
    ann = ftbc.zoo.load("resnet20-cifar10")
    calibration, test = ftbc.data.load("cifar10-sample", calibration=16 if quick else 256, test=40 if quick else 1000)
    recipe = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1 if quick else 10),))
    few, warm = calibration.take(8), ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1, batch=4),))
    with ftbc.team() as team:
        ftbc.evaluate(ftbc.convert(ann, few, _STEPS, warm, team=team), test.take(20), team=team)
        team.wait()
        begun = time.perf_counter()
        snn = ftbc.convert(ann, calibration, _STEPS, recipe, team=team)
        team.wait()
        converted = time.perf_counter()
        accuracy = ftbc.evaluate(snn, test, team=team, counted_images=1).accuracy[-1]
        team.wait()
        ended = time.perf_counter()
        if team.leads:
            seconds = {"calibration": converted - begun, "evaluation": ended - converted}
            print(json.dumps({**seconds, "accuracy": accuracy}), flush=True)


def measure(processes: int, quick: bool) -> dict[str, float]:
    """The seconds of one run."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += ["-m", "benchmarks.together", "--work", *(["--quick"] if quick else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run(settings: Settings) -> None:
    """Rounds of all numbers of processes in turn; the ratio of their times to that of one."""
    taken: dict[int, list[dict[str, float]]] = {count: [] for count in PROCESSES}
    for _ in range(settings.repeats):
        for count in PROCESSES:
            taken[count].append(measure(count, settings.quick))
    accuracies = {round_["accuracy"] for rounds in taken.values() for round_ in rounds}
    rows: list[dict[str, Any]] = []
    for what in WORK:
        alone = Timing(tuple(round_[what] for round_ in taken[1]))
        for count in PROCESSES:
            speed = Timing(tuple(round_[what] for round_ in taken[count])).speed_over(alone)
            rows.append({"what": what, "processes": count, "repeats": settings.repeats, "ratio": speed.to_dict()})
            print(f"{what}, {count} processes: {speed} x", flush=True)
    notes = [f"the accuracies of all runs: {sorted(accuracies)}"]
    results.write(settings, "together", rows, notes)


def table(content: dict[str, Any]) -> str:
    """Markdown: a row for each kind of work, a column for each number of processes."""
    lines = ["| ResNet-20 on CIFAR-10 | 1 process | 2 processes |", "|---|---|---|"]
    for what, words in WORK.items():
        cells = []
        for count in PROCESSES:
            (row,) = [row for row in content["rows"] if (row["what"], row["processes"]) == (what, count)]
            ratio = row["ratio"]
            cells.append(f"{ratio['median']:.2f} ({ratio['low']:.2f}..{ratio['high']:.2f})")
        lines.append(f"| {what}: {words} | {' | '.join(cells)} |")
    facts = content["machine"]
    lines.append(f"\nTimes as fast as one process, median of {content['rows'][0]['repeats']} rounds; {facts['cpu']}, ")
    return "\n".join(lines) + f"{facts['cores']} cores, one thread a process."


def main() -> None:
    """Measure, or do what one process does, or write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.together", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE} afterwards")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a few images: see that all runs")
    parser.add_argument("--to", type=Path, default=Path("results"))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.quick)
        return
    settings = Settings(to=given.to, repeats=given.repeats, quick=given.quick)
    run(settings)
    content = results.read(given.to, "together")
    assert content is not None
    if given.write:
        fill(PAGE, {"together": lambda: table(content)})


if __name__ == "__main__":
    main()
