"""Searches: what they look at, that they go on, that workers share them, and what they give."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ftbc
from ftbc.data import NORMALISATIONS, Images
from ftbc.errors import FileError, InputError
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.search import study
from ftbc.search.held_out import HeldOut
from ftbc.search.journal import mend
from ftbc.search.space import Choices, Range, Space
from tests.conftest import Refused

optuna = pytest.importorskip("optuna")

BASE = ftbc.recipe("ftbc", name="small", calibrate=(ftbc.FTBC(iterations=1, batch=8),))
SPACE = Space(BASE, (1, 2), {"calibrate.0.alpha": Range(0.05, 1.0, True), "calibrate.0.iterations": Range(1, 2)})


@pytest.fixture
def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 8), nn.ReLU(), nn.Linear(8, 4))


@pytest.fixture
def divided(network: nn.Module) -> HeldOut:
    pixels = torch.randint(0, 256, (60, 3, 6, 6), dtype=torch.uint8)
    images = Images(pixels, torch.arange(60) % 4, NORMALISATIONS["unit"], "noise")
    labels = network(images.tensor()).argmax(1)
    return HeldOut.of(Images(pixels, labels, NORMALISATIONS["unit"], "noise"), 16, 24)


Make = Callable[..., study.Search]


@pytest.fixture
def make(network: nn.Module, divided: HeldOut) -> Make:
    def search(folder: Path, space: Space = SPACE, **named: Any) -> study.Search:
        return study.Search(network, space, divided, ResultsFolder(folder), **named)

    return search


def test_held_out_images_are_not_calibrated_on() -> None:
    images = Images(torch.arange(40, dtype=torch.uint8).view(40, 1, 1, 1), torch.arange(40) % 4,
                    NORMALISATIONS["unit"].__class__((0.0,), (1.0,)), "numbers")  # fmt: skip
    divided = HeldOut.of(images, 8, 12)
    pool, held_out = (set(part.images.flatten().tolist()) for part in (divided.pool, divided.held_out))
    assert not pool & held_out and len(pool | held_out) == 40 and len(held_out) == 12
    assert torch.bincount(divided.held_out.labels).tolist() == [3] * 4
    with pytest.raises(InputError, match="ask for fewer"):
        HeldOut.of(images, 30, 12)


def test_a_trial_is_worth_its_mean_accuracy_on_the_held_out_images(
    make: Make, network: nn.Module, divided: HeldOut, tmp_path: Path
) -> None:
    search = make(tmp_path, seeds=2)
    search.run(3)
    trials = search.trials()
    assert [trial.number for trial in trials] == [0, 1, 2] and all(trial.value is not None for trial in trials)
    for trial in trials:
        recipe = SPACE.recipe(trial.settings)
        table = ftbc.compare(network, divided.pool, divided.held_out, recipe, (1, 2), seeds=2, images=16)
        assert trial.value == pytest.approx(sum(row.accuracy or 0.0 for row in table.rows) / 2)
    best, accuracy = search.best()
    assert accuracy == max(trial.value or 0.0 for trial in trials)
    search.write_best(best)
    assert ftbc.read_recipe(tmp_path / "best.toml") == best and best.calibrate[0].alpha != 0.5  # type: ignore
    assert ftbc.convert(network, divided.pool, 2, ftbc.read_recipe(tmp_path / "best.toml")).steps == 2


def test_a_broken_search_ends_as_an_unbroken_one(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted in the middle of its third trial, then run on by another worker."""
    whole = make(tmp_path / "whole")
    whole.run(5)
    calls, real = [], study.compare

    def dies(*arguments: Any, **named: Any) -> ftbc.Comparison:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(study, "compare", dies)
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path / "broken").run(5)
    on = make(tmp_path / "broken")
    assert len(on.trials()) == 2
    on.run(5)
    settings = [[(trial.settings, trial.value) for trial in search.trials()] for search in (whole, on)]
    assert settings[0] == settings[1] and on.best() == whole.best()
    before = on.trials()
    on.run(5)
    assert on.trials() == before, "there is nothing left to do"


def test_settings_that_do_not_apply_are_said(make: Make, tmp_path: Path, refused: Refused) -> None:
    space = Space(BASE, (1,), {"threshold": Choices(('{"type": "Trained"}',))})
    search = make(tmp_path, space)
    search.run(2)
    assert all(trial.value is None and "plain ReLU" in trial.reason for trial in search.trials())
    refused(InputError, ("found nothing", "plain ReLU"), search.best)
    assert search.importance() == {}


