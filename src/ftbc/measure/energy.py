"""Energy by counting operations, with named constants."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnergyModel:
    """Picojoules of one multiply-accumulate and of one accumulate; memory traffic is not counted."""

    name: str
    mac: float
    ac: float

    def microjoules(self, macs: float, acs: float) -> float:
        """Energy of so many operations."""
        return (macs * self.mac + acs * self.ac) * 1e-6


CMOS_45NM = EnergyModel("45 nm, 32-bit float", mac=4.6, ac=0.9)
"""Reference: Horowitz, ISSCC 2014: 3.7 pJ a multiplication, 0.9 pJ an addition."""
