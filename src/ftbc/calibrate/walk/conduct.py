"""Walk through a network, layer by layer, and let each method do its part at each layer before the next.

    for each junction of synapses, in order:                         (see `plan`)
        for each method: method.at(layer)                            looks at rows, changes weights, theta, b[t] ...
        fold what a spike is worth into the weights behind
        run the layer's neurons on all images, and keep their spikes  (one bit each)

Memory: T/8 bytes for each neuron of the layers that are still needed and each image, the rows of the ANN's values (at
most 1 GiB of float32), and what a method itself takes; what a layer has freed is given back, because it would lie
between the spikes that are kept, in pieces too small for the next one. Time: each layer runs once over all steps and
images.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence

import torch

from ftbc.calibrate.base import Calibration, Calibrator
from ftbc.calibrate.walk.flow import Flow
from ftbc.calibrate.walk.layer import Layer, at_neurons
from ftbc.calibrate.walk.plan import Junction, junctions
from ftbc.calibrate.walk.rows import draw_positions
from ftbc.calibrate.walk.targets import Targets, Wanted
from ftbc.calibrate.walk.trial import without_what_harms
from ftbc.errors import RecipeError
from ftbc.graph.ir import INPUT
from ftbc.heap import give_back
from ftbc.neuron.integrate_fire import IntegrateFire
from ftbc.neuron.scale import amplify
from ftbc.settings import Piece


class LayerCalibrator(Piece):
    """A method that works at one layer after another. Those that stand side by side in a recipe share one walk."""

    rows: int
    """About how many rows - positions of images - it looks at in a layer."""

    most_steps: int = 0
    """A network of more steps is left as it is; 0 for no such bound. A setting of those methods that declare it."""

    on_trial: bool = False
    """Whether it is left out where the network is better off without it (`trial.py`). A setting, too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows < 1:
            raise RecipeError(f"{self}: rows must be at least 1")
        if self.most_steps < 0:
            raise RecipeError(f"{self}: most_steps must not be negative")

    def require(self, calibration: Calibration) -> None:
        """Refuse neurons that it cannot calibrate: those that are not plain, unless it says otherwise."""
        calibration.plain_neurons(type(self).__name__)

    @abstractmethod
    def at(self, layer: Layer) -> None:
        """Calibrate one layer: the layers before it are calibrated and their spikes are there."""

    def __call__(self, calibration: Calibration) -> None:
        """Calibrate every layer by this method alone."""
        walk((self,), calibration)


def calibrate(methods: Sequence[Calibrator], calibration: Calibration) -> None:
    """Run methods in order, neighbours that work layer by layer in one walk."""
    for by_layer, group in itertools.groupby(methods, lambda method: isinstance(method, LayerCalibrator)):
        if by_layer:
            walk([method for method in group if isinstance(method, LayerCalibrator)], calibration)
        else:
            for method in group:
                method(calibration)


@torch.no_grad()
def walk(methods: Sequence[LayerCalibrator], calibration: Calibration) -> None:
    """One walk through the network."""
    for method in methods:
        method.require(calibration)
    methods = [method for method in methods if method.most_steps == 0 or calibration.steps <= method.most_steps]
    if methods:
        _walk(without_what_harms(methods, calibration, _walk), calibration)


def _walk(methods: Sequence[LayerCalibrator], calibration: Calibration) -> None:
    ann, snn, images = calibration.ann, calibration.snn, calibration.images
    flow = Flow(snn, images, calibration.steps, calibration.team)
    plan = junctions(ann, snn)
    targets = Targets(ann, flow.parts, _wanted(plan, methods, calibration), first=flow.starts()[0])
    layers: dict[str, list[Layer]] = {}
    for number, junction in enumerate(plan):
        layer = Layer(calibration, flow, targets, junction, last=number == len(plan) - 1)
        layers.setdefault(junction.value, []).append(layer)
    by_site = {layer.junction.site: layer for at in layers.values() for layer in at}
    done = 0
    for name in [INPUT, *ann.nodes]:
        for layer in layers.get(name, ()):
            if layer.neuron is not None:
                _per_channel(layer.neuron, snn.shape(name)[0])
            for method in methods:
                method.at(layer)
            done += 1
            give_back()
            calibration.progress("calibrating", done, len(plan))
        if flow.must_keep(name):
            flow.keep(name)
        if name in by_site:
            _fold_amplitude(by_site[name])


def _fold_amplitude(layer: Layer) -> None:
    """Let those that read the neurons get `amplitude` for a spike."""
    if layer.neuron is None or layer.amplitude is None or layer.junction.site is None:
        return
    scale = layer.neuron.spread(layer.amplitude / layer.neuron.threshold).unsqueeze(0)
    amplify(layer.calibration.snn, layer.junction.site, scale)


def _wanted(plan: list[Junction], methods: Sequence[LayerCalibrator], calibration: Calibration) -> dict[str, Wanted]:
    """The rows of the ANN's values that methods may ask for, in the order of the walk."""
    rows, images = max(method.rows for method in methods), len(calibration.images)
    wanted: dict[str, Wanted] = {}
    for junction in plan:
        shape = calibration.snn.shape(junction.value)
        keys = {junction.value: junction.dim} if junction.synapses else {}
        keys |= {} if junction.site is None else {at_neurons(junction): 0}
        for key in [key for key in keys if key not in wanted]:
            positions = draw_positions(images, shape, keys[key], rows, calibration.generator)
            wanted[key] = Wanted(junction.value, keys[key], positions)
    output = calibration.ann.output
    if output not in wanted:
        positions = draw_positions(images, calibration.ann.shape(output), 0, rows, calibration.generator)
        wanted[output] = Wanted(output, 0, positions)
    return wanted


def _per_channel(neuron: IntegrateFire, channels: int) -> None:
    """Give neurons one threshold, initial potential and bias per channel, the mean where they have more."""

    def mean(value: torch.Tensor) -> torch.Tensor:
        value = value.flatten(1).mean(1) if value.ndim > 1 else value
        return value.expand(channels).clone()

    bias = torch.stack([mean(row) for row in neuron.bias])
    neuron.threshold, neuron.initial, neuron.bias = mean(neuron.threshold), mean(neuron.initial), bias
