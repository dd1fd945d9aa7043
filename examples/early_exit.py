"""Each image takes the steps that it needs: python examples/early_exit.py"""

import ftbc

ann = ftbc.zoo.load("resnet20-cifar10")
calibration, test = ftbc.data.load("cifar10-sample", calibration=128, test=100)
snn = ftbc.convert(ann, calibration, steps=16)

x, labels = test.tensor(), test.labels
for level in (0.9, 0.99, 0.999):
    answer = snn.predict(x, until=ftbc.Confidence(level))
    right = (answer.classes == labels).float().mean()
    print(f"stop at {level}: {100 * right:.1f} % right after {answer.steps.float().mean():.1f} steps of 16")