def test_bad_trials_are_given_up_early(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "_FEW", 1)
    worth = iter([90.0, 90.0, 10.0, 90.0, 90.0])
    monkeypatch.setattr(study.Search, "_accuracies", lambda self, recipe: iter([next(worth)] * 1 + [next(worth, 50.0)]))
    search = make(tmp_path)
    search.run(2)
    assert [trial.value for trial in search.trials()] == [90.0, None]
    assert "worse than most" in search.trials()[1].reason


def test_workers_share_the_trials(make: Make, tmp_path: Path, environment: dict[str, str]) -> None:
    """A trial that another process holds is left alone; when that process has died it is given up."""
    search = make(tmp_path)
    search.run(1)
    code = f"""if True:
        import os
        from ftbc.protocol.results_folder import ResultsFolder
        from ftbc.search.study import _key
        folder = ResultsFolder({str(tmp_path / "workers")!r})
        claim = folder.claim(_key(1))
        claim.__enter__()
        print("held", flush=True)
        import sys; sys.stdin.read()
        os._exit(0)
    """
    search._study.ask()  # the trial of that process
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, **pipes)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    states = optuna.trial.TrialState
    search._give_up_dead()
    assert search._study.get_trials()[1].state == states.RUNNING
    process.communicate("")
    search._give_up_dead()
    assert search._study.get_trials()[1].state == states.FAIL


def test_what_a_killed_writer_leaves_is_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    for whole, torn in ((b"", b"{"), (b"{}\n", b""), (b"{}\n[1]\n", b'{"op'), (b"x" * 5000 + b"\n", b"y" * 9000)):
        journal.write_bytes(whole + torn)
        mend(journal)
        assert journal.read_bytes() == whole
    mend(tmp_path / "none")


def test_a_torn_journal_goes_on(make: Make, tmp_path: Path) -> None:
    make(tmp_path).run(1)
    with (tmp_path / "journal.log").open("ab") as file:
        file.write(b'{"op_code": 5, "tr')
    search = make(tmp_path)
    search.run(2)
    assert len(make(tmp_path).trials()) == 2


def test_other_storages(make: Make, tmp_path: Path, refused: Refused) -> None:
    address = f"sqlite:///{tmp_path / 'search.db'}"
    make(tmp_path / "kept", storage=address).run(1)
    assert len(make(tmp_path / "kept", storage=address).trials()) == 1 and (tmp_path / "search.db").exists()
    refused(InputError, ("--storage", "sqlite:///"), make, tmp_path / "kept", storage="nonsense://")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from ftbc.cli.app import run
    from tests.cli.conftest import NETWORKS

    (tmp_path / "nets.py").write_text(NETWORKS)
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "squares").mkdir()
    pixels = torch.randint(0, 256, (40, 3, 6, 6), dtype=torch.uint8)
    images = Images(pixels, torch.arange(40) % 4, NORMALISATIONS["unit"], "train")
    ftbc.data.write_npz(tmp_path / "squares" / "squares_train.npz", images)  # there is no test split to be read
    (tmp_path / "space.toml").write_text('steps = [1]\n[space]\n"calibrate.0.alpha" = { low = 0.1, high = 0.9 }\n')
    monkeypatch.chdir(tmp_path)
    data = ["--data", "squares", "--images", "8"]
    options = ["search", "nets.py:good", "--space", "space.toml", *data, "--held-out", "12"]
    assert run([*options, "--trials", "3", "--json", "found.json"]) == 0
    out = capsys.readouterr().out
    assert "3 trials on 12 held-out training images" in out and "best.toml" in out
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found["trials"]) == 3 and found["best"]["calibrate"][0]["type"] == "FTBC"
    names = {path.name for path in (tmp_path / "search").iterdir() if not path.name.startswith(("t1-", "ann-", "."))}
    assert {"best.toml", "history.png", "trials.csv", "journal.log", "workers"} <= names
    assert run(["convert", "nets.py:good", *data, "--recipe", "search/best.toml", "--to", "net.snn"]) == 0
    capsys.readouterr()
    assert run([*options, "--images", "30"]) == 2 and "ask for fewer" in capsys.readouterr().err


def test_a_full_disk_is_one_line_and_the_journal_stays(
    make: Make, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = make(tmp_path)
    search.run(1)
    before = (tmp_path / "journal.log").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        refused(FileError, "No space left", search.run, 2)
    assert (tmp_path / "journal.log").read_bytes().startswith(before)
    again = make(tmp_path)
    again.run(2)
    assert len(again.trials()) == 2


def test_a_damaged_journal_is_named(make: Make, tmp_path: Path, refused: Refused) -> None:
    make(tmp_path).run(1)
    journal = tmp_path / "journal.log"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:1], b"{nonsense\n", *lines[1:]]))
    refused(FileError, ("journal.log", "damaged"), make, tmp_path)
