"""What cannot be converted is named with its layer, the user's source line and a remedy, all of it at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.errors import UnsupportedError
from ftbc.graph.canonical import Problem, canonical
from ftbc.graph.trace import trace
from tests.graph.support import ROUTES, Net, images, settled

Run = Callable[[Any, Tensor], Any]


def conv() -> nn.Module:
    return nn.Conv2d(4, 6, 3, padding=1)


def problems_of(model: nn.Module, shape: tuple[int, ...] = (4, 8, 8), route: str = "fx") -> list[Problem]:
    return canonical(trace(settled(model), images(shape), ROUTES[route])).problems


# name of the operation -> (forward, a word of the remedy)
FUNCTIONS: dict[str, tuple[Run, str]] = {
    "gelu": (lambda m, x: F.gelu(m.a(x)), "nn.ReLU"),
    "silu": (lambda m, x: F.silu(m.a(x)), "nn.ReLU"),
    "leaky_relu": (lambda m, x: F.leaky_relu(m.a(x)), "nn.ReLU"),
    "elu": (lambda m, x: F.elu(m.a(x)), "nn.ReLU"),
    "abs": (lambda m, x: m.a(x).abs(), "nn.ReLU"),
    "sigmoid": (lambda m, x: m.b(torch.sigmoid(m.a(x))), "very last"),
    "tanh": (lambda m, x: m.b(m.a(x).tanh()), "very last"),
    "softmax": (lambda m, x: m.b(m.a(x).softmax(1)), "very last"),
    "layer_norm": (lambda m, x: F.layer_norm(m.a(x), (8, 8)), "BatchNorm"),
    "group_norm": (lambda m, x: F.group_norm(m.a(x), 2), "BatchNorm"),
    "mul": (lambda m, x: m.a(x) * m.a(x).mean((2, 3), keepdim=True), "products"),
    "matmul": (lambda m, x: (y := m.a(x)) @ y.transpose(2, 3), "products"),
    "scaled_dot_product_attention": (lambda m, x: F.scaled_dot_product_attention(x, x, x), "products"),
    "hardtanh": (lambda m, x: F.hardtanh(m.a(x)), "from -1.0 to 1.0"),
    "clamp": (lambda m, x: m.a(x).clamp(-1, 1), "from -1 to 1"),
    "clamp_max": (lambda m, x: m.a(x).clamp_max(1), "supported"),
    "threshold": (lambda m, x: torch.threshold(m.a(x), 1.0, 0.0), "nn.ReLU"),
    "maximum": (lambda m, x: torch.maximum(m.a(x), m.a(-x)), "nn.MaxPool"),
    "max": (lambda m, x: m.a(x).max(1)[0], "nn.MaxPool"),
    "max_pool2d_with_indices": (lambda m, x: F.max_pool2d(m.a(x), 2, return_indices=True)[1], "return_indices"),
    "dropout": (lambda m, x: F.dropout(m.a(x)), "training"),
    "mean": (lambda m, x: m.a(x).mean(), "batch"),
    "sum": (lambda m, x: m.a(x) + m.a(x).sum(0, keepdim=True), "batch"),
    "reshape": (lambda m, x: m.a(x).reshape(-1, 8, 8), "batch"),
    "permute": (lambda m, x: m.a(x).permute(1, 0, 2, 3), "batch"),
    "flatten": (lambda m, x: m.a(x).flatten(), "batch"),
    "getitem": (lambda m, x: m.a(x)[:1], "batch"),
    "getitem, steps": (lambda m, x: m.a(x)[::2], "batch"),
    "add, counting images": (lambda m, x: m.a(x) + x.new_ones(x.size(0), 1, 1, 1).cumsum(0), "image to image"),
    "mul, number of images": (lambda m, x: m.a(x) * x.new_ones(x.size(0), 1).sum(0), "batch size"),
    "chunk": (lambda m, x: m.a(x).chunk(2)[0], "batch"),
    "cat": (lambda m, x: torch.cat([x, x]), "batch"),
    "double": (lambda m, x: m.a(x).float().double(), "float"),
    "to": (lambda m, x: m.a(x).to(torch.int32), "int32"),
    "item": (lambda m, x: m.a(x) / x.abs().max().item(), "number"),
    "gt": (lambda m, x: m.a(x) * (m.a(x) > 0), "nn.ReLU"),
    "argmax": (lambda m, x: m.a(x).argmax(1), "scores"),
    "fft_fft": (lambda m, x: torch.fft.fft(m.a(x)).real, "supported"),
    "truediv": (lambda m, x: 1 / m.a(x), "products"),
    "add": (lambda m, x: m.a(x) + x.size(0), "batch size"),
    "conv2d": (lambda m, x: F.conv2d(x, m.a(x).mean(0)[None, :4]), ""),
    "batch_norm": (lambda m, x: F.batch_norm(x, None, None, training=True), "track_running_stats"),
    "interpolate": (lambda m, x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True), "antialias"),
}  # fmt: skip


@pytest.mark.parametrize("operation", FUNCTIONS)
def test_function_is_named_with_line_and_remedy(operation: str) -> None:
    run, word = FUNCTIONS[operation]
    operation = operation.partition(",")[0]
    found = problems_of(Net(run, a=conv(), b=nn.Conv2d(6, 4, 3)))
    named = {problem.what: problem for problem in found}
    if operation == "double":
        operation = "float"
    assert operation in named, found
    assert word in named[operation].remedy
    assert named[operation].source == f"{Path(__file__).name}:{run.__code__.co_firstlineno}"
    assert operation in named[operation].name


MODULES: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "GELU": (nn.GELU, "nn.ReLU"),
    "SiLU": (nn.SiLU, "nn.ReLU"),
    "Hardswish": (nn.Hardswish, "nn.ReLU"),
    "PReLU": (nn.PReLU, "nn.ReLU"),
    "LeakyReLU": (nn.LeakyReLU, "nn.ReLU"),
    "Hardtanh": (nn.Hardtanh, "-1.0 to 1.0"),
    "Sigmoid": (nn.Sigmoid, "very last"),
    "LayerNorm": (lambda: nn.LayerNorm(8), "BatchNorm"),
    "GroupNorm": (lambda: nn.GroupNorm(2, 6), "BatchNorm"),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(6), "BatchNorm"),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(6, track_running_stats=False), "track_running_stats"),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), "supported"),
    "Fold": (lambda: nn.Sequential(nn.Flatten(2), nn.Fold(8, 1)), "supported"),
}


@pytest.mark.parametrize("kind", MODULES)
def test_module_is_named_with_line_and_remedy(kind: str) -> None:
    make, word = MODULES[kind]
    run: Run = lambda m, x: F.relu(m.odd(m.a(x)))  # noqa: E731
    (found,) = problems_of(Net(run, a=conv(), odd=make()))
    assert (found.what, found.name.partition(".")[0]) == (kind, "odd")
    assert word in found.remedy
    assert found.source == f"{Path(__file__).name}:{run.__code__.co_firstlineno}"


def test_recurrent_layers_and_attention() -> None:
    (found,) = problems_of(Net(lambda m, x: m.rnn(x)[0].relu(), rnn=nn.LSTM(4, 5, batch_first=True)), (6, 4))
    assert (found.name, found.what) == ("rnn", "LSTM") and "feed-forward submodule" in found.remedy
    (found,) = problems_of(
        Net(lambda m, x: m.mha(x, x, x)[0].relu(), mha=nn.MultiheadAttention(4, 2, batch_first=True)), (6, 4)
    )
    assert (found.name, found.what) == ("mha", "MultiheadAttention") and "products" in found.remedy


class _Many(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.act, self.b = conv(), nn.GroupNorm(2, 6), nn.SiLU(), nn.Conv2d(6, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.norm(self.a(x)))
        y = torch.relu(self.b(y) * torch.sigmoid(y))
        return F.gelu(y).mean((2, 3))


@pytest.mark.parametrize("route", ROUTES)
def test_every_problem_is_listed_at_once(route: str) -> None:
    found = problems_of(_Many(), route=route)
    assert [problem.name for problem in found] == ["norm", "act", "sigmoid", "mul", "gelu"]
    first = _Many.forward.__code__.co_firstlineno
    assert [problem.source for problem in found] == [f"{Path(__file__).name}:{first + n}" for n in (1, 1, 2, 2, 3)]


def test_convert_raises_the_text_of_check() -> None:
    model = settled(Net(lambda m, x: F.gelu(m.norm(m.a(x))).relu(), a=conv(), norm=nn.GroupNorm(2, 6)))
    report = ftbc.check(model, images((4, 8, 8)))
    assert not report.ok and len(report.problems) == 2
    with pytest.raises(UnsupportedError) as error:
        ftbc.convert(model, images((4, 8, 8)), steps=2)
    assert str(error.value) == "\n".join(map(str, report.problems))
    assert all(str(problem) in str(report) for problem in report.problems)
    # The layers before a problem are shown as well.
    assert [row.name for row in report.rows] == ["a", "relu"]


def test_problems_of_an_unused_branch_are_no_problems() -> None:
    def run(m: Any, x: Tensor) -> Tensor:
        y = m.a(x)
        F.gelu(y).sum()
        return F.relu(y)

    assert problems_of(Net(run, a=conv())) == []


@pytest.mark.parametrize(
    "result", [lambda x: (x, x.relu()), lambda x: {"out": x.relu()}, lambda x: 3, lambda x: [x.relu(), None]]
)
def test_more_than_one_output_is_a_problem(result: Callable[[Tensor], Any]) -> None:
    (found,) = problems_of(Net(lambda m, x: result(m.a(x)), a=conv()))
    assert found.name == "output" and "one tensor" in found.remedy


def test_no_activation_is_an_error() -> None:
    model = settled(nn.Sequential(conv(), nn.Flatten()))
    report = ftbc.check(model, images((4, 8, 8)))
    assert not report.ok
    with pytest.raises(UnsupportedError) as error:
        ftbc.convert(model, images((4, 8, 8)), steps=2)
    assert str(error.value) == str(report.problems[0])


def test_head_is_noted_and_applied_to_the_average() -> None:
    layers = [nn.Flatten(), nn.Linear(256, 5), nn.ReLU(), nn.Linear(5, 3)]
    x = images((4, 8, 8))
    bare = ftbc.convert(settled(nn.Sequential(*layers)), x, steps=4, recipe="mean-square")
    model = settled(nn.Sequential(*layers, nn.Softmax(1)))
    assert any("Softmax" in note for note in ftbc.check(model, x).notes)
    snn = ftbc.convert(model, x, steps=4, recipe="mean-square")
    torch.testing.assert_close(snn(x), bare(x).softmax(-1), rtol=0, atol=1e-12)


def test_softmax_over_the_batch_is_refused() -> None:
    (found,) = problems_of(Net(lambda m, x: m.a(x.relu()).softmax(0), a=conv()))
    assert "batch" in found.remedy
    (found,) = problems_of(Net(lambda m, x: m.head(x.relu()), head=nn.Softmax()), (6, 4))  # torch takes dimension 0
    assert "batch" in found.remedy
