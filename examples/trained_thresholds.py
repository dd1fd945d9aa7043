"""Train with QCFS, whose thresholds are learnt, and convert: python examples/trained_thresholds.py"""

import torch

import ftbc
from ftbc.activation import QCFS

calibration, test = ftbc.data.load("cifar10-sample")
ann = ftbc.zoo.build("resnet20", classes=10, width=0.5, activation=QCFS(levels=4))
optimiser = torch.optim.SGD(ann.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):  # ftbc train does it properly, on all of CIFAR-10
    for x, labels in calibration:
        loss = torch.nn.functional.cross_entropy(ann(x), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(f"epoch {epoch}: loss {loss.item():.2f}")
ann.eval()
for recipe in ("qcfs", "ftbc-qcfs"):  # the trained thresholds alone, then with temporal biases
    snn = ftbc.convert(ann, calibration, steps=4, recipe=recipe)
    print(recipe, ftbc.evaluate(snn, test.take(200), reference=ann), sep="\n")
