"""SpikingJelly: `import_from_nir`, one step at a time."""

from shared import give, given, keep
from spikingjelly.activation_based import nir_exchange

path, x, names = given()
net = nir_exchange.import_from_nir(path, step_mode="s").eval()
spikes = keep(dict(net.named_modules()), names)
state, outputs = None, []
for now in x:
    output, state = net(now, state)
    outputs.append(output)
give(outputs, spikes)
