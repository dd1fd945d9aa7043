"""A calibration of your own, in a recipe that every command takes: python examples/own_method.py"""

from dataclasses import dataclass

import ftbc
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.neuron import integrate_and_fire


@ftbc.piece("calibrate")
@dataclass(frozen=True)
class EvenBias(LayerCalibrator):
    """One bias for all steps, with which a channel sends as much as its activation is in the mean."""

    rows: int = 4096

    def at(self, layer: Layer) -> None:
        """Calibrate a layer; those before it are calibrated already."""
        if (neuron := layer.neuron) is not None:
            seen, theta = layer.sample(self.rows), neuron.threshold[:, None]  # currents [T, C, P], activations [C, P]
            for _ in range(4):
                sent, _ = integrate_and_fire(seen.x, theta, 0.5 * theta.expand_as(seen.a), neuron.bias[:, :, None])
                neuron.bias += seen.a.mean(1) - sent.mean((0, 2))


# ftbc compare resnet20-cifar10 --recipes ftbc,own_method.py:mine
mine = ftbc.Recipe(name="mine", calibrate=[EvenBias()])
if __name__ == "__main__":
    ann, (calibration, test) = ftbc.zoo.load("resnet20-cifar10"), ftbc.data.load("cifar10-sample")
    print(ftbc.evaluate(ftbc.convert(ann, calibration, steps=8, recipe=mine), test.take(200)))
