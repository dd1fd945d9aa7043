"""In: the ANN, its spiking copy and images. Out: the layers of both, one after another, to calibrate each in turn.

A layer sees the spikes of layers that are calibrated already; each layer's spikes are computed once and kept in a bit
each. What is done at a layer belongs to the methods in `calibrate/`.
"""

from ftbc.calibrate.walk.conduct import LayerCalibrator, calibrate
from ftbc.calibrate.walk.layer import Layer, Sample

__all__ = ["Layer", "LayerCalibrator", "Sample", "calibrate"]
