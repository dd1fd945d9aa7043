"""The contract of SpikingNetwork: shapes, engines, stepping, copies."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import InputError
from ftbc.simulate import layerwise, stepwise
from ftbc.simulate.layerwise import portion
from ftbc.simulate.schedule import ENGINES
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS, residual

RECIPE = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=2),))


def _images(count: int = 9) -> torch.Tensor:
    return torch.rand(count, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("name", NETWORKS)
def test_engines_and_single_steps_agree_to_the_last_bit(name: str) -> None:
    torch.manual_seed(0)
    x = _images()
    snn = ftbc.convert(NETWORKS[name](), x, 6, RECIPE)
    outputs = snn(x)
    assert outputs.shape == (6, 9, 5)
    assert torch.equal(snn(x, engine="stepwise"), outputs)
    steps = [snn.step(x) for _ in range(6)]
    assert torch.allclose(torch.stack(steps), outputs, atol=1e-13)
    snn.reset()
    assert torch.equal(snn.step(x), steps[0])


@pytest.mark.parametrize("name", NETWORKS)
def test_input_over_time_agrees_between_engines_and_with_constant_input(name: str) -> None:
    torch.manual_seed(0)
    x = _images()
    snn = ftbc.convert(NETWORKS[name](), x, 4, RECIPE)
    assert torch.equal(snn(x.expand(4, *x.shape), time_first=True), snn(x))
    changing = torch.stack([x, x.flip(0), x * 0.5, x * 0])
    assert torch.equal(snn(changing, time_first=True), snn(changing, time_first=True, engine="stepwise"))
    assert torch.equal(snn(changing[:2], time_first=True), snn(changing, time_first=True)[:2])


def test_outputs_are_running_means_in_the_units_of_the_network() -> None:
    """With many steps and maximum thresholds the output approaches the ANN's."""
    torch.manual_seed(0)
    network, x = residual(), _images()
    snn = ftbc.convert(network, x, 512, "maximum")
    with torch.no_grad():
        wanted = network(x)
    gaps = [(snn(x)[t] - wanted).abs().max().item() for t in (3, 63, 511)]
    assert gaps[2] < gaps[1] < gaps[0]
    assert gaps[2] < 0.02 * wanted.abs().max()


@pytest.mark.parametrize(("budget", "chunk"), [(1, 1), (6 * 64 * 4 * 2, 2), (1 << 30, 5)])
def test_portions_of_images_and_time_do_not_change_the_result(budget: int, chunk: int) -> None:
    torch.manual_seed(0)
    x = _images(10)
    snn = ftbc.convert(residual(), x, 5, RECIPE)
    assert portion(snn.graph, 5, budget)[1] == chunk
    wanted = torch.stack(list(stepwise(snn.graph, x, 5)))
    assert torch.allclose(layerwise(snn.graph, x, 5, room=budget), wanted, atol=1e-13)
    changing = x * torch.linspace(0, 1, 5, dtype=x.dtype).view(-1, 1, 1, 1, 1)
    wanted = torch.stack(list(stepwise(snn.graph, changing, 5, time_first=True)))
    assert torch.allclose(layerwise(snn.graph, changing, 5, time_first=True, room=budget), wanted, atol=1e-13)


@pytest.mark.parametrize("name", NETWORKS)
def test_time_in_chunks_gives_the_same_spikes(name: str) -> None:
    torch.manual_seed(0)
    x = _images(10)
    snn = ftbc.convert(NETWORKS[name](), x, 5, RECIPE)
    one_image_one_step = layerwise(snn.graph, x, 5, room=1)
    assert torch.allclose(one_image_one_step, layerwise(snn.graph, x, 5, room=1 << 30), atol=1e-13)


def test_copies_and_state_dict_carry_everything_learnt() -> None:
    x = _images()
    snn = ftbc.convert(residual(), x, 3, RECIPE)
    wanted = snn(x)
    snn.step(x)
    twin = copy.deepcopy(snn)
    assert torch.equal(twin(x), wanted)
    blank = ftbc.convert(residual(), x, 3, "mean-square")
    blank.load_state_dict(snn.state_dict())
    assert torch.equal(blank(x), wanted)
    assert {key.rpartition(".")[2] for key in snn.state_dict()} == {"weight", "bias", "threshold", "initial"}


def test_double_and_single_precision() -> None:
    x = _images()
    for dtype in (torch.float32, torch.float64):
        snn = ftbc.convert(residual().to(dtype), x.to(dtype), 3, RECIPE)
        assert snn(x.to(dtype)).dtype == dtype
        assert {p.dtype for p in snn.state_dict().values()} == {dtype}
        with pytest.raises(InputError, match="convert the input"):
            snn(x.to(torch.float16))


