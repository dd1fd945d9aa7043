"""In: a graph with spiking neurons and an input. Out: its output at each step. Two engines with equal spikes.

What is done with the outputs (averaging, accuracy, counting) belongs to `network.py` and `measure/`.
"""

from ftbc.simulate.layerwise import layerwise
from ftbc.simulate.stepwise import Stepper, stepwise

__all__ = ["Stepper", "layerwise", "stepwise"]
