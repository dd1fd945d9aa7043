"""In: what the ANN's activations look like on calibration images. Out: a threshold theta for each neuron site.

One rule a file; each is a frozen dataclass that is called with an `Activations` and the number of steps.
"""

from ftbc.threshold.activations import Activations, Grain
from ftbc.threshold.maximum import Maximum
from ftbc.threshold.mean_square import MeanSquare
from ftbc.threshold.percentile import Percentile
from ftbc.threshold.trained import Trained

__all__ = ["Activations", "Grain", "Maximum", "MeanSquare", "Percentile", "Trained"]
