"""In: an untrained network and labelled images. Out: the same network, trained, with a checkpoint after each epoch.

The networks themselves belong to `zoo/`, their activations to `activation/`, the reading of images to `data/`.
"""

from ftbc.processes import Team, team
from ftbc.train.accuracy import accuracy
from ftbc.train.average import average_weights
from ftbc.train.classifier import fit, train_classifier
from ftbc.train.log import Epoch
from ftbc.train.settings import TrainSettings

__all__ = ["Epoch", "Team", "TrainSettings", "accuracy", "average_weights", "fit", "team", "train_classifier"]
