"""NIR files: read back they are the same network, to the last spike; and they mean the same to a reader who knows
nothing of us."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.errors import UnsupportedError
from ftbc.export import DIALECTS
from ftbc.export.agreement import agreement, recorded
from ftbc.export.clock import reach, ticks
from ftbc.export.rewrite import in_units, mean_bias
from ftbc.threshold import MeanSquare

from ..conftest import Refused
from .interpreter import Interpreter, nir
from .networks import NETWORKS, RECIPE, STEPS, converted

WRITABLE = [name for name in NETWORKS if name != "pooled"]


def written(snn: ftbc.SpikingNetwork, folder: Path, **settings: str) -> Path:
    ftbc.export.nir(snn, folder / "net.nir", **settings)
    return folder / "net.nir"


def compared(snn: ftbc.SpikingNetwork, other: ftbc.SpikingNetwork, images: Tensor):
    return agreement(recorded(snn.graph, images, snn.steps), recorded(other.graph, images, snn.steps))


# ---- there and back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [name for name, words in DIALECTS.items() if words.joins])
@pytest.mark.parametrize("name", WRITABLE)
def test_every_spike_comes_back(name: str, dialect: str, tmp_path: Path, refused: Refused) -> None:
    snn, images = converted(name)
    if name == "before" and not DIALECTS[dialect].plain:
        refused(UnsupportedError, (dialect, "pixel"), ftbc.export.nir, snn, tmp_path / "net.nir", dialect=dialect)
        assert not list(tmp_path.iterdir())
        return
    report = ftbc.export.nir(snn, tmp_path / "net.nir", dialect=dialect)
    assert report.agreement.equal and report.agreement.largest < 1e-10
    assert report.bytes == (tmp_path / "net.nir").stat().st_size and report.dialect == dialect
    back = ftbc.export.read_nir(tmp_path / "net.nir")
    found = compared(snn, back, images)
    assert found.equal and found.largest < 1e-10 and found.spikes > 100, found
    assert torch.allclose(back(images), snn(images), atol=1e-10)
    assert back.steps == snn.steps and back.recipe == snn.recipe
    assert [row.name for row in back.layers()] == [row.name for row in snn.layers()]


@pytest.mark.parametrize("dialect", [name for name, words in DIALECTS.items() if not words.joins])
def test_programs_that_cannot_join_branches(dialect: str, tmp_path: Path, refused: Refused) -> None:
    """They get chains of layers, which pass the clock on; shortcuts are refused, by the name of what joins."""
    path = tmp_path / "net.nir"
    for name in ("plain", "mobile", "hidden"):
        snn, images = converted(name)
        report = ftbc.export.nir(snn, path, dialect=dialect)
        back = ftbc.export.read_nir(path)
        assert report.agreement.equal and compared(snn, back, images).equal
        assert torch.allclose(back(images), snn(images), atol=1e-10)
        edges = nir.read(path, type_check=False).edges
        assert len({target for _, target in edges}) == len(edges)  # no node reads two values
        ftbc.export.nir(snn, path, dialect=dialect, bias="mean")
        graph = in_units(snn)
        mean_bias(graph)
        back = ftbc.export.read_nir(path)
        assert agreement(recorded(graph, images, STEPS), recorded(back.graph, images, STEPS)).equal
        path.unlink()
    snn, _ = converted("residual")
    refused(UnsupportedError, ("'add'", "shortcuts"), ftbc.export.nir, snn, path, dialect=dialect)
    refused(UnsupportedError, ("'relu_2'", "shortcuts"), ftbc.export.nir, snn, path, dialect=dialect, bias="mean")
    snn, _ = converted("waves")
    refused(UnsupportedError, "one dimension", ftbc.export.nir, snn, path, dialect=dialect)
    assert not list(tmp_path.iterdir())


def test_relays_fire_once_each(tmp_path: Path) -> None:
    """A network that was read with its clock passed on: T neurons a pixel fire, each at its own step alone."""
    snn, images = converted("mobile")
    ftbc.export.nir(snn, tmp_path / "net.nir", dialect="norse")
    back = ftbc.export.read_nir(tmp_path / "net.nir")
    relays = [name for name in back.graph.nodes if name.endswith("_clock") and name != "clock" and "_and_" not in name]
    assert len(relays) == len(snn.layers()) - 1
    for t, (_, spikes) in enumerate(recorded(back.graph, images, STEPS)):
        for name in relays:
            hour = torch.zeros(STEPS, dtype=torch.float64).index_fill_(0, torch.tensor(t), 1.0)
            assert torch.equal(spikes[name], hour.view(1, -1, 1, 1).expand_as(spikes[name]))
    back.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(images), back(images))


def test_what_comes_back_runs_on_every_engine_and_can_be_saved(tmp_path: Path) -> None:
    snn, images = converted("residual")
    back = ftbc.export.read_nir(written(snn, tmp_path))
    assert torch.equal(back(images), back(images, engine="stepwise"))
    back.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(images), back(images))


@pytest.mark.parametrize("grain", ["layer", "neuron"])
def test_thresholds_of_every_grain(grain: str, tmp_path: Path) -> None:
    recipe = ftbc.recipe("ftbc", calibrate=RECIPE.calibrate, threshold=MeanSquare(grain=grain))
    snn, images = converted("residual", recipe)
    assert compared(snn, ftbc.export.read_nir(written(snn, tmp_path)), images).equal


def test_single_precision_stays_single(tmp_path: Path) -> None:
    snn, images = converted("plain")
    snn = snn.float()
    back = ftbc.export.read_nir(written(snn, tmp_path))
    assert {tensor.dtype for tensor in back.graph.tensors()} == {torch.float32}
    assert compared(snn, back, images.float()).share > 0.999


def test_readout_head_and_extra_steps_come_back(tmp_path: Path) -> None:
    snn, images = converted("hidden")
    weights = torch.rand(STEPS - 2, STEPS, dtype=torch.float64).tril(2)
    weighing = ftbc.SpikingNetwork(snn.graph, STEPS - 2, snn.recipe, snn.head, readout=weights)
    report = ftbc.export.nir(weighing, tmp_path / "net.nir")
    back = ftbc.export.read_nir(tmp_path / "net.nir")
    assert back.extra_steps == 2 and torch.equal(back.readout, weights) and type(back.head).__name__ == "Softmax"
    assert torch.allclose(back(images), weighing(images), atol=1e-10)
    assert any("weighs its steps" in note for note in report.notes) and any("Softmax" in note for note in report.notes)


# ---- what the file says, without us ----------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITABLE)
def test_a_reader_who_knows_nothing_of_us_sees_the_same_spikes(name: str, tmp_path: Path) -> None:
    """Nodes and edges by NIR's own definitions, in numpy, with image and clock as the only input."""
    snn, images = converted(name)
    file = nir.read(written(snn, tmp_path), type_check=False)
    images = images[:2]
    clock = ticks(STEPS, len(images), snn.graph.input_shape[1:], images)
    run = Interpreter(file)
    names = {row.name for row in snn.layers()}
    for t, (output, spikes) in enumerate(recorded(snn.graph, images, STEPS)):
        found = run.step(torch.cat([images, clock[t]], 1).numpy())
        assert np.allclose(found["output"], output.numpy(), atol=1e-10)
        assert all(np.array_equal(found[layer], spikes[layer].numpy() != 0) for layer in names), t


