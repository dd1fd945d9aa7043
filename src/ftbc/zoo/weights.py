"""Weights from files: safetensors, or a state dict that torch reads without running code."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from torch import Tensor, nn

from ftbc.errors import FileError, ModelError

Model = TypeVar("Model", bound=nn.Module)


def load_weights(model: Model, path: str | Path) -> Model:
    """Load a state dict into ``model`` and return it.

    Common wrappings are undone: a dict with the entry ``state_dict`` or ``model``, and names that begin with
    ``module.``. Pickles that would run code are refused.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"weights '{path}' do not exist: check the path")
    if path.suffix == ".safetensors":
        return load_safetensors(model, path.read_bytes(), str(path))
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FileError(
            f"weights '{path}' hold more than tensors, and reading them could run code: save model.state_dict() alone, "
            "best as safetensors"
        ) from error
    except Exception as error:  # torch raises what its many formats raise
        raise FileError(f"weights '{path}' cannot be read ({type(error).__name__}): is the file complete?") from error
    return _fill(model, _state_dict(content, path), str(path))


def load_safetensors(model: Model, content: bytes, name: str) -> Model:
    """Load weights from the bytes of a safetensors file."""
    try:
        return _fill(model, from_bytes(content), name)
    except SafetensorError as error:
        raise FileError(f"weights '{name}' are not a complete safetensors file ({error})") from error


def _state_dict(content: Any, path: Path) -> dict[str, Tensor]:
    for key in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise FileError(f"weights '{path}' hold no state dict: save model.state_dict()")
    return {str(name).removeprefix("module."): value for name, value in content.items()}


def _fill(model: Model, state: dict[str, Tensor], name: str) -> Model:
    own = model.state_dict()
    counters = {key for key in own if key.endswith("num_batches_tracked")}
    missing = sorted(set(own) - set(state) - counters)
    unknown = sorted(set(state) - set(own))
    shapes = [
        f"{key} is {list(state[key].shape)}, not {list(own[key].shape)}"
        for key in own
        if key in state and state[key].shape != own[key].shape
    ]
    if missing or unknown or shapes:
        parts = [f"missing: {_few(missing)}"] * bool(missing) + [f"unknown: {_few(unknown)}"] * bool(unknown)
        raise ModelError(f"weights '{name}' do not fit the network; " + "; ".join([*parts, *shapes[:5]]))
    model.load_state_dict(state, strict=False)
    return model


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
