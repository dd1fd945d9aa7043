"""The refit of weights against least squares written out, its targets, and what it leaves alone."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.activation import QCFS
from ftbc.calibrate import Calibration, QuantileBias, Refit
from ftbc.calibrate.refit import octaves, whole_and_partial
from ftbc.calibrate.relaxation import FlatEnds
from ftbc.errors import RecipeError
from ftbc.graph.ops import Activation, Staircase
from ftbc.neuron import Burst, Differential, Parallel, Signed
from ftbc.neuron.kind import Kind
from ftbc.simulate import layerwise
from tests.calibrate.walk.test_plan import graphs
from tests.calibrate.walk.test_walk import lively, pictures
from tests.networks import INPUT_SHAPE, NETWORKS


class _Three(nn.Module):
    """A sum of three branches: a projection, a grouped convolution and an identity, one of them subtracted."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.one, self.two = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        return self.head(F.relu(x + self.one(x) - self.two(x)).mean((2, 3)))


def _mean_value(graph, images: Tensor, name: str, steps: int) -> Tensor:
    """The mean over the steps of a value of a spiking graph."""
    seen: list[Tensor] = []

    def keep(node, inputs, value, start) -> None:
        if node.name == name:
            seen.append(value.sum(0))

    layerwise(graph, images, steps, observe=keep, room=1 << 30)
    return torch.cat(seen) / steps


def _ann_value(graph, images: Tensor, name: str) -> Tensor:
    seen: dict[str, Tensor] = {}
    graph(images, lambda node, value: seen.__setitem__(node.name, value))
    return seen[name]


def test_one_convolution_equals_least_squares_written_out() -> None:
    """Patches by unfold, a column of ones for the bias, the ridge as further rows; all positions of all images."""
    network, images = _one_convolution()
    ann, snn = graphs(network, images)
    spikes = _mean_value(snn, images, "1", 3)
    old = snn["2"].module
    W, bias = old.weight.detach().clone(), old.bias.detach().clone()
    z = ann(images)
    Refit(ridge=0.05, partial=0.0, rows=10**6)(Calibration(ann, snn, 3, images, torch.Generator()))
    _require_least_squares(spikes, z, W, bias, old)


@pytest.mark.parametrize("neuron", [Parallel(), Signed(), Burst(), Differential()])
def test_neurons_of_any_kind_are_read(neuron: Kind) -> None:
    """What is refitted lies behind them: only what they send counts."""
    network, images = _one_convolution()
    bare, fitted = (
        ftbc.convert(network, images, 3, ftbc.recipe("mean-square", neuron=neuron, calibrate=calibrate))
        for calibrate in ((), (Refit(ridge=0.05, partial=0.0, rows=10**6),))
    )
    spikes, old = _mean_value(bare.graph, images, "1", 3), bare.graph["2"].module
    _require_least_squares(spikes, network(images).detach(), old.weight, old.bias, fitted.graph["2"].module)


def test_partial_sums_need_one_step_after_another() -> None:
    network, images = _one_convolution()
    with pytest.raises(RecipeError, match=r"Refit with partial > 0 looks at one step after another, but .* sees 3"):
        ftbc.convert(network, images, 3, ftbc.recipe("parallel-refit", calibrate=(Refit(),)))


def _one_convolution() -> tuple[nn.Module, Tensor]:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3, stride=2, padding=1)).double()
    return network, torch.rand(20, *INPUT_SHAPE, dtype=torch.float64)


