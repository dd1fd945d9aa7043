"""SpikingJelly: `import_from_nir`, one step at a time."""

from shared import given, step_by_step
from spikingjelly.activation_based import nir_exchange

path, x, names = given()
step_by_step(nir_exchange.import_from_nir(path, step_mode="s"), x, names)
