"""Networks that do not end in a linear layer: in a ReLU, in a mean or sum of one, in a lone number for each image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.calibrate import CorrelationSearch, Gain, QuantileBias, Refit
from ftbc.graph.ops import Affine
from ftbc.neuron import IntegrateFire
from ftbc.recipe import Recipe

METHODS = ("maximum", "ftbc", "ftbc-neuron", "snnc-lp-ftbc", "ltb", "differential", "best", "best-anytime")


class _Ending(nn.Module):
    """Two hidden layers, of which the second is wide or a lone neuron, and what comes behind them."""

    def __init__(self, wide: int, ending: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.ending = nn.Linear(6, 24), nn.Linear(24, wide), ending

    def forward(self, x: Tensor) -> Tensor:
        return self.ending(self.second(F.relu(self.first(x))))


ENDINGS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "relu": (5, F.relu),
    "number": (1, lambda z: z.squeeze(-1)),
    "relu-of-a-number": (1, lambda z: F.relu(z.squeeze(-1))),
    "number-of-a-relu": (1, lambda z: F.relu(z).squeeze(-1)),
    "sum-of-relus": (5, lambda z: F.relu(z).sum(1)),
    "mean-of-relus": (5, lambda z: F.relu6(z).mean(1)),
}
IN_NEURONS = [name for name in ENDINGS if "relu" in name]


def _network(name: str, seed: int = 3) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(seed)
    return _Ending(*ENDINGS[name]).double().eval(), torch.randn(1000, 6, dtype=torch.float64)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ENDINGS)
def test_every_engine_and_a_saved_network_give_the_same(name: str, method: str, tmp_path: Path) -> None:
    network, x = _network(name)
    snn = ftbc.convert(network, x, 3, method)
    outputs, others = snn(x), torch.randn(20, 6, dtype=torch.float64)
    assert outputs.shape == (3, *network(x).shape)
    torch.testing.assert_close(snn(x, engine="stepwise"), outputs, rtol=0, atol=1e-12)
    # On images that no threshold was taken from: there a membrane may lie on its threshold to the last bit.
    torch.testing.assert_close(snn(others, engine="event"), snn(others), rtol=0, atol=1e-9)
    snn.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(x), outputs)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", ENDINGS)
def test_exported_as_onnx(name: str, whole: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    network, x = _network(name)
    snn = ftbc.convert(network.float(), x.float(), 3, "mean-square")
    assert ftbc.export.onnx(snn, tmp_path / "net.onnx", all_at_once=whole).agreement.share > 0.99


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("name", IN_NEURONS)
@torch.no_grad()
def test_neurons_that_no_weights_read_keep_their_mean(name: str, steps: int) -> None:
    """What a search or a gain shifts, nothing behind them could make up for: they send what the ANN does, clipped."""
    network, x = _network(name)
    snn = ftbc.convert(network, x, steps, Recipe(calibrate=(Refit(), QuantileBias(), CorrelationSearch(), Gain())))
    last: list[tuple[Tensor, Tensor]] = []

    def keep(node, inputs, spikes, start) -> None:
        if isinstance(node.module, IntegrateFire):
            last[:] = [(spikes, node.module.threshold)]

    snn(x, observe=keep)
    (spikes, theta), z = last[0], network.second(F.relu(network.first(x)))
    aimed_at = torch.minimum(z.clamp(min=0), theta).mean(0)
    assert bool(((spikes.mean((0, 1)) - aimed_at).abs() <= theta / len(x)).all()), "more than one image too many"
    assert not [node for node in snn.graph if isinstance(node.module, Affine)], "a gain that nobody takes"


@pytest.mark.parametrize("name", ENDINGS)
def test_best_is_nearer_to_the_ann_than_ftbc(name: str) -> None:
    error = dict.fromkeys(("best", "ftbc"), 0.0)
    for seed in range(3):
        network, x = _network(name, seed)
        with torch.no_grad():
            wanted = network(x[500:])
        for method in error:
            found = ftbc.convert(network, x[:500], 4, method)(x[500:])[-1]
            error[method] += float((found - wanted).pow(2).mean())
    assert error["best"] < 0.95 * error["ftbc"]
