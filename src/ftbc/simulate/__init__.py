"""In: a graph with spiking neurons and an input. Out: its output at each step. Three engines with equal spikes, and
one that stops at each image when it is decided.

What is done with the outputs (averaging, accuracy, counting) belongs to `network.py` and `measure/`.
"""

from ftbc.simulate.early_exit import Confidence, run_until, steps_until
from ftbc.simulate.event import event_engine
from ftbc.simulate.layerwise import layerwise
from ftbc.simulate.schedule import ENGINES, require_engine
from ftbc.simulate.stepwise import Stepper, stepwise

__all__ = [
    "ENGINES", "Confidence", "Stepper", "event_engine", "layerwise", "require_engine", "run_until", "steps_until",
    "stepwise",
]  # fmt: skip
