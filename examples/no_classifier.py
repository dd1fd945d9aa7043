"""A network that gives a number: its outputs beside those of its ANN: python examples/no_classifier.py"""

import torch
from torch import nn

import ftbc

torch.manual_seed(0)
angles = torch.rand(2000, 1) * 6
hidden = nn.Sequential(nn.Linear(1, 100), nn.ReLU())
nn.init.normal_(hidden[0].weight, std=2.0)
nn.init.uniform_(hidden[0].bias, -6.0, 6.0)

read_out = nn.Linear(100, 1, bias=False)
with torch.no_grad():
    features = hidden(angles)
    ridge = features.T @ features + torch.eye(100)
    read_out.weight.copy_(torch.linalg.solve(ridge, features.T @ angles.sin()).T)

ann = nn.Sequential(hidden, read_out, nn.Flatten(0)).eval()
for recipe in ("ftbc", "best"):
    snn = ftbc.convert(ann, angles[:1000], steps=8, recipe=recipe)
    error = ftbc.evaluate(snn, angles[1000:], reference=ann).error[-1]
    print(f"{recipe:5} {100 * error:6.2f} % of the variance of the ANN's outputs: mean square error")
