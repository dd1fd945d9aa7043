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

    semantics: what it does with the neurons; neuron: the word it takes for one; dt: its time step in seconds; read_by:
    how it is called. plain: it takes factors and convolutions in groups as they are; else both become convolutions with
    all their zeros. flattens: it flattens images and not the batch with them; averages: it takes average pools, else
    pools that add; waves: it takes convolutions in one dimension; soft: read as `read_by` says, its neurons have soft
    reset, like ours; joins: it runs branches that meet in the right order; old: it needs a file as nir 1.0.4 wrote
    them, with one number for the constants of a layer of neurons.
    """

    name: str
    semantics: Semantics
    neuron: Literal["Threshold", "IF", "LIF", "CubaLIF"]
    dt: float
    read_by: str
    plain: bool = False
    flattens: bool = True
    averages: bool = True
    waves: bool = True
    soft: bool = False
    joins: bool = True
    old: bool = False

    @property
    def just_below(self) -> bool:
        """Whether the threshold is written as the number before 1, because a spike must come at 1 already."""
        return self.neuron == "Threshold" or self.semantics.strict


_ALL = (
    Dialect("nir", SOFT, "Threshold", 1.0, "ftbc.export.read_nir(path)", plain=True),
    Dialect(
        "spikingjelly",
        Semantics("SpikingJelly", hard=True),
        "IF",
        1e-4,
        "spikingjelly.activation_based.nir_exchange.import_from_nir(path)",
    ),
    Dialect(
        "snntorch",
        Semantics("snnTorch", hard=True, strict=True),
        "LIF",
        1e-4,
        "snntorch.import_nir.import_from_nir(nir.read(path))",
        flattens=False,
    ),
    Dialect(
        "sinabs",
        Semantics("sinabs", several=True),
        "LIF",
        1.0,
        "sinabs.nir.from_nir(nir.read(path), batch_size=N)",
        averages=False,
        waves=False,
        joins=False,
        old=True,
    ),
    Dialect(
        "norse",
        Semantics("Norse, usual", hard=True, strict=True),
        "CubaLIF",
        1e-3,
        "norse.torch.from_nir(nir.read(path), reset_method=norse.torch.functional.reset.reset_subtract)",
        flattens=False,
        averages=False,
        waves=False,
        joins=False,
        soft=True,
    ),
)
DIALECTS = {entry.name: entry for entry in _ALL}
IMPORTERS = {entry.semantics.name: entry.semantics for entry in _ALL if entry.semantics is not SOFT}
"""What programs make of the neurons of their own dialect."""


def dialect_named(name: str) -> Dialect:
    """A dialect by name."""
    if name not in DIALECTS:
        nearest = difflib.get_close_matches(str(name), DIALECTS, 1, 0.0)[0]
        raise RecipeError(f"NIR has no dialect {name!r:.40}; did you mean '{nearest}'? There are {', '.join(DIALECTS)}")
    return DIALECTS[name]
