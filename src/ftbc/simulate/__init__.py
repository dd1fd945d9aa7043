"""In: a graph with spiking neurons and an input. Out: its output at each step. Three engines with equal spikes, and
one that stops at each image when it is decided.

`readout` tells what the outputs of the steps so far add up to; accuracy and counting belong to `measure/`.
"""

from ftbc.simulate.early_exit import Confidence, run_until, steps_until
from ftbc.simulate.event import event_engine
from ftbc.simulate.layerwise import layerwise
from ftbc.simulate.readout import Reader, extra_steps, read
from ftbc.simulate.schedule import ENGINES, require_engine
from ftbc.simulate.stepwise import Stepper, stepwise

__all__ = [
    "ENGINES", "Confidence", "Reader", "Stepper", "event_engine", "extra_steps", "layerwise", "read", "require_engine",
    "run_until", "steps_until", "stepwise",
]  # fmt: skip
