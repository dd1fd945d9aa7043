"""Evaluation, operations and energy against counts made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import InputError
from ftbc.graph.ir import Node
from ftbc.measure.energy import CMOS_45NM
from ftbc.measure.operations import fan_out
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS, residual


def _two_layers() -> nn.Module:
    """x -> identity neuron -> two outputs; the neuron fires as often as its input says."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 2)).double()
    net[0].weight.data.fill_(1.0)
    net[2].weight.data.copy_(torch.tensor([[1.0], [-1.0]]))
    net[2].bias.data.copy_(torch.tensor([-0.6, 0.0]))
    return net


def test_fan_out_of_a_padded_strided_convolution_counted_by_hand() -> None:
    conv = nn.Conv2d(1, 2, 3, stride=2, padding=1)
    reached = fan_out(Node("conv", conv, ("input",), (2, 2, 2)), (1, 4, 4))
    # Output windows start at -1 and 1: row or column 0 lies in 1 window, 1 in 2, 2 in 1, 3 in 1.
    per_axis = torch.tensor([1.0, 2.0, 1.0, 1.0], dtype=torch.float64)
    assert torch.equal(reached[0], 2 * per_axis[:, None] * per_axis[None, :])


def test_fan_out_of_grouped_and_linear_layers() -> None:
    grouped = nn.Conv2d(4, 8, 1, groups=4)
    assert fan_out(Node("g", grouped, ("input",), (8, 3, 3)), (4, 3, 3)).unique().tolist() == [2.0]
    linear = nn.Linear(7, 5)
    assert fan_out(Node("l", linear, ("input",), (5,)), (7,)).tolist() == [5.0] * 7


