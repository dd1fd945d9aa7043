"""One step at a time, with an input that changes: python examples/stream.py"""

import torch

import ftbc

ann = ftbc.zoo.load("resnet20-cifar10")
calibration, test = ftbc.data.load("cifar10-sample", calibration=128, test=10)
snn = ftbc.convert(ann, calibration, steps=8)

image = test.tensor()[:1]
snn.reset()
for t in range(8):
    frame = image + 0.05 * torch.randn_like(image)  # a camera's noise, other at each step
    mean = snn.step(frame)  # the mean output since reset, in the ANN's own units
    print(f"t = {t + 1}: class {int(mean.argmax())}, score {float(mean.max()):.2f}")
print(f"the ANN says class {int(ann(image).argmax())}")
