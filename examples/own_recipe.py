"""A method composed of pieces, kept as a TOML file that the command line takes: python examples/own_recipe.py"""

from pathlib import Path

import ftbc
from ftbc.initial import Half
from ftbc.neuron import Signed
from ftbc.threshold import Percentile

mine = ftbc.Recipe(
    name="mine",
    threshold=Percentile(99.5),
    initial=Half(),
    neuron=Signed(lower=0.0),  # also sends negative spikes, which take back what was sent too early
    calibrate=(ftbc.FTBC(alpha=0.5, iterations=4),),
)
Path("mine.toml").write_text(mine.to_toml())  # ftbc convert resnet20-cifar10 --recipe mine.toml

ann = ftbc.zoo.load("resnet20-cifar10")
calibration, test = ftbc.data.load("cifar10-sample", calibration=128, test=200)
snn = ftbc.convert(ann, calibration, steps=8, recipe=ftbc.read_recipe("mine.toml"))
print(mine.facts, ftbc.evaluate(snn, test, reference=ann), sep="\n")
