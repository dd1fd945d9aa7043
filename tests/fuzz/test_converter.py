"""Random networks through the whole converter: within the bound, the same in all engines, equal after saving."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ftbc
from ftbc.errors import FtbcError
from tests.fuzz.bound import clipped_and_bound
from tests.fuzz.graphs import Grown

FEW, MANY = 8, 400
STEPS = 256


def _case(seed: int) -> bool:
    """Whether the network could be converted; if so, all of the above holds."""
    model = Grown(seed).double().eval()
    x = torch.rand(3, *model.shape, dtype=torch.float64)
    said = (seed, model.said)
    try:
        snn = ftbc.convert(model, x, STEPS, "maximum")
    except FtbcError as error:
        assert len(str(error).splitlines()) == 1, said
        return False
    for images in (x, 1.5 * x - 0.3):  # also some on which activations are clipped
        means = snn(images)
        wanted, bound = clipped_and_bound(snn, images)
        steps = torch.arange(1, STEPS + 1, dtype=x.dtype).view(-1, 1, 1)
        rounding = 1e-9 * (1 + wanted.abs() + bound)
        assert bool(((means - wanted).abs() * steps <= bound + steps * rounding).all()), said
        other = snn(images, engine="stepwise")
        assert float((other - means).abs().max()) <= 1e-9 * float(means.abs().max() + 1), said
        again = snn(images[:2], engine="stepwise")  # fewer images may round otherwise, and still stay within the bound
        assert bool(((again - wanted[:2]).abs() * steps <= (bound + steps * rounding)[:, :2]).all()), said
    with tempfile.TemporaryDirectory() as folder:
        snn.save(Path(folder) / "net.snn")
        assert torch.equal(ftbc.load(Path(folder) / "net.snn")(x), snn(x)), said
    return True


def _fuzz(cases: int) -> int:
    converted = []

    @settings(max_examples=cases, deadline=None, database=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.integers(0, 2**32 - 1))
    def case(seed: int) -> None:
        converted.append(_case(seed))

    case()
    return sum(converted)


def test_random_networks() -> None:
    assert _fuzz(FEW) > FEW // 3


@pytest.mark.slow
def test_many_random_networks() -> None:
    assert _fuzz(MANY) > MANY // 3


def test_the_bound_is_not_empty() -> None:
    """On a network of one layer it is half a threshold, and no network that drops a spike would stay within it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).double()
    x = torch.rand(4, 5, dtype=torch.float64)
    snn = ftbc.convert(model, x, STEPS, "maximum")
    wanted, bound = clipped_and_bound(snn, x)
    theta = snn.graph.of_type(type(snn.graph["1"].module))[0].module.threshold
    assert torch.allclose(bound, (model[2].weight.abs() @ (theta / 2)).expand(4, 3))  # type: ignore[operator]
    assert float(((snn(x)[-1] - wanted).abs() / (bound / STEPS)).max()) > 0.1