def test_thresholds_are_one_and_spikes_come_at_them(tmp_path: Path) -> None:
    """NIR fires above a threshold: the number just below 1 is written, and nothing lies between."""
    snn, _ = converted("plain")
    nodes = nir.read(written(snn, tmp_path)).nodes.values()
    thresholds = [node.threshold for node in nodes if isinstance(node, nir.Threshold)]
    assert len(thresholds) == len(snn.layers())
    assert all(bool((theta < 1).all()) and bool((np.nextafter(theta, 2) == 1).all()) for theta in thresholds)


def test_names_with_slashes(tmp_path: Path) -> None:
    """As programs that read ONNX give them; in an HDF5 file a slash begins a group."""
    torch.manual_seed(0)
    network = nn.Sequential()
    for name, layer in (("in/Gemm", nn.Linear(6, 8)), ("in/Relu", nn.ReLU()), ("in_Gemm", nn.Linear(8, 3))):
        network.add_module(name, layer)
    images = torch.rand(12, 6)
    report = ftbc.export.nir(ftbc.convert(network.eval(), images, 4), tmp_path / "net.nir", images=images)
    assert report.agreement.share == 1


def test_the_file_type_checks_and_names_layers(tmp_path: Path) -> None:
    snn, _ = converted("residual")
    file = nir.read(written(snn, tmp_path))
    assert {row.name for row in snn.layers()} <= set(file.nodes) and "conv1" in file.nodes
    assert tuple(file.nodes["input"].input_type["input"]) == (3 + STEPS, 8, 8)


def test_the_same_network_gives_the_same_bytes_but_for_time(tmp_path: Path) -> None:
    snn, _ = converted("plain")
    one, other = (nir.read(written(snn, tmp_path)) for _ in range(2))
    assert one.edges == other.edges and list(one.nodes) == list(other.nodes)


# ---- mean bias -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "residual", "joined", "hidden", "waves", "mobile"])
def test_mean_bias_has_no_clock_and_says_what_it_loses(name: str, tmp_path: Path) -> None:
    snn, images = converted(name)
    report = ftbc.export.nir(snn, tmp_path / "net.nir", bias="mean", images=images)
    back = ftbc.export.read_nir(tmp_path / "net.nir")
    graph = in_units(snn)
    lost = mean_bias(graph)
    assert report.lost == pytest.approx(lost) and max(lost.values()) > 0
    assert not report.agreement.equal and report.checked_on == f"{len(images)} images"
    assert any("lossy" in note and max(lost, key=lost.__getitem__) in note for note in report.notes)
    assert (
        tuple(nir.read(tmp_path / "net.nir", type_check=False).nodes["input"].input_type["input"])
        == snn.graph.input_shape
    )
    assert agreement(recorded(graph, images, STEPS), recorded(back.graph, images, STEPS)).equal


# ---- geometry --------------------------------------------------------------------------------------------


class _Node:
    place = "'here'"


@pytest.mark.parametrize("length", range(1, 20))
def test_a_convolution_reaches_every_smaller_size(length: int) -> None:
    for wanted in range(1, length + 1):
        (kernel,), (stride,) = reach(_Node(), (length,), (wanted,))  # type: ignore[arg-type]
        plane = torch.ones(1, 1, length)
        weight = torch.zeros(1, 1, kernel)
        weight[0, 0, 0] = 1
        assert torch.nn.functional.conv1d(plane, weight, stride=stride).tolist() == [[[1.0] * wanted]]


def test_no_convolution_reaches_a_larger_size(refused: Refused) -> None:
    refused(UnsupportedError, ("here", "[5]", "write ONNX"), reach, _Node(), (4,), (5,))
