"""A trained network of the package by name."""

from __future__ import annotations

import hashlib
from importlib import resources

from torch import nn

from ftbc.errors import FileError, ModelError
from ftbc.zoo.blueprint import Blueprint
from ftbc.zoo.registry import architectures, unknown
from ftbc.zoo.trained import entries
from ftbc.zoo.weights import load_safetensors


def load(name: str) -> nn.Module:
    """A trained network of the package in eval mode, its file checked against its sha256."""
    if name in architectures():
        raise ModelError(f"'{name}' has no weights here: give it yours with build and load_weights of ftbc.zoo")
    if name not in entries():
        raise unknown(name)
    entry = entries()[name]
    content = resources.files("ftbc.zoo").joinpath("files", f"{name}.safetensors").read_bytes()
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise FileError(f"the weights of '{name}' in this installation are damaged: install ftbc again")
    return load_safetensors(Blueprint.from_dict(entry.network).build(), content, name).eval()
