"""In: pre-activations while a network is trained. Out: what integrate-and-fire neurons can send of them.

One activation a file, each a plain nn.Module whose threshold conversion hands to the neurons (`threshold.Trained`).
How networks are trained belongs to `train/`, how they are converted to `graph/` and `threshold/`.
"""

from ftbc.activation.base import ThresholdActivation
from ftbc.activation.named import NAMES, named
from ftbc.activation.qcfs import QCFS
from ftbc.activation.rate_norm import RateNorm
from ftbc.activation.slip_relu import SlipReLU
from ftbc.activation.threshold_relu import ThresholdReLU

__all__ = ["NAMES", "QCFS", "RateNorm", "SlipReLU", "ThresholdActivation", "ThresholdReLU", "named"]
