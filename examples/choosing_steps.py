"""How many time steps are enough? Chosen on training images, never on test images: python examples/choosing_steps.py"""

import ftbc

ann = ftbc.zoo.load("resnet20-cifar10")
images, _ = ftbc.data.load("cifar10-sample")
half = len(images) // 2
calibration, held_out = images.subset(range(half)), images.subset(range(half, len(images)))

for steps in (1, 2, 4, 8, 16, 32):
    snn = ftbc.convert(ann, calibration, steps)  # each T has a calibration of its own
    result = ftbc.evaluate(snn, held_out, reference=ann)
    loss = result.reference_accuracy - result.accuracy[-1]
    print(f"T = {steps:2}: {result.accuracy[-1]:.1f} %, {loss:+.1f} below the ANN, {result.energy[-1]:.1f} microjoules")
    if loss < 5:
        break
