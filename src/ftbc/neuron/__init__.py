"""In: currents over time. Out: spikes over time. The equations of the spiking cell and the modules that hold its state.

Thresholds and biases are given to it; how they are found belongs to `threshold/`, `initial/` and `calibrate/`.
"""

from ftbc.neuron.functional import fire, integrate_and_fire
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.temporal import Temporal

__all__ = ["IntegrateFire", "SpikingMaxPool", "Temporal", "fire", "integrate_and_fire"]
