"""Convert the shipped ResNet-20 for eight time steps and show its accuracy at each: python examples/quickstart.py"""

import ftbc

ann = ftbc.zoo.load("resnet20-cifar10")  # or any trained nn.Module
calibration, test = ftbc.data.load("cifar10-sample")

print(ftbc.check(ann, calibration))  # what converts, what does not, and why
snn = ftbc.convert(ann, calibration, steps=8)  # the default recipe: "ftbc"
print(ftbc.evaluate(snn, test, reference=ann))  # accuracy, operations and energy at t = 1..8
snn.save("resnet20.snn")  # loads with ftbc.load, without the model's own code
