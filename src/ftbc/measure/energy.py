"""Energy by counting operations, under named models side by side.

    E = MACs (mac + 2 access) + ACs (ac + 3 access) + updates (update + 2 access) + spikes * spike

A MAC reads a weight and an input, its sum stays in a register; an AC reads a weight, and reads and writes a membrane;
an update, of each neuron at each step, reads and writes a membrane. Constants and their sources are in
`energy_models.toml`. No model counts clocks, leakage or the control of a chip: they compare networks, not devices.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_MAC_ACCESSES, _AC_ACCESSES, _UPDATE_ACCESSES = 2, 3, 2
_MULTIPLICATION_8, _ADDITION_32 = 0.2, 0.1
"""Picojoules of integers at 45 nm. Reference: Horowitz, ISSCC 2014."""


@dataclass(frozen=True)
class Operations:
    """What an image takes: multiply-accumulates, additions for spikes, updates of neurons, and spikes."""

    macs: float
    acs: float = 0.0
    updates: float = 0.0
    spikes: float = 0.0


@dataclass(frozen=True)
class EnergyModel:
    """Picojoules of one multiply-accumulate, addition, update of a neuron, spike, and access to memory.

    bits: of weights and image, where operands are integers; runs_ann: whether the ANN could run there too.

    >>> EnergyModel("example", mac=4.6, ac=0.9, access=5.0).microjoules(macs=1e6, acs=0)
    14.6
    """

    name: str
    mac: float
    ac: float
    update: float = 0.0
    spike: float = 0.0
    access: float = 0.0
    bits: int | None = None
    runs_ann: bool = True
    source: str = ""

    def microjoules(self, macs: float, acs: float, updates: float = 0.0, spikes: float = 0.0) -> float:
        """Energy of so many operations."""
        picojoules = (
            macs * (self.mac + _MAC_ACCESSES * self.access)
            + acs * (self.ac + _AC_ACCESSES * self.access)
            + updates * (self.update + _UPDATE_ACCESSES * self.access)
            + spikes * self.spike
        )
        return picojoules * 1e-6

    def of(self, operations: Operations) -> float:
        """Energy of what an image takes, in microjoules."""
        return self.microjoules(**asdict(operations))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


CMOS_45NM = EnergyModel("45 nm, 32-bit float", mac=4.6, ac=0.9)
"""Reference: Horowitz, ISSCC 2014: 3.7 pJ a multiplication, 0.9 pJ an addition."""


@cache
def energy_models() -> dict[str, EnergyModel]:
    """Every named model, the usual one first.

    >>> list(energy_models())[:2]
    ['45 nm, 32-bit float', '45 nm, 32-bit float, with memory']
    """
    text = (files("ftbc.measure") / "energy_models.toml").read_text(encoding="utf-8")
    found = {}
    for entry in tomllib.loads(text)["model"]:
        own = {"mac": CMOS_45NM.mac, "runs_ann": "mac" in entry, **entry}
        found[entry["name"]] = EnergyModel(**own)
    return found


def quantised_ann_energy(macs: float, image_macs: float, additions: float, bits: int) -> float:
    """Microjoules of an ANN in integers at 45 nm: 8-bit weights and image, activations of ``bits``, sums of 32 bits.

    macs: all of them, of which ``image_macs`` read the image; additions: those at shortcuts. A multiplication costs as
    much as its operands are wide, 0.2 pJ for 8 by 8 bits (32 by 32 bits would then cost 3.2 pJ; Horowitz gives 3.1).

    >>> round(quantised_ann_energy(2e6, 1e6, 0, bits=8), 6), round(quantised_ann_energy(2e6, 1e6, 0, bits=2), 6)
    (0.6, 0.45)
    """
    multiplications = _MULTIPLICATION_8 * (image_macs + (macs - image_macs) * bits / 8)
    return (multiplications + (macs + additions) * _ADDITION_32) * 1e-6