def test_accuracy_rates_and_operations_of_a_network_counted_by_hand() -> None:
    net = _two_layers()
    # theta = 1 (maximum), v0 = 1/2, T = 4: input 1 fires at each step, 0.25 once (step 2), 0 never.
    x = torch.tensor([[1.0], [0.25], [0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1])
    snn = ftbc.convert(net, x, 4, "maximum")
    result = ftbc.evaluate(snn, (x, labels), reference=net)
    assert result.images == 3
    # Scores are rate - 0.6 against -rate: class 0 from a rate above 0.3.
    assert result.reference_accuracy == pytest.approx(100.0)
    # Counts for 0.25 after t = 1..4: 0, 1, 1, 1 -> rates 0, .5, .33, .25 -> right, wrong, wrong, right.
    assert result.accuracy == pytest.approx([100.0, 200 / 3, 200 / 3, 100.0])
    assert result.firing_rate == {"1": pytest.approx((4 + 1 + 0) / 3 / 4)}
    spikes_so_far = [1, 3, 4, 5]
    assert result.neurons == 1 and result.spikes == pytest.approx([n / 3 for n in spikes_so_far])
    assert result.synops == pytest.approx([2 * n / 3 for n in spikes_so_far])
    expected = [CMOS_45NM.microjoules(t + 1, s) for t, s in enumerate(result.synops)]
    assert result.energy == pytest.approx(expected)
    assert result.reference_energy == pytest.approx(CMOS_45NM.microjoules(1 + 2, 0))
    assert CMOS_45NM.microjoules(1, 0) == pytest.approx(4.6e-6)
    assert "ANN" in str(result) and "100.00%" in str(result)


@pytest.mark.parametrize(
    ("stop", "accuracy", "mean_steps"),
    [(ftbc.Confidence(0.7), 100.0, (1 + 4 + 4) / 3), (ftbc.Confidence(0.6), 100.0, 1.0),
     (ftbc.Confidence(0.59, first=2), 200 / 3, 2.0), (ftbc.Confidence(0.6, first=2), 100.0, (2 + 4 + 2) / 3)],
    ids=str,
)  # fmt: skip
def test_early_exit_of_a_network_counted_by_hand(stop: ftbc.Confidence, accuracy: float, mean_steps: float) -> None:
    """The network of the test above. Of two scores that differ by d, the larger has the probability 1 / (1 + e^-|d|):

    input 1    always d = 1.4: 0.80
    input 1/4  d = -0.6, 0.4, 0.07, -0.1: 0.65, 0.599 and wrong, 0.52 and wrong, 0.52
    input 0    always d = -0.6: 0.65
    """
    x, y = torch.tensor([[1.0], [0.25], [0.0]], dtype=torch.float64), torch.tensor([0, 1, 1])
    snn = ftbc.convert(_two_layers(), x, 4, "maximum")
    plain, result = ftbc.evaluate(snn, (x, y)), ftbc.evaluate(snn, (x, y), stop=stop)
    assert result.early_exit is not None and result.early_exit.rule == stop
    assert result.early_exit.accuracy == pytest.approx(accuracy)
    assert result.early_exit.mean_steps == pytest.approx(mean_steps)
    line = f"stopped at a confidence of {stop.level}: {accuracy:.2f}% after {mean_steps:.2f} steps on average"
    assert line in str(result).splitlines()
    assert plain.early_exit is None and plain == replace(result, early_exit=None) and "stopped" not in str(plain)
    written = json.loads(json.dumps(result.to_dict()))["early_exit"]
    assert written["rule"] == {"level": stop.level, "first": stop.first}
    assert written["accuracy"] == result.early_exit.accuracy and written["mean_steps"] == result.early_exit.mean_steps
    assert json.loads(json.dumps(plain.to_dict()))["early_exit"] is None


@pytest.mark.parametrize("head", [None, nn.Softmax(1), nn.Sigmoid()], ids=str)
def test_early_exit_is_what_predict_does(head: nn.Module | None) -> None:
    x, y = torch.randn(230, *INPUT_SHAPE, dtype=torch.float64), torch.arange(230) % 5
    network = residual() if head is None else nn.Sequential(residual(), head)
    snn = ftbc.convert(network, x[:30], 6, "mean-square")
    stop = ftbc.Confidence(float(snn(x, head=False).softmax(2).amax(2).median()), first=2)
    found = ftbc.evaluate(snn, (x, y), stop=stop).early_exit
    prediction = snn.predict(x, until=stop)
    assert found is not None and 2 < found.mean_steps < 6
    assert found.accuracy == pytest.approx(100 * (prediction.classes == y).double().mean().item())
    assert found.mean_steps == pytest.approx(prediction.steps.double().mean().item())


@pytest.mark.parametrize("stop", [0.99, "0.99", True], ids=repr)
def test_stopping_by_what_is_no_rule(stop: Any, refused: Refused) -> None:
    x = torch.rand(3, 1, dtype=torch.float64)
    snn = ftbc.convert(_two_layers(), x, 2, "maximum")
    words = ("stop", type(stop).__name__, "ftbc.Confidence(0.99)")
    refused(InputError, words, ftbc.evaluate, snn, (x, torch.zeros(3, dtype=torch.long)), stop=stop)


@pytest.mark.parametrize("name", NETWORKS)
def test_layer_rows_have_rates_and_errors(name: str) -> None:
    torch.manual_seed(0)
    x = torch.rand(16, *INPUT_SHAPE, dtype=torch.float64)
    network = NETWORKS[name]()
    coarse = ftbc.convert(network, x, 1, "mean-square").layers()
    fine = ftbc.convert(network, x, 64, "maximum").layers()
    for rough, exact in zip(coarse, fine, strict=True):
        assert 0 <= exact.firing_rate <= 1
        assert exact.error < 0.05
        assert exact.error <= rough.error
        assert exact.threshold > 0


def test_data_in_every_form_gives_the_same_result() -> None:
    x, y = torch.rand(7, *INPUT_SHAPE, dtype=torch.float64), torch.randint(0, 5, (7,))
    snn = ftbc.convert(residual(), x, 2, "mean-square")
    whole = ftbc.evaluate(snn, (x, y))
    assert ftbc.evaluate(snn, [(x[:3], y[:3]), (x[3:], y[3:])]) == whole
    for wrong in (x, [(x,)], 5):
        with pytest.raises(InputError):
            ftbc.evaluate(snn, wrong)


def test_evaluate_leaves_the_reference_as_it_was() -> None:
    x, y = torch.rand(4, *INPUT_SHAPE, dtype=torch.float64), torch.zeros(4, dtype=torch.long)
    network = residual()
    snn = ftbc.convert(network, x, 2, "mean-square")
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    ftbc.evaluate(snn, (x, y), reference=network)
    assert network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_a_reference_that_writes_into_its_input_changes_nothing() -> None:
    class Normalising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.scores = nn.Linear(8, 16), nn.Linear(16, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.scores(torch.relu(self.hidden(x.sub_(0.5).div_(0.2))))

    torch.manual_seed(0)
    ann, x = Normalising().eval(), torch.rand(50, 8)
    before, labels = x.clone(), ann(x.clone()).argmax(1)
    found = ftbc.evaluate(ftbc.convert(ann, x, 4), (x, labels), reference=ann)
    assert torch.equal(x, before) and found.reference_accuracy == 100.0


@pytest.mark.parametrize("engine", ["layerwise", "event"])
def test_pixels_are_multiplied_also_behind_a_max_pool_of_the_image(engine: str) -> None:
    """The convolution does as much work behind either pool, whichever of the two has a state."""
    torch.manual_seed(0)
    convolution, scores, x = nn.Conv2d(3, 8, 3), nn.Linear(288, 10), torch.rand(8, 3, 16, 16)
    macs = 8 * 27 * 6 * 6
    for pool in (nn.AvgPool2d(2), nn.MaxPool2d(2)):
        ann = nn.Sequential(pool, convolution, nn.ReLU(), nn.Flatten(), scores).eval()
        found = ftbc.evaluate(ftbc.convert(ann, x, 3, "mean-square"), x, reference=ann, engine=engine)
        assert found.image_macs == macs and found.synops[-1] == pytest.approx(10 * found.spikes[-1])


@pytest.mark.parametrize("options", [{"stop": ftbc.Confidence(0.5)}, {"engine": "stepwise"}])
def test_what_cannot_go_step_by_step_is_refused_before_the_work(options: dict[str, Any], refused: Refused) -> None:
    net, x = _two_layers(), torch.rand(300, 1, dtype=torch.float64)
    snn = ftbc.convert(net, x, 4, "parallel-relu")
    refused(InputError, ("needs 4 steps at once", "step by step"), ftbc.evaluate, snn, (x, x[:, 0].long()), **options)
