"""What all peers share: reading the input, keeping spikes, writing the result. Imports nothing but torch and numpy."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch

Step = Callable[[torch.Tensor], torch.Tensor]


def keep(modules: dict[str, torch.nn.Module], names: list[str]) -> dict[str, list[np.ndarray]]:
    """Remember what the layers of these names give, at each call."""
    seen: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for name in names:

        def hook(module: object, inputs: object, output: object, name: str = name) -> None:
            spikes = output[0] if isinstance(output, tuple) else output
            seen[name].append(spikes.detach().numpy().copy())

        modules[name.replace(".", "_")].register_forward_hook(hook)
    return seen


def given() -> tuple[str, torch.Tensor, list[str]]:
    """The file to read, the input over time, and the names of the layers of neurons."""
    with np.load(sys.argv[2]) as file:
        return sys.argv[1], torch.from_numpy(file["x"]), [str(name) for name in file["names"]]


def give(outputs: list[torch.Tensor], spikes: dict[str, list[np.ndarray]]) -> None:
    """Write the result."""
    stacked = {f"spikes:{name}": np.stack(parts) for name, parts in spikes.items()}
    np.savez(sys.argv[3], outputs=torch.stack(outputs).detach().numpy(), **stacked)
