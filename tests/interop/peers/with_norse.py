"""Norse: `from_nir`, with its usual reset; with a fourth argument "subtract", with soft reset."""

import sys

import nir
import norse.torch
from norse.torch.functional import reset
from shared import give, given, keep

path, x, names = given()
method = reset.reset_subtract if sys.argv[4:] == ["subtract"] else reset.reset_value
net = norse.torch.from_nir(nir.read(path), reset_method=method).eval()
spikes = keep(dict(net.named_modules()), names)
state, outputs = None, []
for now in x:
    output, state = net(now, state)
    outputs.append(output)
give(outputs, spikes)
