"""What all peers share: reading the input, keeping spikes, writing the result. Imports nothing but torch and numpy."""

from __future__ import annotations

import sys

import numpy as np
import torch


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


def step_by_step(net: torch.nn.Module, x: torch.Tensor, names: list[str]) -> None:
    """Run a network of nirtorch, which gives its output and its state, and write the result."""
    spikes = keep(dict(net.eval().named_modules()), names)
    state, outputs = None, []
    for now in x:
        output, state = net(now, state)
        outputs.append(output)
    give(outputs, spikes)


def give(outputs: list[torch.Tensor], spikes: dict[str, list[np.ndarray]]) -> None:
    """Write the result."""
    stacked = {f"spikes:{name}": np.stack(parts) for name, parts in spikes.items()}
    np.savez(sys.argv[3], outputs=torch.stack(outputs).detach().numpy(), **stacked)
