"""What goes wrong: exit status 2, one line, nothing half-written."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ftbc
from ftbc.cli.app import run

Fails = Callable[..., str]
QUICK = ("--data", "squares", "--images", "16", "--recipe", "mean-square")
TO = ("--to", "net.snn")
GOOD = "nets.py:good"
ON_SQUARES = ("--data", "squares")

CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "no such command": (("convrt",), ("convrt", "ftbc --help")),
    "no such option": (("methods", "--colour"), ("--colour", "ftbc methods --help")),
    "missing option": (("convert", GOOD), ("--to", "ftbc convert --help")),
    "missing argument": (("check",), ("model", "ftbc check --help")),
    "missing command": (("data",), ("ommand", "ftbc data --help")),
    "not a number": (("convert", GOOD, *QUICK, *TO, "--steps", "many"), ("--steps", "see ftbc convert --help")),
    "steps 0": (("convert", GOOD, *QUICK, *TO, "--steps", "0"), ("--steps",)),
    "steps 0 to evaluate": (("evaluate", GOOD, *QUICK, "--steps", "0"), ("--steps 0",)),
    "more steps than memory": (("convert", GOOD, *QUICK, *TO, "--steps", "99999999999"), ("--steps",)),
    "more steps than memory to evaluate": (("evaluate", GOOD, *QUICK, "--steps", "99999999999"), ("100,000",)),
    "two outputs in one file": (("convert", GOOD, *QUICK, *TO, "--json", "./net.snn"), ("net.snn", "another")),
    "an output over the network": (("export", "nir", "text.toml", "--to", "text.toml"), ("text.toml", "another")),
    "an output over a recipe": (
        ("evaluate", GOOD, *ON_SQUARES, "--recipe", "again.toml", "--json", "again.toml"), ("again.toml", "another")
    ),
    "a network over its own source": (("convert", GOOD, *QUICK, "--to", "nets.py"), ("nets.py", "another")),
    "a result over a network's source": (("check", GOOD, *ON_SQUARES, "--json", "nets.py"), ("nets.py", "another")),
    "a figure over a network's source": (("bench", GOOD, *ON_SQUARES, "--json", "./nets.py"), ("nets.py", "another")),
    "a result over a link to the source": (("evaluate", GOOD, *QUICK, "--json", "link.json"), ("link.json", "another")),
    "a table over a recipe's source": (
        ("compare", "resnet20-cifar10", "--recipes", "ftbc,nets.py:mine", "--csv", "nets.py"), ("nets.py", "another")
    ),
    "a page over the methods beside it": (
        ("report", GOOD, *ON_SQUARES, "--against", "again.toml", "--to", "again.toml"), ("again.toml", "another")
    ),
    "a result over the weights": (
        ("check", "resnet20", "--weights", "text.npz", "--json", "text.npz"), ("text.npz", "another")
    ),
    "a result over what is verified": (
        ("export", "verify", "text.npz", "text.toml", "--json", "text.toml"), ("text.toml", "another")
    ),
    "a name that is too long": (("convert", GOOD, *QUICK, "--to", 300 * "a"), ("choose another name",)),
    "a network of a name that is too long": (("check", f"{300 * 'a'}.py:x"), ("does not exist",)),
    "data of a name that is too long": (("check", GOOD, "--data", 3000 * "a"), ("too long",)),
    "an early exit of neurons that see all steps": (
        ("evaluate", GOOD, *ON_SQUARES, "--images", "8", "--recipe", "parallel-relu", "--stop", "0.9"),
        ("steps at once", "step by step"),
    ),
    "a report over the description": (
        ("export", "weights", "x.snn", "--to", "x.npz", "--json", "x.json"), ("x.json", "another")
    ),
    "classes of the zoo's own": (("check", "resnet20-cifar10", "--classes", "100"), ("--classes", "resnet20-cifar10")),
    "more images than the package has": (("convert", "resnet20-cifar10", *TO, "--images", "513"), ("513", "512")),
    "data of an unset variable": (("evaluate", GOOD, "--data", ""), ("--data is empty",)),
    "two recipes of one name": (
        ("evaluate", GOOD, *ON_SQUARES, "--recipe", "ftbc,again.toml"), ("two recipes", "'ftbc'")
    ),
    "a setting that a recipe's file has wrong": (
        ("evaluate", GOOD, *ON_SQUARES, "--recipe", "again.toml,typo.toml"), ("typo.toml", "alhpa")
    ),
    "a recipe without a name": (("evaluate", GOOD, *ON_SQUARES, "--recipe", "nameless.toml"), ("nameless.toml",)),
    "a report of a map": (("report", "nets.py:plane", *ON_SQUARES, "--images", "8"), ("one score per class",)),
    "a conversion's report of a map": (
        ("convert", "nets.py:plane", *QUICK, *TO, "--report", "x.html"), ("one score per class",)
    ),
    "a comparison of maps": (
        ("compare", "nets.py:plane", *ON_SQUARES, "--images", "8", "--results", "kept"), ("one score per class",)
    ),
    "steps with words": (("evaluate", GOOD, *QUICK, "--steps", "1,two"), ("1,two", "1,2,4,8")),
    "no steps": (("evaluate", GOOD, *QUICK, "--steps", ""), ("--steps",)),
    "images 0": (("convert", GOOD, *TO, "--images", "0"), ("--images",)),
    "too many images": (("convert", GOOD, *TO, "--data", "squares", "--images", "999"), ("999", "24")),
    "seed negative": (("convert", GOOD, *QUICK, *TO, "--seed", "-1"), ("--seed",)),
    "seed huge": (("convert", GOOD, *QUICK, *TO, "--seed", str(10**30)), ("--seed",)),
    "classes negative": (("check", "resnet20", "--weights", "x.pt", "--classes", "-1"), ("--classes",)),
    "classes of a file": (("check", GOOD, "--classes", "3"), ("--classes", "nets.py:good")),
    "no such network": (("check", "resnt20"), ("resnt20", "did you mean")),
    "no weights": (("check", "resnet20"), ("resnet20", "--weights")),
    "no such weights": (("check", "resnet20", "--weights", "x.pt"), ("x.pt",)),
    "a file without a function": (("check", "nets.py"), ("nets.py:factory",)),
    "no such file": (("check", "nots.py:good"), ("nots.py",)),
    "no such function": (("check", "nets.py:god"), ("nets.py", "god")),
    "a function that fails": (("check", "nets.py:broken", "--data", "squares"), ("broken", "no weights", "nets.py:2")),
    "a function that leaves": (("check", "nets.py:leaves"), ("leaves", "SystemExit")),
    "not a network": (("check", "nets.py:number"), ("int", "nn.Module")),
    "a file with an error": (("check", "wrong.py:net"), ("wrong.py", "ZeroDivisionError", "wrong.py:2")),
    "a file that is no Python": (("check", "text.py:net"), ("text.py", "SyntaxError")),
    "a network that does not convert": (("convert", "nets.py:Bad", *QUICK, *TO), ("sin", "nets.py:")),
    "no such data": (("check", GOOD, "--data", "circles"), ("circles",)),
    "no such folder of data": (("check", GOOD, "--data", "some/circles"), ("some/circles",)),
    "damaged data": (("check", GOOD, "--data", "text.npz"), ("text.npz",)),
    "images of another size": (("convert", GOOD, *TO), ("32",)),
    "one file to calibrate on": (("convert", GOOD, *TO, "--data", "squares/squares_test.npz"), ("--calibration",)),
    "no such normalisation": (("check", GOOD, *ON_SQUARES, "--normalise", "cifra10"), ("cifra10", "cifar10")),
    "no such recipe": (("convert", GOOD, *ON_SQUARES, "--recipe", "fbtc", *TO), ("fbtc", "ftbc")),
    "one recipe of two": (("evaluate", GOOD, *ON_SQUARES, "--recipe", "ftbc,fbtc"), ("fbtc",)),
    "no such engine": (("evaluate", GOOD, *ON_SQUARES, "--engine", "nonsense"), ("'nonsense'", "layerwise", "event")),
    "a confidence in percent": (("evaluate", GOOD, *ON_SQUARES, "--stop", "99"), ("--stop 99", "below 1")),
    "a confidence of nothing": (("evaluate", GOOD, *ON_SQUARES, "--stop", "0"), ("--stop 0", "above 0")),
    "a confidence that is no number": (("evaluate", GOOD, *ON_SQUARES, "--stop", "nan"), ("--stop nan",)),
    "a confidence in words": (("evaluate", GOOD, *ON_SQUARES, "--stop", "high"), ("--stop", "number")),
    "no such recipe file": (("convert", GOOD, *ON_SQUARES, "--recipe", "no.toml", *TO), ("no.toml",)),
    "damaged recipe file": (("convert", GOOD, *ON_SQUARES, "--recipe", "text.toml", *TO), ("text.toml",)),
    "no such method": (("methods", "fbtc"), ("fbtc", "ftbc")),
    "no such folder to write to": (("convert", GOOD, *QUICK, "--to", "no/net.snn"), ("no/net.snn",)),
    "a folder to write to": (("convert", GOOD, *QUICK, "--to", "squares"), ("squares",)),
    "no such folder for the result": (("convert", GOOD, *QUICK, *TO, "--json", "no/x.json"), ("no/x.json",)),
    "a folder for the list": (("methods", "--json", "squares"), ("squares",)),
    "no such saved network": (("evaluate", GOOD, *ON_SQUARES, "--snn", "x.snn"), ("x.snn",)),
    "a conversion of a saved network": (
        ("evaluate", GOOD, *ON_SQUARES, "--snn", "x.snn", "--steps", "4", "--mirrored"),
        ("--snn", "--steps, --mirrored"),
    ),
    "a report of a saved network with another recipe": (
        ("report", GOOD, *ON_SQUARES, "--snn", "x.snn", "--recipe", "best"), ("--snn", "--recipe")
    ),
    "a damaged saved network": (("evaluate", GOOD, *ON_SQUARES, "--snn", "text.toml"), ("text.toml",)),
    "no such data to train on": (("train", "resnet20", "--data", "circles", "--to", "x.safetensors"), ("circles",)),
    "no such architecture": (("train", "resnt20", "--data", "squares", "--to", "x.safetensors"), ("resnt20",)),
    "a batch too large": (("train", "resnet20", *ON_SQUARES, "--to", "x.safetensors"), ("24", "128")),
    "a wrong learning rate": (
        ("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--batch", "8", "--learning-rate", "-1"), ("learning_rate",)
    ),
    "an average of nothing": (("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--average"), ("--start-from",)),
    "weights over the settings": (("train", "resnet20", *ON_SQUARES, "--to", "x.toml"), ("x.toml",)),
    "weights over the log": (("train", "resnet20", *ON_SQUARES, "--to", "x.csv"), ("x.csv",)),
    "no such activation": (
        ("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--activation", "qcsf"), ("qcsf", "qcfs")
    ),
    "levels of nothing": (("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--levels", "4"), ("levels=4",)),
    "levels of an activation without": (
        ("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--activation", "rate-norm", "--levels", "4"),
        ("'rate-norm'", "'levels'"),
    ),
    "no such settings": (("train", "--settings", "none.toml", "--to", "x.st"), ("none.toml",)),
    "no network": (("train", *ON_SQUARES, "--to", "x.st"), ("no architecture",)),
    "no data": (("train", "resnet20", "--to", "x.st"), ("no data", "--data")),
    "fine-tuning to what it is": (
        ("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--finetune-from", "y.st"), ("--activation",)
    ),
    "no such weights to fine-tune": (
        ("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--finetune-from", "y.st", "--activation", "qcfs",
         "--batch", "8"), ("y.st",)
    ),
    "no such policy": (
        ("train", "resnet20", *ON_SQUARES, "--to", "x.st", "--auto-augment", "all"), ("auto_augment", "cifar10")
    ),
    "weights over the checkpoint": (("train", "resnet20", *ON_SQUARES, "--to", "x.checkpoint"), ("x.checkpoint",)),
    "no such data to fetch": (("data", "get", "cifar11", "--to", "new"), ("cifar11",)),
    "no such source": (("data", "get", "cifar10", "--to", "new", "--source", "ftp"), ("ftp",)),
    "a sample of nothing": (("data", "sample", "circles", "--to", "x.npz"), ("circles",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_written(case: str, fails: Fails, folder: Path) -> None:
    (folder / "wrong.py").write_text("a = 1\nb = a / 0\n")
    (folder / "text.py").write_text("this is no Python\n")
    (folder / "text.npz").write_text("nor an archive")
    (folder / "text.toml").write_text("= [")
    (folder / "again.toml").write_text("name = 'ftbc'\n[[calibrate]]\ntype = 'FTBC'\nalpha = 0.1\n")
    (folder / "typo.toml").write_text("[[calibrate]]\ntype = 'FTBC'\nalhpa = 0.1\n")
    (folder / "nameless.toml").write_text("name = ''\n")
    (folder / "link.json").symlink_to(folder / "nets.py")
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    arguments, words = CASES[case]
    line = fails(*arguments)
    for word in words:
        assert word in line, line
    assert {
        p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in str(p)
    } == before


def test_a_full_disk_leaves_the_older_network(fails: Fails, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "net.snn").write_bytes(b"older")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ftbc.atomic.os.fsync", full)
    assert "net.snn" in fails("convert", GOOD, *QUICK, *TO)
    assert (folder / "net.snn").read_bytes() == b"older" and not list(folder.glob(".*partial"))


def test_a_wrong_engine_is_found_before_any_work(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("work was begun")

    for work in ("ftbc.cli.evaluate.find_model", "ftbc.cli.evaluate.find_test", "ftbc.convert", "ftbc.evaluate"):
        monkeypatch.setattr(work, never)
    assert "evnt" in fails("evaluate", GOOD, *QUICK, "--engine", "evnt")
    monkeypatch.setitem(sys.modules, "numba", None)
    assert "pip install 'ftbc[fast]'" in fails("evaluate", GOOD, *QUICK, "--engine", "event")


def test_debug_shows_where(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "nets.py:god", "--debug"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("Traceback") and "options.py" in error
    assert error.splitlines()[-1].startswith("ftbc: 'nets.py' has no 'god'")


def test_a_defect_is_not_hidden(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(ftbc, "recipes", defect)
    with pytest.raises(ZeroDivisionError, match="ours"):
        run(["methods"])


def test_an_interrupt_that_was_swallowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def swallow(*_: object, **__: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        raise AttributeError("half imported")

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(ftbc, "convert", swallow)
    assert run(["convert", GOOD, *QUICK, *TO]) == 130
    assert capsys.readouterr().err == "ftbc: interrupted\n" and signal.getsignal(signal.SIGINT) is before


def test_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ftbc, "convert", interrupt)
    assert run(["convert", GOOD, *QUICK, *TO]) == 130
    assert capsys.readouterr().err == "ftbc: interrupted\n" and not (folder / "net.snn").exists()
