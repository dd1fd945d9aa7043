"""Commands in several processes, in shards, kept and taken up again, and what they say when they are interrupted."""

from __future__ import annotations

import json
import os
import pty
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ftbc
from ftbc.measure import evaluate as evaluation
from ftbc.protocol import kept_evaluation
from tests.team import torchrun

from .conftest import Outcome
from .test_process import started

Command = Callable[..., Outcome]
Fails = Callable[..., str]
DATA = ("nets.py:good", "--data", "squares", "--images", "16")
EVALUATE = ("evaluate", *DATA, "--steps", "1,2", "--recipe", "mean-square")


def timeless(path: Path) -> Any:
    content = json.loads(path.read_text())
    for row in content.get("results", content.get("rows")):
        row.pop("conversion_seconds", None)
        row.pop("calibration_seconds", None)
    return {name: value for name, value in content.items() if name not in ("made", "kept", "measured")}


def torchrun_done(folder: Path, environment: dict[str, str], *arguments: object) -> str:
    job = torchrun(2, "ftbc", *arguments, folder=folder, environment=environment)
    out, errors = job.communicate(timeout=300)
    assert job.returncode == 0, errors
    return out


@pytest.mark.slow
def test_two_processes_are_as_one(ftbc_command: Command, folder: Path, environment: dict[str, str]) -> None:
    assert ftbc_command(*EVALUATE, "--json", "one.json").status == 0
    out = torchrun_done(folder, environment, *EVALUATE, "--json", "two.json")
    assert timeless(folder / "one.json") == timeless(folder / "two.json")
    assert out.count("mean-square, T = 1") == 1, "the first process speaks for both"
    compare = ("compare", *DATA, "--steps", "1,2", "--seeds", "2", "--recipes", "rmp,mean-square")
    assert ftbc_command(*compare, "--results", "one", "--json", "one.json").status == 0
    out = torchrun_done(folder, environment, *compare, "--results", "two", "--json", "two.json")
    assert timeless(folder / "one.json") == timeless(folder / "two.json") and "8 measured now" in out
    assert sorted(path.name for path in (folder / "one").iterdir()) == sorted(
        p.name for p in (folder / "two").iterdir()
    )
    convert = ("convert", *DATA, "--steps", "2", "--recipe", "mean-square", "--to")
    assert ftbc_command(*convert, "one.snn").status == 0
    torchrun_done(folder, environment, *convert, "two.snn")
    assert (folder / "one.snn").read_bytes() == (folder / "two.snn").read_bytes()


EXPERIMENT = """
title = "A tiny table"
source = "tab:tiny"
kind = "table"
about = "Two methods."

[full]
steps = [1, 2]
images = 16

[small]
steps = [1, 2]
seeds = 2
images = 16
test_images = 10

[networks.net]
small = "resnet20-cifar10"

[[part]]
title = "ResNet-20 on CIFAR-10"
data = "cifar10"

[[part.row]]
method = "MMSE"
network = "net"
recipe = "mean-square"
paper = { 1 = 50.0, 2 = 60.25 }
"""


@pytest.mark.slow
def test_two_processes_reproduce_as_one(ftbc_command: Command, folder: Path, environment: dict[str, str]) -> None:
    (folder / "tiny.toml").write_text(EXPERIMENT)
    command = ("reproduce", "tiny.toml", "--scale", "small", "--engine", "layerwise")
    assert ftbc_command(*command, "--to", "one").status == 0
    out = torchrun_done(folder, environment, *command, "--to", "two")
    assert "4 measured now" in out and out.count("written:") == 1
    assert (folder / "one/tiny.csv").read_text() == (folder / "two/tiny.csv").read_text()
    kept = [sorted(path.name for path in (folder / to / "measurements").iterdir()) for to in ("one", "two")]
    assert kept[0] == kept[1] and len(kept[0]) > 4


@pytest.mark.slow
def test_other_commands_are_for_one_process(folder: Path, environment: dict[str, str]) -> None:
    job = torchrun(2, "ftbc", "methods", folder=folder, environment=environment)
    _, errors = job.communicate(timeout=300)
    assert job.returncode != 0 and "ftbc methods is for one process: start it without torchrun" in errors


