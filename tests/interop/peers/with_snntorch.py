"""snnTorch: `import_from_nir`; its neurons remember their membranes themselves."""

import nir
from shared import given, step_by_step
from snntorch.import_nir import import_from_nir

path, x, names = given()
step_by_step(import_from_nir(nir.read(path)), x, names)
