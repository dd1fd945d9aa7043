"""Tracing: the user's model stays as it was, whatever it holds; what cannot be followed is said with its line."""

from __future__ import annotations

import copy
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

import ftbc
from ftbc.errors import TraceError
from ftbc.graph.ops import Activation
from ftbc.graph.trace import trace
from tests.graph.support import ROUTES, Net, answer, clean, images, settled


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = parametrizations.weight_norm(nn.Conv2d(4, 4, 3, padding=1)), nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, 5)
        self.calls: list[str] = []

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)) + x)
        return self.head(self.drop(x).mean((2, 3)))


def _state(model: nn.Module) -> dict[str, Any]:
    """Everything a conversion might leave a trace in."""
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modules = {
        name: (
            type(module),
            module.training,
            sorted(vars(module)),
            sorted(name for name in vars(type(module)) if not name.startswith("__")),
            {key: list(hooks) for key, hooks in vars(module).items() if key.endswith("hooks")},
        )
        for name, module in model.named_modules()
    }
    gradients = {name: (p.requires_grad, p.grad, id(p)) for name, p in model.named_parameters()}
    return {"tensors": tensors, "modules": modules, "gradients": gradients, "calls": getattr(model, "calls", None)}


def _same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert before["tensors"].keys() == after["tensors"].keys()
    assert all(torch.equal(before["tensors"][name], after["tensors"][name]) for name in before["tensors"])
    for part in ("modules", "gradients", "calls"):
        assert before[part] == after[part]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_convert_leaves_the_model_alone(training: bool, dtype: torch.dtype) -> None:
    model = settled(_Residual()).to(dtype).train(training)
    model.conv1.register_forward_hook(lambda *_: None)
    model.head.weight.requires_grad_(False)
    x = images((3, 8, 8), 6).to(dtype)
    kept, before = x.clone(), _state(model)
    ftbc.check(model, x)
    snn = ftbc.convert(model, x, steps=3)
    _same(before, _state(model))
    assert torch.equal(x, kept)
    assert {t.dtype for t in snn.state_dict().values()} == {dtype}
    assert snn(x).dtype == dtype
    shared = {p.data_ptr() for p in model.parameters()} & {t.data_ptr() for t in snn.state_dict().values()}
    assert not shared, "the spiking network shares memory with the model"


def test_convert_leaves_frozen_parts_frozen() -> None:
    model = settled(_Residual()).train()
    model.bn1.eval()
    before = _state(model)
    ftbc.convert(model, images((3, 8, 8), 6), steps=2)
    _same(before, _state(model))


def test_training_mode_converts_to_the_same_network() -> None:
    model, x = settled(_Residual()), images((3, 8, 8), 6)
    wanted = ftbc.convert(model, x, steps=3)(x)
    assert torch.equal(ftbc.convert(model.train(), x, steps=3)(x), wanted)


@pytest.mark.parametrize("route", ROUTES)
def test_older_forms_of_computed_weights(route: str) -> None:
    layers = [nn.Linear(6, 6) for _ in range(4)]
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(layers[0])
    nn.utils.spectral_norm(layers[1])
    prune.l1_unstructured(layers[2], "weight", amount=0.4)
    prune.random_unstructured(layers[2], "weight", amount=0.2)
    parametrizations.orthogonal(layers[3])
    model = settled(nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())]))
    x = images((6,))
    wanted = model(x).detach()  # leaves weights with a gradient history behind
    before = _state(model)
    torch.testing.assert_close(answer(clean(model, x, route), x), wanted, rtol=0, atol=1e-9)
    _same(before, _state(model))
    assert parametrize.is_parametrized(layers[3])
    assert torch.equal(model(x), wanted)


def test_wrappers_are_looked_through() -> None:
    model, x = settled(_Residual()), images((3, 8, 8))
    wanted = clean(model, x).graph.state_dict()
    for wrapped in (nn.DataParallel(model), torch.compile(model)):
        found = clean(wrapped, x).graph.state_dict()
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_submodule_alone() -> None:
    model = settled(nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), nn.GELU()))
    x = images((3, 8, 8))
    torch.testing.assert_close(answer(clean(model[0], x), x), model[0](x).detach())
    snn = ftbc.convert(model[0], x, steps=2)
    assert snn(x).shape == (2, 5, 4, 6, 6)


class _Optional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, mask: Tensor | None = None, features: bool = False, *, times: int = 2) -> Tensor:
        x = self.fc(x) if mask is None else self.fc(x) * mask
        if features:
            return x
        for _ in range(times):
            x = F.relu(self.fc(x))
        return x