def test_a_softmax_head_is_applied_to_the_average() -> None:
    torch.manual_seed(0)
    body = residual()
    x = _images()
    with_head = ftbc.convert(nn.Sequential(body, nn.Softmax(1)), x, 4, RECIPE)
    without = ftbc.convert(body, x, 4, RECIPE)
    assert torch.allclose(with_head(x), torch.softmax(without(x), 2))
    assert torch.allclose(with_head.step(x), torch.softmax(without.step(x), 1))


def test_wrong_inputs_are_refused_by_name() -> None:
    x = _images()
    snn = ftbc.convert(residual(), x, 2, RECIPE)
    for wrong, match in (
        (x[:, :2], r"\[N, 3, 8, 8\]"),
        (x[0], r"\[N, 3, 8, 8\]"),
        (x.expand(2, *x.shape), r"\[N, 3, 8, 8\]"),
    ):
        with pytest.raises(InputError, match=match):
            snn(wrong)
    with pytest.raises(InputError, match="3 steps"):
        snn(x.expand(3, *x.shape), time_first=True)
    with pytest.raises(InputError, match="engine"):
        snn(x, engine="magic")
    snn.step(x)
    snn.step(x)
    with pytest.raises(InputError, match="reset"):
        snn.step(x)


def test_training_mode_and_the_model_itself_are_left_alone() -> None:
    network, x = residual(), _images()
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    attributes = set(network.__dict__)
    ftbc.convert(network, x, 2, RECIPE)
    assert network.training and all(module.training for module in network.modules())
    assert set(network.__dict__) == attributes
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


class Shared(nn.Module):
    """Values that are read twice, or that share their memory with others."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = self.first(x).relu()
        current = self.second(x)
        both = current.relu() + current.flatten(1).relu().view_as(current)
        return (self.third(both) + both).relu().flatten(1)


def test_nothing_is_written_over_that_is_read_again() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 3, 4, 4, dtype=torch.float64)
    snn = ftbc.convert(Shared().double(), x, 4, "mean-square")
    assert torch.equal(snn(x, engine="layerwise"), snn(x, engine="stepwise"))
    changing = torch.randn(4, 3, 3, 4, 4, dtype=torch.float64)
    before = changing.clone()
    assert torch.equal(
        snn(changing, time_first=True, engine="layerwise"), snn(changing, time_first=True, engine="stepwise")
    )
    assert torch.equal(changing, before)


@pytest.mark.parametrize("recipe", ["mean-square", "differential"])
def test_several_threads_may_ask_one_network(recipe: str) -> None:
    torch.manual_seed(0)
    x = _images(32)
    snn = ftbc.convert(residual(), x, 6, recipe)
    parts = x.split(4)
    runs = (lambda part: snn(part), lambda part: snn(part, engine="stepwise"), lambda part: snn.predict(part).outputs)
    for run in runs:
        wanted = [run(part) for part in parts]
        with ThreadPoolExecutor(4) as pool:
            for _ in range(4):
                assert all(map(torch.equal, pool.map(run, parts), wanted))


def test_autocast_of_the_caller_changes_nothing() -> None:
    torch.manual_seed(0)
    ann = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    x = torch.rand(60, 8)
    snn = ftbc.convert(ann, x, 4, RECIPE)
    wanted = snn(x), snn.predict(x, until=ftbc.Confidence(0.6)).outputs, snn.step(x)
    snn.reset()
    with torch.autocast("cpu", torch.bfloat16):
        again = ftbc.convert(ann, x, 4, RECIPE)
        found = again(x), again.predict(x, until=ftbc.Confidence(0.6)).outputs, again.step(x)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.float32 and torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_refused_where_it_would_run_or_be_saved(
    dtype: torch.dtype, tmp_path: Path, refused: Refused
) -> None:
    ann, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), torch.rand(20, 8)
    snn = ftbc.convert(ann, x, 4, "maximum").to(dtype)
    for engine in ENGINES:
        refused(InputError, ("small currents", "snn.float()"), snn, x.to(dtype), engine=engine)
    refused(InputError, ("float32 nor float64", "snn.float()"), snn.save, tmp_path / "half.snn")
    assert not list(tmp_path.iterdir())


def test_networks_made_in_inference_mode_are_like_any_other(tmp_path: Path) -> None:
    ann, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), torch.rand(20, 8)
    outside = ftbc.convert(ann, x, 4, RECIPE)
    with torch.inference_mode():
        inside = ftbc.convert(ann, torch.cat([x[:10], x[10:]]), 4, RECIPE)
        inside.save(tmp_path / "net.snn")
        loaded = ftbc.load(tmp_path / "net.snn")
    for snn in (inside, loaded):
        snn.load_state_dict(outside.state_dict())
        assert torch.equal(snn(x), outside(x))
