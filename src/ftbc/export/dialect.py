"""Which words of NIR a program understands, and what it makes of them.

NIR has no neuron with soft reset. Its own words for one are an integrator, a threshold, and the spike fed back with a
minus sign; the programs that read NIR have neurons of their own in its place. A dialect writes files that its program
reads, and says what the neurons will do there. Each row is checked against the program itself: `make test-interop`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from ftbc.errors import RecipeError
from ftbc.export.semantics import SOFT, Semantics


@dataclass(frozen=True)
class Dialect:
    """How files for one program are written.

    semantics: what it does with the neurons; neuron: the word it takes for one; dt: its time step in seconds; scales,
    groups, flattens, averages: whether it takes NIR's factors, convolutions in groups, flattening (some flatten the
    batch with it) and average pools; old: whether it needs a file as nir 1.0.4 wrote them;
    resistance: what it wants of an IF neuron that adds up its input as it is; read_by: how it is called.
    """

    name: str
    semantics: Semantics
    neuron: Literal["threshold", "IF", "LIF", "CubaLIF"]
    dt: float
    read_by: str
    scales: bool = False
    groups: bool = True
    flattens: bool = False
    averages: bool = True
    old: bool = False
    resistance: float = 1.0

    @property
    def just_below(self) -> bool:
        """Whether the threshold is written as the number before 1, because a spike must come at 1 already."""
        return self.neuron == "threshold" or self.semantics.strict


DIALECTS = {
    entry.name: entry
    for entry in (
        Dialect("nir", SOFT, "threshold", 1.0, "ftbc.export.read_nir(path)", scales=True, flattens=True),
        Dialect(
            "spikingjelly",
            Semantics("SpikingJelly", hard=True),
            "IF",
            1e-4,
            "spikingjelly.activation_based.nir_exchange.import_from_nir(path)",
            groups=False,
            flattens=True,
            resistance=1e4,
        ),
        Dialect(
            "snntorch",
            Semantics("snnTorch", hard=True, strict=True),
            "LIF",
            1e-4,
            "snntorch.import_nir.import_from_nir(nir.read(path))",
        ),
        Dialect(
            "sinabs",
            Semantics("sinabs", several=True),
            "LIF",
            1.0,
            "sinabs.nir.from_nir(nir.read(path), batch_size=N)",
            averages=False,
            old=True,
        ),
        Dialect(
            "norse",
            Semantics("Norse", hard=True, strict=True),
            "IF",
            1e-3,
            "norse.torch.from_nir(nir.read(path))",
            averages=False,
        ),
    )
}


IMPORTERS = {entry.semantics.name: entry.semantics for entry in DIALECTS.values() if entry.semantics is not SOFT}
"""What programs make of the neurons of their own dialect."""


def dialect(name: str) -> Dialect:
    """A dialect by name."""
    if name not in DIALECTS:
        nearest = difflib.get_close_matches(str(name), DIALECTS, 1, 0.0)[0]
        raise RecipeError(
            f"NIR has no dialect {name!r:.40}; did you mean '{nearest}'? There are {', '.join(DIALECTS)}"
        )
    return DIALECTS[name]
