"""In: currents over time. Out: spikes over time. The equations of the spiking cell and the modules that hold its state.

One kind of neuron a file: a piece for recipes (`Signed`) and the neurons of one layer (`SignedFire`). Thresholds and
biases are given to them; how they are found belongs to `threshold/`, `initial/` and `calibrate/`.
"""

from ftbc.neuron.burst import Burst, BurstFire
from ftbc.neuron.differential import Differential, DifferentialFire
from ftbc.neuron.functional import fire, integrate_and_fire
from ftbc.neuron.integrate_fire import IntegrateFire, Plain
from ftbc.neuron.kind import Kind
from ftbc.neuron.max_pool import SpikingMaxPool
from ftbc.neuron.offset import Offset, OffsetFire
from ftbc.neuron.parallel import Parallel, ParallelFire
from ftbc.neuron.residual import Residual, ResidualFire
from ftbc.neuron.signed import Signed, SignedFire
from ftbc.neuron.spiking import Spiking
from ftbc.neuron.switch import Switch, SwitchFire
from ftbc.neuron.temporal import Temporal

__all__ = [
    "Burst", "BurstFire", "Differential", "DifferentialFire", "IntegrateFire", "Kind", "Offset", "OffsetFire",
    "Parallel", "ParallelFire", "Plain", "Residual", "ResidualFire", "Signed", "SignedFire", "Spiking",
    "SpikingMaxPool", "Switch", "SwitchFire", "Temporal", "fire", "integrate_and_fire",
]  # fmt: skip
