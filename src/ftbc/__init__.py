"""ftbc: a trained network in, a spiking network out that is accurate in few time steps."""

from ftbc import activation, data, errors, export, zoo
from ftbc.calibrate import FTBC
from ftbc.check import check
from ftbc.compare import compare
from ftbc.comparison import Comparison
from ftbc.convert import convert
from ftbc.measure.evaluate import Evaluation, evaluate
from ftbc.network import Prediction, SpikingNetwork
from ftbc.pieces import piece
from ftbc.processes import team
from ftbc.recipe import Recipe, read_recipe
from ftbc.recipes import recipe, recipes
from ftbc.save import load
from ftbc.settings import Piece
from ftbc.simulate import Confidence

__version__ = "0.1.0"
__all__ = [
    "FTBC",
    "Comparison",
    "Confidence",
    "Evaluation",
    "Piece",
    "Prediction",
    "Recipe",
    "SpikingNetwork",
    "activation",
    "check",
    "compare",
    "convert",
    "data",
    "errors",
    "evaluate",
    "export",
    "load",
    "piece",
    "read_recipe",
    "recipe",
    "recipes",
    "team",
    "zoo",
]
