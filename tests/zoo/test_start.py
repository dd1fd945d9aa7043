"""Networks begin training with signals and gradients of a sensible size."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ftbc import zoo
from ftbc.zoo.mobilenet_v2 import InvertedResidual
from ftbc.zoo.residual import ResidualBlock


@pytest.mark.parametrize("batch_norm", [True, False], ids=["BatchNorm", "none"])
@pytest.mark.parametrize("name", zoo.architectures())
def test_signals_and_gradients(name: str, batch_norm: bool) -> None:
    """Without BatchNorm, plain Kaiming weights let the outputs of ResNet-56 grow to thousands."""
    model = zoo.build(name, width=0.25, classes=10, batch_norm=batch_norm)
    side = min(zoo.architectures()[name].side, 64)
    scores = model(torch.randn(4, 3, side, side))
    assert 0.01 < float(scores.detach().std()) < 10
    F.cross_entropy(scores, torch.arange(4)).backward()
    sizes = [float(parameter.grad.norm()) for parameter in model.parameters() if parameter.grad is not None]
    assert len(sizes) == len(list(model.parameters())) and 0 < max(sizes) < 1000


@pytest.mark.parametrize("batch_norm", [True, False], ids=["BatchNorm", "none"])
@pytest.mark.parametrize("name", ["resnet20", "resnet50", "mobilenet-v2"])
def test_zero_residual(name: str, batch_norm: bool) -> None:
    model = zoo.build(name, batch_norm=batch_norm, zero_residual=True).eval()
    found = 0

    def only_the_shortcut(block: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal found
        found += 1
        wanted = inputs[0]
        if isinstance(block, ResidualBlock):
            wanted = F.relu(block.get_submodule(block.shortcut_name)(wanted))
        assert torch.equal(output, wanted)

    for module in model.modules():
        if isinstance(module, ResidualBlock) or (isinstance(module, InvertedResidual) and module.has_shortcut):
            module.register_forward_hook(only_the_shortcut)
    model(torch.rand(1, 3, 32, 32))
    assert found == {"resnet20": 9, "resnet50": 16, "mobilenet-v2": 10}[name]
