"""Weights from files: safetensors, or a state dict that torch reads without running code."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load as from_bytes
from torch import Tensor, nn

from ftbc.atomic import is_file
from ftbc.errors import FileError, ModelError, first_line

Model = TypeVar("Model", bound=nn.Module)


def load_weights(model: Model, path: str | Path) -> Model:
    """Load a state dict into ``model`` and return it.

    Common wrappings are undone: a dict with the entry ``state_dict`` or ``model``, and names that all begin with
    ``module.``. Pickles that would run code are refused.
    """
    path = Path(path)
    if not is_file(path):
        raise FileError(f"weights '{path}' do not exist or are not a file: check the path")
    if path.suffix == ".safetensors":
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FileError(f"weights '{path}' cannot be read ({error.strerror})") from error
        return load_safetensors(model, content, str(path))
    return _fill(model, _state_dict(_unpickled(path), path), str(path))


def load_safetensors(model: Model, content: bytes, name: str) -> Model:
    """Load weights from the bytes of a safetensors file."""
    try:
        state = from_bytes(content)
    except Exception as error:  # of safetensors, or of torch for a type of tensor it lacks
        raise FileError(f"weights '{name}' are not a complete safetensors file ({first_line(error)})") from error
    return _fill(model, state, name)


def _unpickled(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickles that are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FileError(
            f"weights '{path}' are no plain state dict, and reading more could run code: save model.state_dict() "
            "alone, best as safetensors"
        ) from error
    except Exception as error:  # torch raises what its many formats raise
        raise FileError(f"weights '{path}' cannot be read ({type(error).__name__}): is the file complete?") from error


def _state_dict(content: Any, path: Path) -> dict[str, Tensor]:
    for key in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise FileError(f"weights '{path}' hold no state dict: save model.state_dict()")
    return {str(name): value for name, value in content.items()}


def _fill(model: Model, state: dict[str, Tensor], name: str) -> Model:
    own = model.state_dict()
    if all(key.startswith("module.") for key in state) and not any(key.startswith("module.") for key in own):
        state = {key.removeprefix("module."): value for key, value in state.items()}
    counters = {key for key in own if key.endswith("num_batches_tracked")}
    missing = sorted(set(own) - set(state) - counters)
    unknown = sorted(set(state) - set(own))
    both = [key for key in own if key in state]
    unlike = [
        f"{key} is {list(state[key].shape)}, not {list(own[key].shape)}"
        for key in both
        if state[key].shape != own[key].shape
    ]
    unlike += [
        f"{key} is {state[key].dtype}, not {own[key].dtype}"
        for key in both
        if state[key].is_floating_point() != own[key].is_floating_point()
    ]
    unlike += [f"{key} is sparse: save it dense" for key in both if state[key].layout != torch.strided]
    if missing or unknown or unlike:
        parts = [("missing", missing), ("unknown", unknown), ("unlike", unlike)]
        listed = "; ".join(f"{kind}: {_few(names)}" for kind, names in parts if names)
        raise ModelError(f"weights '{name}' do not fit the network; {listed}")
    model.load_state_dict(state, strict=False)
    return model


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
