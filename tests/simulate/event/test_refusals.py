"""What the event engine cannot do, it says: by name, in one line, and before any work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import InputError, MissingExtraError
from ftbc.simulate import ENGINES, require_engine
from tests.conftest import Refused, RunPython
from tests.test_import import blocking

from .networks import STRUCTURES, conv, sandwich
from .support import events, images, spiking

NETWORK = """
    import torch, ftbc
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 5, 1), torch.nn.ReLU(), torch.nn.Conv2d(5, 6, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(150, 3),
    )
    x = torch.randn(12, 2, 5, 5)
    snn = ftbc.convert(model, x, 4, "mean-square")
"""


def network() -> tuple[ftbc.SpikingNetwork, torch.Tensor]:
    case = sandwich(conv(5, 6))
    x = images(case.shape)
    return spiking(case.make(), x), x


def test_engines_go_by_their_names(refused: Refused) -> None:
    snn, x = network()
    for wrong in ("evnt", "", "Event", "event "):
        refused(InputError, (repr(wrong), *ENGINES), snn, x, engine=wrong)
        refused(InputError, (repr(wrong), *ENGINES), require_engine, wrong)
    for right in ENGINES:
        require_engine(right)
        assert snn(x, engine=right).shape == snn(x).shape


def test_evaluation_refuses_an_engine_before_it_runs(refused: Refused) -> None:
    """The first images are counted on another engine: without a check a wrong name would not be noticed on few."""
    x = torch.rand(4, 7)
    snn = ftbc.convert(nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3)), x, 2, "mean-square")
    data = (x, torch.zeros(4, dtype=torch.long))
    refused(InputError, ("'evnt'", *ENGINES), ftbc.evaluate, snn, data, engine="evnt")
    assert ftbc.evaluate(snn, data, engine="event").images == 4


def test_evaluation_gives_the_same_on_every_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftbc.measure.evaluate.COUNTED_IMAGES", 10)
    x = images((3, 6, 6), 30, dtype=torch.float32)
    model = nn.Sequential(conv(3, 5), nn.ReLU(), conv(5, 6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4)).eval()
    snn = ftbc.convert(model, x, 4, "mean-square").rounded(x)
    batches = [(part, labels) for part, labels in zip(x.split(10), torch.arange(30).split(10), strict=True)]
    batches = [(part, labels % 4) for part, labels in batches]
    results = [ftbc.evaluate(snn, batches, engine=engine) for engine in ENGINES]
    assert results[0] == results[1] == results[2] and snn._events, "the later images ran on events"


def test_only_the_layerwise_engine_is_observed(refused: Refused) -> None:
    snn, x = network()
    for engine in ("stepwise", "event"):
        refused(InputError, (engine, "layerwise"), snn, x, engine=engine, observe=lambda *_: None)


def test_a_network_elsewhere(refused: Refused) -> None:
    snn, x = network()
    snn(x, engine="event")
    snn.to("meta")
    refused(InputError, ("CPU", "meta"), snn, x.to("meta"), engine="event")


def test_without_numba_the_extra_is_named_and_all_else_works(run_python: RunPython) -> None:
    code = (
        blocking("numba", "llvmlite")
        + NETWORK
        + """
    from ftbc.errors import MissingExtraError
    print([layer.events for layer in snn.layers()], [layer.events for layer in snn.rounded(x).layers()])
    rounded = snn.rounded(x)
    assert torch.equal(rounded(x), rounded(x, engine="stepwise"))
    data = (x, torch.zeros(12, dtype=torch.long))
    assert ftbc.evaluate(snn, data).images == 12
    for use in (lambda: snn(x, engine="event"), lambda: ftbc.evaluate(snn, data, engine="event")):
        try:
            use()
        except MissingExtraError as error:
            print(error)
    """
    )
    result = run_python(code)
    assert not result.stderr, result.stderr
    numbers, *refusals = result.stdout.splitlines()
    assert numbers == "['dense', 'float32'] ['dense', 'int16']"
    assert len(refusals) == 2 and all("'numba'" in line and "pip install 'ftbc[fast]'" in line for line in refusals)


def test_nothing_compiled_is_imported_before_it_is_needed(run_python: RunPython) -> None:
    code = (
        "if True:"
        + NETWORK
        + """
    import sys
    snn.layers(), snn.rounded(x)
    print(*[name for name in sys.modules if name.startswith("ftbc.simulate.event.")])
    """
    )
    loaded = set(run_python(code).stdout.split())
    assert "ftbc.simulate.event.cells" in loaded
    assert not loaded & {f"ftbc.simulate.event.{name}" for name in ("vector", "kernel", "packed", "engine", "layer")}


def test_missing_extra_here_and_now(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    snn, x = network()
    refused(MissingExtraError, ("event engine", "'numba'", "ftbc[fast]"), snn, x, engine="event")
    assert events(snn) == ["dense", "float64"]


@pytest.mark.slow
def test_where_nothing_can_be_kept_on_disk_it_is_compiled_each_time(
    run_python: RunPython, environment: dict[str, str], tmp_path: Path
) -> None:
    code = (
        """if True:
    import numba.core.caching as caching

    def nowhere(self):
        raise OSError("read-only file system")

    for kind in caching.CacheImpl._locator_classes:
        kind.ensure_cache_path = nowhere
    """
        + NETWORK
        + """
    assert torch.allclose(snn(x, engine="event"), snn(x), atol=1e-5)
    print("runs")
    """
    )
    result = run_python(code)
    assert result.stdout == "runs\n" and not result.stderr, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("width", "count"), [(32, 12), (16, 12)], ids=["AVX2", "SSE"])
def test_on_processors_with_smaller_registers(
    width: int, count: int, run_python: RunPython, environment: dict[str, str], tmp_path: Path
) -> None:
    """Fewer membranes fit into the registers at once, and a block of 64 numbers in float64 does not."""
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[3])
    code = f"""if True:
    import torch
    from ftbc import vectors
    vectors.registers = lambda: ({width}, {count})
    from ftbc.simulate.event import kernel
    kernel.registers = vectors.registers
    from tests.simulate.event.networks import GROUPS, STRUCTURES, WIDTHS, WINDOWS
    from tests.simulate.event.support import assert_equal_runs, images, rounded, spiking
    torch.set_num_threads(1)
    assert not kernel.fits(vectors.Block("float64", 64), 1, 1)
    for case in (
        WIDTHS["3 to 8 channels"], WIDTHS["17 to 31 channels"], WIDTHS["65 to 100 channels"], STRUCTURES["join"],
        WINDOWS["kernel 5, stride 2, padding 2"], GROUPS["depthwise, 40 channels"], STRUCTURES["identity shortcut"],
    ):
        x = images(case.shape)
        snn = spiking(case.make(), x)
        assert_equal_runs(snn, x, gap=1e-12)
        assert_equal_runs(*rounded(snn, x))
    print("equal")
    """
    result = run_python(code)
    assert result.stdout == "equal\n" and not result.stderr, result.stderr


def test_refusals_leave_the_network_as_it_was() -> None:
    case = STRUCTURES["identity shortcut"]
    x = images(case.shape)
    snn = spiking(case.make(), x)
    wanted = snn(x, engine="event")
    for wrong in ({"engine": "evnt"}, {"engine": "event", "observe": lambda *_: None}):
        with pytest.raises(InputError):
            snn(x, **wrong)
    assert torch.equal(snn(x, engine="event"), wanted)
