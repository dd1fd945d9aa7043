"""ONNX models in onnxruntime: the same spikes, the same outputs, for any number of images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.errors import UnsupportedError
from ftbc.export.onnx_sheet import OPSET

from ..conftest import Refused
from .networks import NETWORKS, RECIPE, STEPS, converted

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
KEEP_POOLS = ftbc.recipe("ftbc", calibrate=RECIPE.calibrate)


def single(name: str, recipe: ftbc.Recipe = KEEP_POOLS) -> tuple[ftbc.SpikingNetwork, Tensor]:
    """A network of the table in whole numbers, whose sums no order of addition can change, in single precision."""
    snn, images = converted(name, recipe)
    snn, images = snn.float(), images.float()
    return snn, images


def session(path: Path):
    return runtime.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("all_at_once", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_spikes_and_outputs_are_the_same(name: str, all_at_once: bool, tmp_path: Path) -> None:
    snn, images = single(name)
    report = ftbc.export.onnx(snn, tmp_path / "net.onnx", all_at_once=all_at_once, images=images)
    assert report.agreement.equal and report.agreement.largest < 1e-5 and report.agreement.spikes > 100, report
    assert report.opset == OPSET and f"opset {OPSET}" in str(report)
    model = onnx.load(tmp_path / "net.onnx")
    assert model.opset_import[0].version == OPSET


@pytest.mark.parametrize("name", ["residual", "pooled", "hidden"])
def test_the_model_of_all_steps_is_the_network(name: str, tmp_path: Path) -> None:
    """Outside of our own code, and for numbers of images that it has not seen."""
    snn, images = single(name)
    ftbc.export.onnx(snn, tmp_path / "net.onnx", all_at_once=True)
    run = session(tmp_path / "net.onnx")
    assert [entry.name for entry in run.get_inputs()] == ["x"] and [entry.name for entry in run.get_outputs()] == [
        "mean"
    ]
    for count in (1, 2, 5):
        (found,) = run.run(None, {"x": images[:count].numpy()})
        assert found.shape == (STEPS, count, *snn.graph.shape(snn.graph.output))
        assert np.allclose(found, snn(images[:count]).numpy(), atol=1e-5)


@pytest.mark.parametrize("name", ["residual", "pooled"])
def test_the_model_of_one_step_by_hand(name: str, tmp_path: Path) -> None:
    """As its description says: begin with zeros and feed back what comes out."""
    snn, images = single(name)
    ftbc.export.onnx(snn, tmp_path / "net.onnx")
    run = session(tmp_path / "net.onnx")
    for count in (1, 3):
        x = images[:count].numpy()
        shapes = {entry.name: [count if size == "N" else size for size in entry.shape] for entry in run.get_inputs()}
        state = {name: np.zeros(shape, np.float32) for name, shape in shapes.items() if name not in ("x", "t")}
        state["t"] = np.zeros(1, np.int64)
        total = 0.0
        for t, wanted in enumerate(snn(images[:count]), 1):
            y, *after = run.run(None, {"x": x, **state})
            names = [entry.name.removesuffix("_next") for entry in run.get_outputs()][1:]
            state = dict(zip(names, after, strict=True))
            total = total + y
            assert int(state["t"][0]) == t and np.allclose(total / t, wanted.numpy(), atol=1e-5)


def test_readout_and_head_are_in_the_model_of_all_steps(tmp_path: Path) -> None:
    snn, images = single("hidden")
    weights = torch.rand(STEPS - 2, STEPS).tril(2)
    weighing = ftbc.SpikingNetwork(snn.graph, STEPS - 2, snn.recipe, snn.head, readout=weights)
    ftbc.export.onnx(weighing, tmp_path / "net.onnx", all_at_once=True)
    (found,) = session(tmp_path / "net.onnx").run(None, {"x": images.numpy()})
    assert np.allclose(found, weighing(images).numpy(), atol=1e-5) and np.allclose(found.sum(-1), 1, atol=1e-5)
    report = ftbc.export.onnx(weighing, tmp_path / "step.onnx")
    assert len(report.notes) == 2
    props = {entry.key: entry.value for entry in onnx.load(tmp_path / "step.onnx").metadata_props}
    assert np.allclose(json.loads(props["ftbc"])["readout"], weights.numpy())


def test_rounded_networks_are_equal_to_the_last_bit(tmp_path: Path) -> None:
    snn, images = single("residual")
    whole = snn.rounded(images)
    report = ftbc.export.onnx(whole, tmp_path / "net.onnx", images=images)
    assert report.agreement.equal and report.agreement.largest == 0


def test_per_neuron_constants(tmp_path: Path) -> None:
    snn, images = single("plain")
    neuron = snn.graph[snn.layers()[0].name].module
    shape = snn.layers()[0].shape
    neuron.set(
        neuron.threshold.view(-1, 1, 1) * (1 + 0.1 * torch.rand(shape)),
        torch.rand(shape),
        0.1 * torch.randn(STEPS, *shape),
    )
    for all_at_once in (False, True):
        assert ftbc.export.onnx(snn, tmp_path / "net.onnx", all_at_once=all_at_once, images=images).agreement.equal


class _Rare(nn.Module):
    """One operation between two layers of neurons."""

    def __init__(self, operation: nn.Module) -> None:
        super().__init__()
        self.first, self.operation = nn.Conv2d(3, 8, 3, padding=1), operation
        self.last = nn.LazyConv2d(4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.operation(F.relu(self.first(x)))))


OPERATIONS = {
    "transposed convolution": nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
    "reflecting convolution": nn.Conv2d(8, 6, 3, padding=1, padding_mode="reflect"),
    "same padding": nn.Conv2d(8, 6, 4, padding="same"),
    "dilated": nn.Conv2d(8, 6, 3, dilation=2),
    "linear over the last dimension": nn.Linear(8, 5),
    "nearest": nn.Upsample(scale_factor=2.0),
    "bilinear": nn.Upsample(scale_factor=2.0, mode="bilinear"),
    "bilinear with corners": nn.Upsample(scale_factor=3.0, mode="bilinear", align_corners=True),
    "pixel shuffle": nn.PixelShuffle(2),
    "pixel unshuffle": nn.PixelUnshuffle(2),
    "channel shuffle": nn.ChannelShuffle(4),
    "average without its border": nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "average of another divisor": nn.AvgPool2d(2, divisor_override=3),
    "adaptive average": nn.AdaptiveAvgPool2d(4),
    "max-pool with dilation": nn.MaxPool2d(3, 1, 1, dilation=2),
    "adaptive max": nn.AdaptiveMaxPool2d((4, 2)),
    "reflecting pad": nn.ReflectionPad2d((1, 2, 0, 1)),
    "replicating pad": nn.ReplicationPad2d(1),
    "constant pad": nn.ConstantPad2d((1, 0, 2, 0), 0.5),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str, tmp_path: Path) -> None:
    model, images = _Rare(OPERATIONS[name]), torch.rand(4, 3, 8, 8)
    model(images)
    snn = ftbc.convert(model.eval(), images, 3, KEEP_POOLS)
    report = ftbc.export.onnx(snn, tmp_path / "net.onnx", images=images)
    assert report.agreement.equal and report.agreement.largest < 1e-5, report


class _Named(nn.Module):
    """Layers with the names that the model has for its own inputs, outputs and constants."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.t_next, self.t = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3)
        self.zero, self.one, self.is_first = nn.ReLU(), nn.Conv2d(5, 6, 2), nn.ReLU()
        self.mean, self.y = nn.Flatten(), nn.Linear(54, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.is_first(self.one(self.zero(self.t(self.t_next(self.x(x))))))
        return self.y(self.mean(x))


@pytest.mark.parametrize("all_at_once", [False, True])
def test_layers_may_have_any_name(all_at_once: bool, tmp_path: Path) -> None:
    model, images = _Named().eval(), torch.rand(4, 3, 8, 8)
    snn = ftbc.convert(model, images, 3, KEEP_POOLS)
    report = ftbc.export.onnx(snn, tmp_path / "net.onnx", all_at_once=all_at_once, images=images)
    assert report.agreement.equal and report.agreement.largest < 1e-5, report


REFUSED = {
    "windows beyond the image": (nn.AvgPool2d(3, 2, ceil_mode=True), "ceil_mode"),
    "uneven windows": (nn.AdaptiveAvgPool2d(3), "differ in size"),
    "circular": (nn.Conv2d(8, 6, 3, padding=1, padding_mode="circular"), "circular"),
    "broken factors": (nn.Upsample(size=(12, 12)), "whole factors"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_runtimes_disagree_on_is_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    operation, words = REFUSED[name]
    model, images = _Rare(operation), torch.rand(4, 3, 8, 8)
    model(images)
    snn = ftbc.convert(model.eval(), images, 3, KEEP_POOLS)
    refused(UnsupportedError, (words, "operation"), ftbc.export.onnx, snn, tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())
