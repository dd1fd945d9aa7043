"""In: the ANN and calibration images. Out: a threshold theta for each neuron site.

One rule a file, each a frozen dataclass; most look at what a site's activations look like (an `Activations`) and the
number of steps.
"""

from ftbc.threshold.activations import Activations, Grain
from ftbc.threshold.base import Threshold
from ftbc.threshold.gaussian import Gaussian
from ftbc.threshold.local_balance import LocalBalance
from ftbc.threshold.maximum import Maximum
from ftbc.threshold.mean_square import MeanSquare, MeanSquareUpTo
from ftbc.threshold.percentile import Percentile
from ftbc.threshold.trained import Trained

__all__ = [
    "Activations", "Gaussian", "Grain", "LocalBalance", "Maximum", "MeanSquare", "MeanSquareUpTo", "Percentile",
    "Threshold", "Trained",
]  # fmt: skip
