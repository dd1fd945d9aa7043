"""How the outputs of single steps are weighed, and steps that come before those that count."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.simulate.readout import Reader, extra_steps, read, running_mean

EXTRA, STEPS = 2, 5


def _weights() -> Tensor:
    weights = torch.rand(STEPS, EXTRA + STEPS, generator=torch.Generator().manual_seed(0)).tril(EXTRA)
    weights[:, :EXTRA] = 0
    return weights / weights.sum(1, keepdim=True)


@pytest.fixture
def weighted() -> tuple[ftbc.SpikingNetwork, Tensor]:
    """A network whose first two steps count for nothing, and images."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)).eval()
    x = torch.rand(6, 1, 4, 4)
    plain = ftbc.convert(model, x, EXTRA + STEPS, "mean-square")
    return ftbc.SpikingNetwork(plain.graph, STEPS, plain.recipe, readout=_weights()).eval(), x


def test_the_written_out_mean_is_the_mean() -> None:
    outputs = torch.rand(EXTRA + STEPS, 3, 2)
    assert torch.allclose(read(outputs[EXTRA:]), read(outputs, running_mean(STEPS, EXTRA)))
    assert torch.allclose(read(outputs)[-1], outputs.mean(0))
    assert extra_steps(None) == 0 and extra_steps(running_mean(STEPS, EXTRA)) == EXTRA


@pytest.mark.parametrize("weights", [None, _weights()])
def test_step_by_step_reads_the_same(weights: Tensor | None) -> None:
    outputs = torch.rand(EXTRA + STEPS, 3, 2)
    reader = Reader(weights)
    found = [answer for answer in map(reader.add, outputs) if answer is not None]
    assert torch.allclose(torch.stack(found), read(outputs, weights))


def test_a_reader_goes_on_with_some_images() -> None:
    outputs, kept = torch.rand(EXTRA + STEPS, 3, 2), torch.tensor([2, 0])
    reader = Reader(_weights())
    for output in outputs[:4]:
        reader.add(output)
    reader.select(kept)
    found = [reader.add(output[kept]) for output in outputs[4:]][-1]
    assert found is not None and torch.allclose(found, read(outputs, _weights())[-1][kept])


def test_a_network_is_read_by_its_weights(weighted: tuple[ftbc.SpikingNetwork, Tensor]) -> None:
    snn, x = weighted
    single = snn.graph.copy()
    outputs = torch.stack(list(ftbc.simulate.stepwise(single, x, EXTRA + STEPS)))
    naive = torch.stack([sum(_weights()[t, i] * outputs[i] for i in range(EXTRA + t + 1)) for t in range(STEPS)])
    assert snn.extra_steps == EXTRA
    for found in (snn(x), snn(x, engine="stepwise"), torch.stack([snn.step(x) for _ in range(STEPS)])):
        assert torch.allclose(found, naive, atol=1e-6)
    snn.reset()
    assert torch.allclose(snn.predict(x).outputs, naive[-1], atol=1e-6)
    over_time = x.expand(EXTRA + 3, *x.shape)
    assert torch.allclose(snn(over_time, time_first=True), naive[:3], atol=1e-6)


def test_early_exit_counts_the_steps_that_are_read(weighted: tuple[ftbc.SpikingNetwork, Tensor]) -> None:
    snn, x = weighted
    rule = ftbc.Confidence(0.4)
    prediction, all_steps = snn.predict(x, until=rule), snn(x)
    assert torch.equal(prediction.steps, ftbc.simulate.steps_until(rule, all_steps))
    left_at = all_steps[prediction.steps - 1, torch.arange(len(x))]
    assert torch.allclose(prediction.outputs, left_at, atol=1e-6)


def test_the_weights_are_saved(weighted: tuple[ftbc.SpikingNetwork, Tensor], tmp_path: Path) -> None:
    snn, x = weighted
    snn.save(tmp_path / "a.snn")
    again = ftbc.load(tmp_path / "a.snn")
    assert torch.equal(again(x), snn(x)) and torch.equal(again.state_dict()["readout"], _weights())
    assert torch.allclose(snn.with_unit_thresholds()(x), snn(x), atol=1e-5)
    assert snn.rounded(x)(x).shape == snn(x).shape


def test_weights_that_do_not_fit_are_refused(weighted: tuple[ftbc.SpikingNetwork, Tensor], tmp_path: Path) -> None:
    snn, _ = weighted
    snn.readout = torch.ones(STEPS, STEPS - 1)
    snn.save(tmp_path / "a.snn")
    with pytest.raises(ftbc.errors.FileError, match="readout"):
        ftbc.load(tmp_path / "a.snn")


def test_an_evaluation_counts_extra_steps_as_work(weighted: tuple[ftbc.SpikingNetwork, Tensor]) -> None:
    snn, x = weighted
    found = ftbc.evaluate(snn, (x, torch.zeros(len(x), dtype=torch.long)))
    whole = ftbc.SpikingNetwork(snn.graph, EXTRA + STEPS, snn.recipe).eval()
    all_steps = ftbc.evaluate(whole, (x, torch.zeros(len(x), dtype=torch.long)))
    assert len(found.accuracy) == len(found.synops) == len(found.energy) == STEPS
    assert found.synops == all_steps.synops[EXTRA:] and found.energy == all_steps.energy[EXTRA:]
    assert found.firing_rate == all_steps.firing_rate


def test_without_steps_that_count_there_is_nothing_to_read(weighted: tuple[ftbc.SpikingNetwork, Tensor]) -> None:
    snn, x = weighted
    with pytest.raises(ftbc.errors.InputError, match="3 to 7"):
        snn(x.expand(EXTRA, *x.shape), time_first=True)
