"""In: an untrained network and labelled images. Out: the same network, trained, with a checkpoint after each epoch.

The networks themselves belong to `zoo/`, the reading of images to `data/`.
"""

from ftbc.train.accuracy import accuracy
from ftbc.train.average import average_weights
from ftbc.train.classifier import Epoch, TrainSettings, train_classifier

__all__ = ["Epoch", "TrainSettings", "accuracy", "average_weights", "train_classifier"]
