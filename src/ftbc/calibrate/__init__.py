"""In: a spiking network with thresholds and the ANN it came from. Out: the same network, corrected on a few images.

One method a file, each a frozen dataclass that is called with a `Calibration`; nothing here reports or plots.
"""

from ftbc.calibrate.base import Calibration, Calibrator
from ftbc.calibrate.distribution_aware import DistributionAware
from ftbc.calibrate.ftbc import FTBC

__all__ = ["FTBC", "Calibration", "Calibrator", "DistributionAware"]
