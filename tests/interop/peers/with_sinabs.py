"""sinabs: `from_nir`, all steps at once, those of one image after another."""

import nir
import numpy as np
from shared import give, given, keep
from sinabs.nir import from_nir

path, x, names = given()
steps, images = x.shape[:2]
net = from_nir(nir.read(path), batch_size=images).eval()
spikes = keep(dict(net.named_modules()), names)
output, _ = net(x.transpose(0, 1).flatten(0, 1))
by_step = output.unflatten(0, (images, steps)).transpose(0, 1)
first = {
    name: list(np.swapaxes(np.concatenate(parts).reshape(images, steps, *parts[0].shape[1:]), 0, 1))
    for name, parts in spikes.items()
}
give(list(by_step), first)
