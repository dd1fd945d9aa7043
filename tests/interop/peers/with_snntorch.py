"""snnTorch: `import_from_nir`; its neurons remember their membranes themselves."""

import nir
from shared import give, given, keep
from snntorch.import_nir import import_from_nir

path, x, names = given()
net = import_from_nir(nir.read(path)).eval()
spikes = keep(dict(net.named_modules()), names)
state, outputs = None, []
for now in x:
    output, state = net(now, state)
    outputs.append(output)
give(outputs, spikes)