def _require_least_squares(spikes: Tensor, outputs: Tensor, W: Tensor, bias: Tensor, fitted: nn.Module) -> None:
    x = F.unfold(spikes, 3, padding=1, stride=2).transpose(1, 2).reshape(-1, 36)
    z = outputs.flatten(2).transpose(1, 2).reshape(-1, 5)
    r = z - x @ W.flatten(1).t() - bias
    centred = x - x.mean(0)
    penalty = (0.05 * centred.pow(2).sum(0)).sqrt().diag()
    A = torch.cat([centred, penalty])
    D = torch.linalg.lstsq(A, torch.cat([r - r.mean(0), torch.zeros(36, 5).double()])).solution
    torch.testing.assert_close(fitted.weight.flatten(1).t(), W.flatten(1).t() + D, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(fitted.bias, bias + r.mean(0) - x.mean(0) @ D, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [*NETWORKS, "three"])
def test_every_junction_comes_nearer_to_the_ann(name: str) -> None:
    """The mean square error of each refitted value, on the images it was refitted on, with one layer changed a time."""
    torch.manual_seed(4)
    network = lively(NETWORKS[name]() if name in NETWORKS else _Three().double().eval())
    images = pictures(96)
    ann, before = graphs(network, images)
    after = before.copy()
    Refit(ridge=1e-3, rounds=0, partial=0.0, rows=10**6)(Calibration(ann, after, 3, images, torch.Generator()))
    errors = [((layerwise(g, images, 3).mean(0) - ann(images)) ** 2).mean() for g in (before, after)]
    assert float(errors[1]) < 0.65 * float(errors[0])
    assert torch.equal(before[next(iter(before.nodes))].module.weight, after[next(iter(after.nodes))].module.weight)


def test_branches_of_a_sum_make_up_for_each_other() -> None:
    """Two dense layers are fitted as one; the third branch, which has no weights, is what the target compensates."""
    torch.manual_seed(4)
    network, images = NETWORKS["residual"](), torch.rand(30, *INPUT_SHAPE, dtype=torch.float64)
    ann, snn = graphs(network, images)
    for node in ann:
        if {"conv3", "down"} <= set(node.inputs):
            total = node.name
    Refit(ridge=1e-9, rounds=0, partial=0.0, rows=10**6)(Calibration(ann, snn, 3, images, torch.Generator()))
    x = _mean_value(snn, images, snn["conv3"].inputs[0], 3)
    z = _ann_value(ann, images, total).flatten(2).transpose(1, 2).reshape(-1, 8)
    wide = F.unfold(x, 3, padding=1, stride=2).transpose(1, 2).reshape(-1, 54)
    one = x[:, :, ::2, ::2].flatten(2).transpose(1, 2).reshape(-1, 6)
    A = torch.cat([wide, one, torch.ones(len(wide), 1).double()], 1)
    best = A @ torch.linalg.lstsq(A, z, driver="gelsd").solution
    found = _mean_value(snn, images, total, 3).flatten(2).transpose(1, 2).reshape(-1, 8)
    torch.testing.assert_close(found, best, rtol=1e-5, atol=1e-6)


def _relaxed(z: Tensor, prediction: Tensor, ends: FlatEnds) -> Tensor:
    return ends(z, prediction, torch.zeros(len(z), dtype=torch.int64), torch.zeros(()))


def test_targets_are_free_where_the_activation_is_flat() -> None:
    z = torch.tensor([-2.0, -2.0, -2.0, 1.0, 8.0, 8.0, 8.0])
    prediction = torch.tensor([-3.0, -1.0, 0.5, 3.0, 9.0, 7.0, 5.0])
    assert _relaxed(z, prediction, FlatEnds(0.0)).tolist() == [-2, -1, 0, 1, 8, 8, 8]
    assert _relaxed(z, prediction, FlatEnds(0.0, 6.0)).tolist() == [-2, -1, 0, 1, 8, 7, 6]
    assert _relaxed(z, prediction, FlatEnds(None)).tolist() == z.tolist()


@pytest.mark.parametrize(
    "activation", [Activation(), Activation(6.0), Staircase(2.0, 4), Staircase(3.0, 8, step_shift=0.3)]
)
def test_the_ends_are_where_the_activation_is_flat(activation: Activation) -> None:
    ends = FlatEnds.of(activation)
    assert ends is not None and ends.low is not None
    low, high = ends.low, ends.high
    z = torch.linspace(-3, 9, 2401, dtype=torch.float64)
    a = activation(z)
    assert bool((a[z < low] == 0).all()) and float(a[z > low + 0.01][0]) > 0
    if high is None:
        assert bool((a[z > 0].diff() > 0).all())
    else:
        assert bool((a[z > high + 1e-9] == a[-1]).all()) and float(a[z < high - 0.01][-1]) < float(a[-1])


def test_each_round_lowers_the_error_behind_the_activation() -> None:
    torch.manual_seed(4)
    network, images = lively(NETWORKS["plain"]()), pictures(200)
    ann, base = graphs(network, images)
    hidden = next(node.name for node in base if isinstance(node.module, nn.Linear))

    def error(rounds: int) -> float:
        snn = base.copy()
        Refit(ridge=1e-6, rounds=rounds, partial=0.0, rows=10**6)(Calibration(ann, snn, 3, images, torch.Generator()))
        found, wanted = _mean_value(snn, images, hidden, 3), _ann_value(ann, images, hidden)
        free = _relaxed(wanted, found, FlatEnds(0.0))
        return float((found - free).pow(2).sum())

    errors = [error(rounds) for rounds in range(5)]
    assert all(later <= sooner * (1 + 1e-6) for sooner, later in itertools.pairwise(errors))
    assert errors[-1] < 0.9 * errors[0]


def test_partial_sums_bring_early_means_nearer() -> None:
    torch.manual_seed(6)
    network, images = lively(NETWORKS["residual"]()), pictures(64)

    def early(partial: float) -> float:
        recipe = ftbc.Recipe(calibrate=(QuantileBias(), Refit(ridge=1e-4, partial=partial, rounds=0)))
        out = ftbc.convert(network, images, 6, recipe)(images)
        return float((out[2] - out[2].mean(0) - (out[-1] - out[-1].mean(0))).pow(2).mean())

    assert early(20.0) < early(0.0)


def test_octaves_are_as_frequent_as_each_other() -> None:
    drawn = octaves(32, 20000, torch.Generator().manual_seed(0))
    assert int(drawn.min()) == 1 and int(drawn.max()) == 31
    shares = [float(((drawn >= 2**k) & (drawn < 2 ** (k + 1))).double().mean()) for k in range(5)]
    assert shares == pytest.approx([0.2] * 5, abs=0.01)
    assert octaves(2, 5, torch.Generator()).tolist() == [1] * 5


@pytest.mark.parametrize("anytime", [False, True])
def test_the_weights_of_partial_sums(anytime: bool) -> None:
    """As (t/T)^2 in a network that is read at its last step; in one that is read at any, alike from the fourth on."""
    network, images = NETWORKS["plain"](), pictures(64)
    ann, snn = graphs(network, images)
    layer = SimpleNamespace(steps=16, calibration=Calibration(ann, snn, 16, images, torch.Generator().manual_seed(0)))
    whole, partial = whole_and_partial(layer, 3.0, anytime)(500)  # type: ignore[arg-type]
    assert whole.share.tolist() == [1.0] * 500 and whole.weights.unique().tolist() == [1 / 16]
    for weights, share, part in zip(partial.weights.t(), partial.share, partial.part, strict=True):
        t = int((weights > 0).sum())
        assert int(part) == t - 1 and weights[:t].unique().tolist() == pytest.approx([1 / t])
        wanted = min(1.0, (t / 4) ** 2) if anytime else (t / 16) ** 2
        assert float(share) == pytest.approx(3 * wanted)


def test_a_heavy_ridge_is_the_base_method() -> None:
    network, images = NETWORKS["residual"](), torch.rand(16, *INPUT_SHAPE, dtype=torch.float64)
    ann, snn = graphs(network, images)
    weights = {node.name: node.module.weight.clone() for node in snn if hasattr(node.module, "weight")}
    Refit(ridge=1e12)(Calibration(ann, snn, 3, images, torch.Generator()))
    for name, weight in weights.items():
        torch.testing.assert_close(snn[name].module.weight, weight, rtol=1e-6, atol=1e-8)


def test_a_network_trained_with_stairs_is_refitted_to_them() -> None:
    torch.manual_seed(7)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), QCFS(4, 1.0), nn.Conv2d(6, 6, 3, padding=1), QCFS(4, 1.0), nn.Flatten(),
        nn.Linear(6 * 64, 5),
    ).double().eval()  # fmt: skip
    images = torch.rand(64, *INPUT_SHAPE, dtype=torch.float64)
    z = network(images).detach()
    base, fitted = (
        ftbc.convert(network, images, 2, ftbc.recipe("qcfs", calibrate=calibrate))
        for calibrate in ((), (Refit(), QuantileBias()))
    )
    assert float((fitted(images)[-1] - z).pow(2).mean()) < 0.5 * float((base(images)[-1] - z).pow(2).mean())


def test_wrong_settings_are_refused() -> None:
    for wrong in ({"ridge": -0.1}, {"rounds": -1}, {"partial": -0.5}, {"rows": 0}):
        with pytest.raises(RecipeError, match="Refit"):
            Refit(**wrong)
