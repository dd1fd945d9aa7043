"""Weights from files of every common form, and none that runs code."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save as to_bytes
from safetensors.torch import save_file
from torch import Tensor, nn

from ftbc.errors import FileError, ModelError
from ftbc.zoo import load_weights
from ftbc.zoo.weights import load_safetensors

from ..conftest import Refused

State = dict[str, Tensor]


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5))


def trained() -> nn.Sequential:
    model = network()
    for value in model.state_dict().values():
        value.copy_(torch.rand(value.shape) + 1)
    return model


def as_legacy(state: State, path: Path) -> None:
    torch.save(state, path, _use_new_zipfile_serialization=False)


FORMS: dict[str, Callable[[State, Path], None]] = {
    "plain.pt": torch.save,
    "legacy.pth": as_legacy,
    "net.safetensors": save_file,
    "under_state_dict.pt": lambda state, path: torch.save({"state_dict": state, "epoch": 3}, path),
    "under_model.pt": lambda state, path: torch.save({"model": state, "optimiser": {"lr": 0.1}}, path),
    "under_both.pt": lambda state, path: torch.save({"state_dict": {"model": state}}, path),
    "parallel.pt": lambda state, path: torch.save({f"module.{key}": value for key, value in state.items()}, path),
    "parallel.safetensors": lambda state, path: save_file({f"module.{k}": v for k, v in state.items()}, path),
    "wrapped.pt": lambda state, path: torch.save({"model": {f"module.{k}": v for k, v in state.items()}}, path),
    "old.pt": lambda state, path: torch.save({k: v for k, v in state.items() if "num_batches" not in k}, path),
    "double.pt": lambda state, path: torch.save({k: v.to(torch.float64) for k, v in state.items() if v.ndim}, path),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_every_form(name: str, tmp_path: Path) -> None:
    wanted = trained().state_dict()
    FORMS[name](wanted, tmp_path / name)
    model = network()
    assert load_weights(model, tmp_path / name) is model
    found = model.state_dict()
    assert all(torch.equal(found[key], wanted[key]) for key in wanted if "num_batches" not in key)
    assert all(found[key].dtype == wanted[key].dtype for key in wanted)


def test_a_network_whose_own_names_begin_with_module(tmp_path: Path) -> None:
    model, other = nn.Module(), nn.Module()
    model.module, other.module = trained(), network()
    torch.save(model.state_dict(), tmp_path / "own.pt")
    load_weights(other, str(tmp_path / "own.pt"))
    assert all(torch.equal(value, other.state_dict()[key]) for key, value in model.state_dict().items())


def test_what_does_not_fit_is_listed_and_nothing_is_loaded(tmp_path: Path, refused: Refused) -> None:
    state = trained().state_dict()
    state["extra.weight"] = state.pop("0.weight")
    state["4.weight"] = torch.rand(7, 16)
    state["4.bias"] = torch.ones(5, dtype=torch.int64)
    for name in ("wrong.pt", "wrong.safetensors"):
        FORMS["plain.pt" if name.endswith("pt") else "net.safetensors"](state, tmp_path / name)
        model = network()
        before = {key: value.clone() for key, value in model.state_dict().items()}
        words = (
            name,
            "missing: 0.weight",
            "unknown: extra.weight",
            "4.weight is [7, 16], not [5, 16]",
            "4.bias is torch.int64",
        )
        refused(ModelError, words, load_weights, model, tmp_path / name)
        assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_sparse_weights(tmp_path: Path, refused: Refused) -> None:
    state = trained().state_dict()
    state["4.weight"] = state["4.weight"].to_sparse()
    torch.save(state, tmp_path / "sparse.pt")
    refused(ModelError, ("sparse.pt", "4.weight is sparse"), load_weights, network(), tmp_path / "sparse.pt")


def test_a_long_list_is_cut(tmp_path: Path, refused: Refused) -> None:
    save_file({f"layer{i}.weight": torch.ones(1) for i in range(1000)}, tmp_path / "other.safetensors")
    refused(ModelError, "and 992 more", load_weights, network(), tmp_path / "other.safetensors")


@pytest.mark.parametrize("name", ["plain.pt", "legacy.pth", "net.safetensors"])
def test_truncated(name: str, tmp_path: Path, refused: Refused) -> None:
    FORMS[name](trained().state_dict(), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    chance = random.Random(0)
    for cut in [0, 1, 2, 8, 100, len(whole) // 2, len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(10))]:
        (tmp_path / name).write_bytes(whole[:cut])
        refused(FileError, name, load_weights, network(), tmp_path / name)


class Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["evil.pt", "evil.pth", "evil.bin", "evil.safetensors"])
@pytest.mark.parametrize("form", ["torch", "legacy", "pickle", "model"])
def test_a_pickle_that_runs_code_is_refused_unrun(name: str, form: str, tmp_path: Path, refused: Refused) -> None:
    mark, path = tmp_path / "ran", tmp_path / name
    if form == "pickle":
        path.write_bytes(pickle.dumps({"state_dict": Touch(mark)}))
    elif form == "model":
        torch.save(network(), path)
    else:
        torch.save({"0.weight": Touch(mark)}, path, _use_new_zipfile_serialization=form == "torch")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(FileError, name, load_weights, network(), path)
    assert not mark.exists()


def test_files_that_are_none(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "text.pt").write_text("not weights\n" * 50)
    (tmp_path / "text.safetensors").write_text("not weights\n" * 50)
    (tmp_path / "folder.pt").mkdir()
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save({"a": 1}, tmp_path / "numbers.pt")
    torch.save(torch.ones(3), tmp_path / "tensor.pt")
    for path in [*tmp_path.iterdir(), tmp_path / "missing.pt", tmp_path / "missing.safetensors"]:
        refused(FileError, path.name, load_weights, network(), path)


def test_an_empty_state_dict_is_no_fit(tmp_path: Path, refused: Refused) -> None:
    torch.save({}, tmp_path / "empty.pt")
    refused(ModelError, "missing: 0.bias", load_weights, network(), tmp_path / "empty.pt")


def test_bytes(refused: Refused) -> None:
    content = to_bytes(trained().state_dict())
    assert torch.equal(
        load_safetensors(network(), content, "mine")[4].bias, load_safetensors(network(), content, "x")[4].bias
    )
    refused(FileError, "'mine'", load_safetensors, network(), content[:-1], "mine")