def test_shards_and_merging(ftbc_command: Command, fails: Fails, folder: Path) -> None:
    compare = ("compare", *DATA, "--steps", "1,2", "--seeds", "2", "--recipes", "rmp,mean-square")
    assert ftbc_command(*compare, "--results", "whole", "--json", "whole.json").status == 0
    for number in (1, 2):
        assert "4 measured now" in ftbc_command(*compare, "--shard", f"{number}/2", "--results", f"part{number}").out
    both = ("--merge", "part1", "--merge", "part2")
    assert "shard 2/2 is missing" in fails(*compare, *both[:2], "--results", "merged")
    done = ftbc_command(*compare, *both, "--results", "merged", "--json", "merged.json")
    assert done.status == 0 and "0 measured now, 8 taken from merged" in done.out
    assert timeless(folder / "merged.json") == timeless(folder / "whole.json")
    assert "give one of them" in fails(*compare, *both, "--shard", "1/2")
    assert "such as 1/4" in fails(*compare, "--shard", "one")
    assert "no device 'tpu'" in fails(*EVALUATE, "--device", "tpu")
    assert "no precision 'fp8'" in fails(*EVALUATE, "--device", "cpu+fp8")


def test_an_evaluation_is_kept(
    ftbc_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = ftbc_command(*EVALUATE, "--json", "plain.json")
    first = ftbc_command(*EVALUATE, "--results", "kept", "--json", "first.json")
    assert plain.status == first.status == 0 and timeless(folder / "first.json") == timeless(folder / "plain.json")
    names = [path.name.partition("-")[0] + path.suffix for path in (folder / "kept").iterdir()]
    assert sorted(names) == ["evaluation.json"] * 2 + ["network.json"] * 2 + ["network.snn"] * 2

    def never(*_: object, **__: object) -> None:
        raise AssertionError("measured again")

    with monkeypatch.context() as patch:
        patch.setattr(ftbc, "convert", never)
        patch.setattr(evaluation.Tally, "take", never)
        again = ftbc_command(*EVALUATE, "--results", "kept", "--json", "again.json")
    assert again.out == first.out and (folder / "again.json").read_text() == (folder / "first.json").read_text()

    network = sorted((folder / "kept").glob("network*.snn"))[0]
    content = bytearray(network.read_bytes())
    content[-3] ^= 1
    network.write_bytes(content)
    counts = sorted((folder / "kept").glob("evaluation*.json"))[1]
    counts.write_text(counts.read_text().replace("12.0", "11.0", 1))
    mended = ftbc_command(*EVALUATE, "--results", "kept", "--json", "mended.json")
    assert mended.status == 0 and timeless(folder / "mended.json") == timeless(folder / "plain.json")
    assert "does not fit its checksum" in caplog.text and "damaged" in caplog.text and "again" in caplog.text


def test_an_evaluation_goes_on_between_batches(
    ftbc_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_evaluation, "EVERY", 0.0)
    images = ftbc.data.Images
    original = images.__init__
    monkeypatch.setattr(images, "__init__", lambda self, *a, **k: original(self, *a, **{"batch": 5, **k}))
    wanted = ftbc_command(*EVALUATE)
    seen, real = [], evaluation.Tally.take

    def dies(self: Any, x: Any, y: Any, begins: int) -> None:
        seen.append(begins)
        if len(seen) == 5:
            raise KeyboardInterrupt
        real(self, x, y, begins)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation.Tally, "take", dies)
        stopped = ftbc_command(*EVALUATE, "--results", "kept")
    assert stopped.status == 130 and "is kept in 'kept': the same command goes on from there" in stopped.err
    monkeypatch.setattr(
        evaluation.Tally, "take", lambda self, x, y, begins: (seen.append(begins), real(self, x, y, begins))
    )
    seen.clear()
    done = ftbc_command(*EVALUATE, "--results", "kept")
    assert done.status == 0 and done.out == wanted.out
    assert seen == [5, 10], "of the second network the last two of three batches"


def test_a_comparison_is_interrupted_at_once(folder: Path, environment: dict[str, str]) -> None:
    recipe = ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=10**6, batch=8),), name="endless")
    (folder / "endless.toml").write_text(recipe.to_toml())
    terminal, screen = pty.openpty()
    options = ("--recipes", "endless.toml", "--steps", "2", "--seeds", "1")
    process = started(folder, environment, "compare", *DATA, *options, stderr=screen)
    os.close(screen)
    shown = b""
    while b"calibrating" not in shown and process.poll() is None:
        shown += os.read(terminal, 1 << 16)
    begun = time.process_time(), time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143 and time.monotonic() - begun[1] < 30
    try:
        while part := os.read(terminal, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert b"are kept in 'comparison': the same command goes on" in shown and b"Traceback" not in shown
