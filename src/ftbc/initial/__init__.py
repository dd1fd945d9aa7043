"""In: thresholds and the number of steps. Out: the initial potential v[0] and the temporal bias to start from.

Each is a frozen dataclass that is called with theta and T; what is learnt from data belongs to `calibrate/`.
"""

from ftbc.initial.charge import Given, Half, SpreadHalf, Zero

__all__ = ["Given", "Half", "SpreadHalf", "Zero"]
