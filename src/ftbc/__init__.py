"""ftbc: a trained network in, a spiking network out that is right from its first time steps."""

from ftbc import data, errors, zoo
from ftbc.calibrate import FTBC
from ftbc.check import check
from ftbc.convert import convert
from ftbc.network import SpikingNetwork
from ftbc.recipe import Recipe, read_recipe, recipe, recipes

__version__ = "0.1.0"
__all__ = [
    "FTBC", "Recipe", "SpikingNetwork", "check", "convert", "data", "errors", "read_recipe", "recipe", "recipes", "zoo"
]  # fmt: skip
