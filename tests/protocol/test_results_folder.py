"""A folder of measurements: claims between processes, names by content, and where figures come from."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from ftbc.data import NORMALISATIONS, Images
from ftbc.errors import FileError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.protocol import origin, results_folder
from ftbc.protocol.fingerprint import of_images, of_network, of_settings
from ftbc.protocol.plan import Conversion, Plan, Run
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.recipes import recipe
from tests.conftest import Refused, RunPython

KEY = {"what": "t1-seed0", "seed": 0}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path / "a" / "b")
    folder.prepare()
    assert folder.read(KEY) is None
    folder.write(KEY, {"accuracy": 0.1 + 0.2}, {"by": "me"})
    again = ResultsFolder(tmp_path / "a" / "b")
    assert again.read({"seed": 0, "what": "t1-seed0"}) == {"result": {"accuracy": 0.1 + 0.2}, "made": {"by": "me"}}
    assert again.read({**KEY, "seed": 1}) is None and len(again.used) == 1
    assert folder.place(KEY).name.startswith("t1-seed0-")


def test_nothing_is_kept_without_a_folder() -> None:
    folder = ResultsFolder(None)
    folder.prepare()
    folder.write(KEY, {}, {})
    with folder.claim(KEY) as ours:
        assert ours and folder.read(KEY) is None and not folder.used


def test_claims_hold_between_processes_and_end_with_them(tmp_path: Path, run_python: RunPython) -> None:
    code = f"""if True:
        from ftbc.protocol.results_folder import ResultsFolder
        folder = ResultsFolder({str(tmp_path / "kept")!r})
        for seed in (0, 1):
            with folder.claim({{"what": "t1-seed0", "seed": seed}}) as ours:
                print(ours)
        folder.claim({{"what": "t1-seed0", "seed": 2}}).__enter__()
        import os; os._exit(0)
    """
    folder = ResultsFolder(tmp_path / "kept")
    folder.prepare()
    with folder.claim(KEY) as ours:
        assert ours
        assert run_python(code).stdout == "False\nTrue\n"
    with folder.claim({**KEY, "seed": 2}) as ours:
        assert ours, "its holder is gone"
    folder.close()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [".lock"]


def test_file_systems_and_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(results_folder.fcntl, "lockf", without)
    with ResultsFolder(tmp_path).claim(KEY) as ours:
        assert ours
    monkeypatch.setattr(results_folder, "fcntl", None)
    with ResultsFolder(tmp_path / "elsewhere").claim(KEY) as ours:
        assert ours


def test_an_error_in_the_block_lets_go_of_the_claim(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    with pytest.raises(OSError, match="mine"), folder.claim(KEY):
        raise OSError("mine")
    with folder.claim(KEY) as ours:
        assert ours


def test_folders_that_cannot_be_used(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    refused(FileError, "not a folder", ResultsFolder, tmp_path / "file")
    folder = ResultsFolder(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    refused(FileError, "permission denied", folder.prepare)
    (tmp_path / ".lock").mkdir()
    refused(FileError, "cannot write into", folder.claim(KEY).__enter__)
    folder.place(KEY).mkdir()
    refused(FileError, "cannot be read", folder.read, KEY)


# ---- names by content ------------------------------------------------------------------------------------


def _named(model: nn.Module) -> str:
    return of_network(canonical(trace(model.eval(), torch.rand(1, 3, 8, 8))))


def test_networks_have_the_name_of_their_content() -> None:
    def build(pool: nn.Module, stride: int = 1) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3, stride, 1), nn.BatchNorm2d(4), nn.ReLU(), pool, nn.Flatten(1))

    first = build(nn.AvgPool2d(2))
    assert _named(first) == _named(build(nn.AvgPool2d(2)))
    assert _named(build(nn.MaxPool2d(2))) != _named(first) != _named(build(nn.AvgPool2d(2), stride=2))
    for change in (
        lambda model: model[0].weight.data[0, 0, 0, 0].add_(1e-6),
        lambda model: model[1].running_var[3].mul_(1.1),
        lambda model: model.double(),
    ):
        other = build(nn.AvgPool2d(2))
        change(other)
        example = torch.rand(1, 3, 8, 8, dtype=other[0].weight.dtype)
        assert of_network(canonical(trace(other.eval(), example))) != _named(first)
    soft = nn.Sequential(build(nn.AvgPool2d(2)), nn.Softmax(1))
    assert _named(soft) != _named(nn.Sequential(build(nn.AvgPool2d(2)), nn.Identity()))


def test_images_have_the_name_of_their_content() -> None:
    x, y = torch.randint(0, 256, (4, 3, 2, 2), dtype=torch.uint8), torch.arange(4)
    images = Images(x, y, NORMALISATIONS["unit"], "a")
    names = [
        of_images(images),
        of_images(images.subset([1, 0, 2, 3])),
        of_images(images.take(3)),
        of_images(images.with_normalise(NORMALISATIONS["cifar10"])),
        of_images(Images(x, y.flip(0), NORMALISATIONS["unit"], "a")),
        of_images(x),
        of_images(x.permute(0, 1, 3, 2)),
        of_images(x.reshape(4, 12)),
        of_images((x, y)),
    ]
    assert len(set(names)) == len(names)
    assert of_images(Images(x.clone(), y, NORMALISATIONS["unit"], "b", batch=1)) == names[0]
    assert of_images(x.contiguous(memory_format=torch.channels_last)) == of_images(x)


def test_settings_have_one_name() -> None:
    assert of_settings({"a": 1.0, "b": None}) == of_settings({"b": None, "a": 1.0}) != of_settings({"a": 1, "b": None})


# ---- plans -----------------------------------------------------------------------------------------------


def test_plans_of_both_protocols() -> None:
    one = recipe("mean-square")
    per_t = Plan((one,), (1, 8, 32), (0,), "per-t", 8)
    assert per_t.conversions() == [
        Conversion(one, 1, 0, (Run(1),)),
        Conversion(one, 8, 0, (Run(8),)),
        Conversion(one, 32, 0, (Run(32, few=True),)),
    ]
    anytime = Plan((one,), (1, 8, 32), (0, 1), "anytime", 8)
    runs = (Run(8), Run(32, few=True))
    assert anytime.conversions() == [Conversion(one, 32, 0, runs), Conversion(one, 32, 1, runs)]
    assert anytime.at(one, 1) == (32, Run(8)) and anytime.at(one, 32) == (32, Run(32, few=True))
    assert Plan((one,), (1, 8), (0,), "anytime").conversions() == [Conversion(one, 8, 0, (Run(8),))]
    assert Plan((one,), (16, 32), (0,), "anytime", 8).conversions() == [Conversion(one, 32, 0, (Run(32, few=True),))]


def test_a_timeless_recipe_is_converted_once() -> None:
    same, other = recipe("maximum"), recipe("mean-square")
    plan = Plan((same, other), (1, 8, 32), (0,), "per-t", 8)
    assert plan.conversions() == [
        Conversion(other, 1, 0, (Run(1),)),
        Conversion(other, 8, 0, (Run(8),)),
        Conversion(same, 32, 0, (Run(8), Run(32, few=True))),
        Conversion(other, 32, 0, (Run(32, few=True),)),
    ]
    assert plan.at(same, 1) == (32, Run(8)) and plan.at(other, 1) == (1, Run(1))


# ---- where figures come from -----------------------------------------------------------------------------


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str | Exception]]:
    """What git says, by its first argument."""
    said: dict[str, str | Exception] = {"rev-parse": "src/ftbc/\n0123456789abcdef\n", "status": ""}

    def run(command: list[str], **_: object) -> SimpleNamespace:
        answer = said[command[3]]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(stdout=answer)

    monkeypatch.setattr(origin.subprocess, "run", run)
    origin.commit.cache_clear()
    yield said
    origin.commit.cache_clear()


def test_commit(git: dict[str, str | Exception]) -> None:
    assert origin.commit() == "0123456789ab"


def test_commit_with_changes(git: dict[str, str | Exception]) -> None:
    git["status"] = " M src/ftbc/recipe.py\n"
    assert origin.commit() == "0123456789ab+"


@pytest.mark.parametrize(
    "answer",
    [
        "venv/lib/python3.11/site-packages/ftbc/\n0123\n", "", FileNotFoundError("git"),
        subprocess.CalledProcessError(128, "git"),
    ],
    ids=["somebody else's repository", "nothing", "no git", "no repository"],
)  # fmt: skip
def test_no_commit(answer: str | Exception, git: dict[str, str | Exception]) -> None:
    git["rev-parse"] = answer
    assert origin.commit() is None and origin.origin("x")["commit"] is None


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("ftbc evaluate resnet20-cifar10 --recipe a,b/c.toml", "ftbc evaluate resnet20-cifar10 --recipe a,b/c.toml"),
        ("ftbc check /a/b/net.py:make --to /c.csv", "ftbc check net.py:make --to c.csv"),
        ("ftbc compare x --recipes ftbc,/home/me/own.toml", "ftbc compare x --recipes ftbc,own.toml"),
        ("ftbc compare x --data '/home/me/cifar' ~/net.pt2", "ftbc compare x --data 'cifar' net.pt2"),
    ],
)
def test_commands_name_files_without_their_folders(typed: str, kept: str) -> None:
    assert origin.origin(typed)["command"] == kept


def test_the_state_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(origin.code()) == 12 and origin.code() == origin.code.__wrapped__()
    monkeypatch.setattr(origin, "_PACKAGE", tmp_path)
    states = []
    for path in ("recipe.py", "neuron/fire.py", "cli/app.py", "neuron/wire.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("pass\n")
        states.append(origin.code.__wrapped__())
    assert len(set(states)) == 3 and states[1] == states[2], "commands make no figures"
