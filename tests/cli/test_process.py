"""The command line as a process: signals, pipes and terminals."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ftbc

MAIN = "from ftbc.cli import main; main()"
QUICK = ("--data", "squares", "--images", "16", "--recipe", "mean-square")


def started(folder: Path, environment: dict[str, str], *arguments: str, **settings: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAIN, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes)  # type: ignore[call-overload]


def test_an_error_of_a_process(folder: Path, environment: dict[str, str]) -> None:
    process = started(folder, environment, "check", "nets.py:god")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2 and out == ""
    assert err == "ftbc: 'nets.py' has no 'god': name a function or class that gives an nn.Module\n"


def test_results_go_where_they_are_sent_though_the_bar_is_on_a_terminal(
    folder: Path, environment: dict[str, str]
) -> None:
    terminal, screen = pty.openpty()
    process = started(folder, environment, "evaluate", "nets.py:good", *QUICK, "--steps", "2", stderr=screen)
    out, _ = process.communicate(timeout=120)
    os.close(screen)
    shown = _read_all(terminal)
    assert process.returncode == 0 and "mean-square, T = 2" in out and "\x1b" not in out
    assert "evaluating" in shown and "mean-square" not in shown


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_work_is_done_though_nobody_listens(folder: Path, environment: dict[str, str], closed: str) -> None:
    command = [sys.executable, "-c", MAIN, "convert", "nets.py:good", *QUICK, "--steps", "2", "--to", "net.snn"]
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(command)} {closed}"], cwd=folder, env=environment, capture_output=True, timeout=120
    )
    assert done.returncode == 0 and ftbc.load(folder / "net.snn").steps == 2, done


def _read_all(terminal: int) -> str:
    shown = b""
    try:
        while part := os.read(terminal, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    return shown.decode(errors="replace")


def test_interrupting_a_conversion(folder: Path, environment: dict[str, str]) -> None:
    recipe = ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=10**6, batch=8),), name="endless")
    (folder / "endless.toml").write_text(recipe.to_toml())
    (folder / "net.snn").write_bytes(b"older")
    options = (
        "--data",
        "squares",
        "--images",
        "16",
        "--recipe",
        "endless.toml",
        "--to",
        "net.snn",
        "--json",
        "net.json",
    )
    terminal, screen = pty.openpty()
    process = started(folder, environment, "convert", "nets.py:good", *options, stderr=screen)
    os.close(screen)
    shown = b""
    while b"calibrating" not in shown and process.poll() is None:
        shown += os.read(terminal, 1 << 16)
    process.send_signal(signal.SIGINT)
    shown += _read_all(terminal).encode()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "", shown
    assert b"ftbc: interrupted" in shown and b"Traceback" not in shown
    assert (folder / "net.snn").read_bytes() == b"older"
    assert not (folder / "net.json").exists() and not list(folder.glob(".*"))


def test_a_reader_that_leaves_early(folder: Path, environment: dict[str, str]) -> None:
    process = started(folder, environment, "methods")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=120)
    assert "Traceback" not in err and "Error" not in err


def test_files_are_written_before_anything_is_shown(folder: Path, environment: dict[str, str]) -> None:
    """What took long to measure is not lost because the reader of a pipe has left."""
    options = ("--data", "squares", "--images", "16", "--recipes", "maximum", "--steps", "1", "--seeds", "1")
    files = ("--csv", "t.csv", "--json", "t.json")
    process = started(folder, environment, "compare", "nets.py:good", *options, *files)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=120)
    assert "Traceback" not in err
    assert (folder / "t.csv").read_text().count("\n") == 2 and '"maximum"' in (folder / "t.json").read_text()
