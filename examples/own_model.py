"""A network of your own: check, convert, save, and load it without its class: python examples/own_model.py"""

import torch
from torch import nn
from torch.nn import functional as F

import ftbc


class Small(nn.Module):
    """A convolution and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, stride=2), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.relu(self.norm(self.conv(x))).mean((2, 3)))


ann = Small().eval()  # load your weights here
calibration, test = ftbc.data.load("cifar10-sample", calibration=128)  # or a tensor [N, ...], or a DataLoader
print(ftbc.check(ann, calibration))
ftbc.convert(ann, calibration, steps=4).save("small.snn")
print(ftbc.evaluate(ftbc.load("small.snn"), test.take(100), reference=ann))
