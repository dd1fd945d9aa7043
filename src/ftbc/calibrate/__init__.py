"""In: a spiking network with thresholds and the ANN it came from. Out: the same network, corrected on a few images.

One method a file, each a frozen dataclass that is called with a `Calibration`; nothing here reports or plots.
"""

from ftbc.calibrate.base import Calibration, Calibrator
from ftbc.calibrate.ftbc import FTBC
from ftbc.calibrate.gain import Gain
from ftbc.calibrate.quantile import QuantileBias
from ftbc.calibrate.read_out import ReadOut
from ftbc.calibrate.refit import Refit
from ftbc.calibrate.search import CorrelationSearch
from ftbc.calibrate.walk import calibrate

__all__ = [
    "FTBC", "Calibration", "Calibrator", "CorrelationSearch", "Gain", "QuantileBias", "ReadOut", "Refit", "calibrate"
]  # fmt: skip
