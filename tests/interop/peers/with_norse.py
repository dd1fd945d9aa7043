"""Norse: `from_nir`, with its usual reset; with a fourth argument "subtract", with soft reset."""

import sys

import nir
import norse.torch
from norse.torch.functional import reset
from shared import given, step_by_step

path, x, names = given()
method = reset.reset_subtract if sys.argv[4:] == ["subtract"] else reset.reset_value
step_by_step(norse.torch.from_nir(nir.read(path), reset_method=method), x, names)
