"""`ftbc.export.verify`: a file is read again and run, and compared with the network that it was made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ftbc.errors import FileError, InputError
from ftbc.export.agreement import Agreement, Spikes, agreement, recorded
from ftbc.export.dialect import IMPORTERS
from ftbc.export.header import read_content
from ftbc.export.integer_file import read_integers
from ftbc.export.nir_read import read_nir
from ftbc.export.onnx_run import OnnxNetwork
from ftbc.export.sample import require_network
from ftbc.export.score import Score
from ftbc.export.semantics import Semantics
from ftbc.measure.batches import labelled_batches
from ftbc.network import SpikingNetwork
from ftbc.progress import Progress, silent
from ftbc.simulate.readout import read

FORMATS = (".nir", ".onnx", ".npz")


class Candidate(Protocol):
    """A network in a file: its outputs and spikes at each step, and the answers that it makes of the outputs."""

    def recorded(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        """The output and the spikes of each layer at each step."""
        ...

    def means(self, x: Tensor, outputs: Tensor) -> Tensor:
        """The answers after each step, ``[T, N, ...]``."""
        ...


@dataclass(frozen=True)
class Verification:
    """What a file does, beside the network that it was made of.

    score: accuracy in percent at t = 1 .. T of the network and of the file, and for NIR that which each program will
    have that reads it, as far as its neurons go; semantics: what those neurons do.
    """

    path: str
    form: str
    bytes: int
    agreement: Agreement
    score: Score
    semantics: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "share": self.agreement.share}

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.form}, {self.bytes / 1e6:.2f} MB", f"spikes: {self.agreement}", str(self.score)]
        if self.semantics:
            lines.append("Predicted, for a program that reads the file's neurons as:")
            lines += [f"  {name}: {words}" for name, words in self.semantics.items()]
        return "\n".join(lines)


@torch.no_grad()
def verify(path: str | Path, snn: SpikingNetwork, data: Any, *, progress: Progress = silent) -> Verification:
    """Read a file that `ftbc.export` wrote, run it on labelled data, and compare it with its network.

    data: as for `ftbc.evaluate`. Every spike is compared, so that a few hundred images are a matter of minutes.
    """
    path = Path(path)
    require_format(path)
    require_network(snn)
    file, form, programs = _opened(path)
    runs = {"network": snn.readout, "file": None}
    right = {name: torch.zeros(snn.steps, dtype=torch.float64) for name in (*runs, *programs)}
    found: Agreement | None = None
    images = 0
    for x, y in labelled_batches(data):
        snn._check(x, time_first=False)
        own: list[Tensor] = []
        others: list[Tensor] = []
        step = agreement(
            _keeping(recorded(snn.graph, x, snn.extra_steps + snn.steps), own), _keeping(file.recorded(x), others)
        )
        found = step if found is None else found + step
        answers = {"network": read(torch.stack(own), snn.readout), "file": file.means(x, torch.stack(others))}
        answers |= {name: run(x) for name, run in programs.items()}
        for name, mean in answers.items():
            right[name] += (_classes(mean) == y).sum(1).double().cpu()
        images += len(y)
        progress("verifying", images, images)
    if found is None:
        raise InputError("the data to verify on holds no images")
    percent = {name: (100 * hits / images).tolist() for name, hits in right.items()}
    words = {name: IMPORTERS[name].in_words for name in programs}
    return Verification(
        str(path), form, path.stat().st_size, found, Score(images, percent.pop("network"), percent), words
    )


def require_format(path: Path) -> None:
    """Refuse a file whose name does not end as those of `ftbc.export` do."""
    if path.suffix not in FORMATS:
        raise FileError(
            f"'{path}' cannot be verified: give a file of a kind that ftbc export writes, {', '.join(FORMATS)}"
        )


def _opened(path: Path) -> tuple[Candidate, str, dict[str, Callable[[Tensor], Tensor]]]:
    """A file, what it is in words, and how programs would run it."""
    if path.suffix == ".nir":
        back = read_nir(path)
        programs = {name: _as_read_by(back, semantics) for name, semantics in IMPORTERS.items()}
        return _Read(back), "NIR", programs
    if path.suffix == ".onnx":
        model = OnnxNetwork(read_content(path), path)
        return model, f"ONNX, {model.header['form']}", {}
    network, text = read_integers(path)
    return network, f"weights of {text['bits']} bits", {}


@dataclass(frozen=True)
class _Read:
    """A network that was read from a NIR file."""

    network: SpikingNetwork

    def recorded(self, x: Tensor) -> Iterator[tuple[Tensor, Spikes]]:
        return recorded(self.network.graph, x, self.network.extra_steps + self.network.steps)

    def means(self, x: Tensor, outputs: Tensor) -> Tensor:
        return read(outputs, self.network.readout)


def _as_read_by(network: SpikingNetwork, semantics: Semantics) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        steps = network.extra_steps + network.steps
        outputs = [output for output, _ in recorded(network.graph, x, steps, semantics.cell())]
        return read(torch.stack(outputs), network.readout)

    return run


def _keeping(run: Iterator[tuple[Tensor, Spikes]], outputs: list[Tensor]) -> Iterator[tuple[Tensor, Spikes]]:
    for output, spikes in run:
        outputs.append(output)
        yield output, spikes


def _classes(mean: Tensor) -> Tensor:
    if mean.ndim != 3:
        raise InputError(f"accuracy needs one score per class, but the network gives {list(mean.shape[2:])}")
    return mean.argmax(2)