class _Starred(_Optional):
    def forward(self, *inputs: Tensor) -> Tensor:
        return super().forward(*inputs)


@pytest.mark.parametrize(("kind", "route"), [(_Optional, "fx"), (_Optional, "export"), (_Starred, "export")])
def test_optional_arguments_keep_their_defaults(kind: type[nn.Module], route: str) -> None:
    model, x = settled(kind()), images((4,))
    cleaned = clean(model, x, route)
    assert len(cleaned.graph.of_type(Activation)) == 2
    torch.testing.assert_close(answer(cleaned, x), model(x).detach())


def test_value_dependent_control_flow_is_an_error_with_its_line() -> None:
    def run(m: Any, x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x * 2
        return F.relu(x)

    line = run.__code__.co_firstlineno + 1
    with pytest.raises(TraceError, match=re.escape(f"({Path(__file__).name}:{line})")):
        trace(Net(run), images((4,)))


def test_torch_says_nothing_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    """Its export prints graphs and warnings of what it cannot follow."""
    before = logging.root.manager.disable

    def run(m: Any, x: Tensor) -> Tensor:
        x = F.relu(m.a(x))
        return m.a(x) if x.sum() > 0 else x

    with pytest.raises(TraceError):
        trace(Net(run, a=nn.Linear(4, 4)).double(), images((4,)))
    assert capfd.readouterr() == ("", "") and logging.root.manager.disable == before


def test_network_that_does_not_run_is_an_error_with_its_line() -> None:
    model = Net(lambda m, x: m.fc(x), fc=nn.Linear(3, 2)).double()
    with pytest.raises(TraceError, match=rf"does not run on input of shape \(2, 4\).*{Path(__file__).name}:\d+"):
        trace(model, images((4,)))


def test_fixed_batch_size_is_an_error() -> None:
    with pytest.raises(TraceError, match="batch"):
        trace(Net(lambda m, x: F.relu(x).view(2, 4)), images((4,)))


def test_model_that_cannot_be_copied_is_an_error() -> None:
    model = Net(lambda m, x: F.relu(x))
    model.lock = (entry for entry in ())  # a generator, which deepcopy refuses
    with pytest.raises(TraceError, match="copied"):
        trace(model, images((4,)))


def test_input_that_the_network_overwrites_is_kept() -> None:
    x = images((4,))
    kept = x.clone()
    trace(Net(lambda m, x: F.relu_(x)), x)
    assert torch.equal(x, kept)


@pytest.mark.parametrize("route", ROUTES)
def test_numbers_that_follow_the_batch(route: str) -> None:
    """The recorded number of images must not be built in."""
    model = settled(Net(lambda m, x: F.relu(m.fc(x)).reshape(-1, 6) + x.new_ones(x.size(0), 6), fc=nn.Linear(4, 6)))
    cleaned = clean(model, images((4,)), route)
    for count in (1, 4, 7):
        x = images((4,), count)
        torch.testing.assert_close(answer(cleaned, x), model(x).detach())


def test_names_are_those_of_the_model() -> None:
    model = settled(_Residual())
    graph = clean(copy.deepcopy(model), images((3, 8, 8))).graph
    assert {"conv1.weight", "conv1.bias", "conv2.weight", "head.weight"} <= graph.state_dict().keys()
    assert [node.name for node in graph.of_type(Activation)] == ["relu", "relu_1"]
    line = _Residual.forward.__code__.co_firstlineno
    assert graph["conv2"].source == f"{Path(__file__).name}:{line + 2}"


@pytest.mark.parametrize("route", ROUTES)
def test_layers_may_be_called_anything(route: str) -> None:
    """Names of the graph's own attributes and methods, and names that repeat."""
    names = ["output", "nodes", "input", "discard", "users", "relu", "shape"]
    layers = {name: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for name in names}
    layers["input_shape"] = nn.Linear(4, 4)

    class _Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, layer in layers.items():
                self.add_module(name, layer)

        def forward(self, x: Tensor) -> Tensor:
            x = F.relu(self._modules["input_shape"](x))
            for name in names:
                x = F.relu(self._modules[name](x))
            return x

    model, x = settled(_Named()), images((4,))
    cleaned = clean(model, x, route)
    torch.testing.assert_close(answer(cleaned, x), model(x).detach(), rtol=0, atol=1e-9)
    keys = {re.sub(r"^relu_\d+", "relu", key) for key in cleaned.graph.state_dict()}  # F.relu took the bare name
    assert {f"{name}.0.weight" for name in names} <= keys
