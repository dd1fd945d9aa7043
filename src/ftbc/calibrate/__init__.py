"""In: a spiking network with thresholds and the ANN it came from. Out: the same network, corrected on a few images.

One method a file, each a frozen dataclass that is called with a `Calibration`; nothing here reports or plots.
"""

from ftbc.calibrate.balance import ThresholdBalance
from ftbc.calibrate.base import Calibration, Calibrator
from ftbc.calibrate.bias import BiasCorrection
from ftbc.calibrate.delay import DelayedReadout
from ftbc.calibrate.distribution_aware import DistributionAware
from ftbc.calibrate.ftbc import FTBC
from ftbc.calibrate.gain import Gain
from ftbc.calibrate.potential import PotentialCorrection
from ftbc.calibrate.quantile import QuantileBias
from ftbc.calibrate.read_out import ReadOut
from ftbc.calibrate.refit import Refit
from ftbc.calibrate.released import ReleasedFTBC
from ftbc.calibrate.search import CorrelationSearch
from ftbc.calibrate.sharpen import Sharpen
from ftbc.calibrate.walk import calibrate
from ftbc.calibrate.weight import WeightCorrection

__all__ = [
    "FTBC", "BiasCorrection", "Calibration", "Calibrator", "CorrelationSearch", "DelayedReadout", "DistributionAware",
    "Gain", "PotentialCorrection", "QuantileBias", "ReadOut", "Refit", "ReleasedFTBC", "Sharpen", "ThresholdBalance",
    "WeightCorrection", "calibrate",
]  # fmt: skip
