"""In: the name of a table or figure of the paper, and what a machine has of networks and images. Out: that table or
figure, measured here beside what the paper says, as files.

Experiments are TOML files in `experiments/`; methods are measured by `ftbc.compare`, and drawing belongs to `report/`.
"""

from ftbc.reproduce.experiment import Experiment
from ftbc.reproduce.files import experiments, read_experiment
from ftbc.reproduce.material import Material
from ftbc.reproduce.run import reproduce

__all__ = ["Experiment", "Material", "experiments", "read_experiment", "reproduce"]
