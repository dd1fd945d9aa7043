"""Integers for chips: what is written is whole, small, and simulated as it stands."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import FileError, InputError, UnsupportedError
from ftbc.export.agreement import agreement, recorded
from ftbc.export.integer_file import read_integers
from ftbc.export.quantise import best_scale, integers
from ftbc.graph.ops import Affine, Synapses
from ftbc.neuron import IntegrateFire

from ..conftest import Refused
from .networks import RECIPE, STEPS, converted

KEEP_POOLS = ftbc.recipe("ftbc", calibrate=RECIPE.calibrate)
WRITABLE = ["plain", "residual", "mobile", "hidden", "waves", "pooled"]


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bits", [4, 8, 12])
@pytest.mark.parametrize("name", WRITABLE)
def test_numbers_are_whole_and_fit(name: str, bits: int, per_channel: bool) -> None:
    snn, images = converted(name, KEEP_POOLS)
    network = integers(snn, bits, images, per_channel)
    largest = 2 ** (bits - 1) - 1
    for node in network.graph:
        for part, tensor in node.module.state_dict().items():
            assert torch.equal(tensor, tensor.round()), (node.name, part)
    for node in network.graph.of_type(*Synapses, Affine):
        weight = node.module.scale if isinstance(node.module, Affine) else node.module.weight
        assert 0 < float(weight.abs().max()) <= largest, node.name
    for node in network.graph.of_type(IntegrateFire):
        assert torch.equal(node.module.threshold, network.scales[node.name].round().expand_as(node.module.threshold))


def test_more_bits_come_closer() -> None:
    snn, images = converted("residual")
    gaps = []
    for bits in (3, 6, 10, 16):
        network = integers(snn, bits, images)
        gaps.append(float((network.run(images) - snn(images)).pow(2).mean()))
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] and gaps[3] < 1e-3 * gaps[0]
    found = agreement(recorded(snn.graph, images, STEPS), integers(snn, 16, images).recorded(images))
    assert found.share > 0.99


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_single_number_as_output(per_channel: bool) -> None:
    torch.manual_seed(0)
    network, images = (
        nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0)).eval(),
        torch.rand(24, 10),
    )
    snn = ftbc.convert(network, images, 4, "maximum")
    gap = integers(snn, 16, images, per_channel).run(images) - snn(images)
    assert gap.shape == (4, 24) and float(gap.abs().max()) < 1e-2 * float(snn(images).std())


def test_the_simulation_is_integer_arithmetic() -> None:
    """A network of two layers, neuron by neuron, in Python's own integers."""
    snn, images = converted("hidden")
    network = integers(snn, 6, images)
    nodes = {node.name: node.module for node in network.graph}
    linear = [module for module in nodes.values() if isinstance(module, nn.Linear)]
    neurons = [module for module in nodes.values() if isinstance(module, IntegrateFire)]
    for image, wanted in zip(images, zip(*(out for out, _ in network.recorded(images)), strict=True), strict=True):
        pixels = [round(float(x) * network.image) for x in image]
        membranes = [[int(v) for v in n.initial.expand(m.out_features)] for n, m in zip(neurons, linear, strict=False)]
        for t in range(STEPS):
            spikes = pixels
            for layer, neuron, v in zip(linear, neurons, membranes, strict=False):
                sent = []
                for i in range(layer.out_features):
                    current = sum(int(w) * s for w, s in zip(layer.weight[i], spikes, strict=True)) + int(layer.bias[i])
                    v[i] += current + int(neuron.bias[t].expand(layer.out_features)[i])
                    theta = int(neuron.threshold.expand(layer.out_features)[i])
                    sent.append(int(v[i] >= theta))
                    v[i] -= theta * sent[-1]
                spikes = sent
            last = linear[-1]
            sums = [
                sum(int(w) * s for w, s in zip(last.weight[i], spikes, strict=True)) + int(last.bias[i])
                for i in range(last.out_features)
            ]
            assert (wanted[t] * network.output).round().tolist() == sums


@pytest.mark.parametrize("name", WRITABLE)
def test_files_come_back(name: str, tmp_path: Path) -> None:
    snn, images = converted(name, KEEP_POOLS)
    labels = torch.arange(len(images)) % 4
    report = ftbc.export.weights(snn, tmp_path / "net.npz", images, data=(images, labels))
    back, text = read_integers(tmp_path / "net.npz")
    network = integers(snn, 8, images)
    assert torch.equal(back.run(images), network.run(images)) and report.score.images == len(images)
    assert json.loads((tmp_path / "net.json").read_text()) == text and text["bits"] == 8
    assert text["accuracy"]["integers"] == report.score.others["integers"] and len(report.score.network) == STEPS
    with np.load(tmp_path / "net.npz") as arrays:
        kinds = {key: arrays[key].dtype for key in arrays.files if key.endswith(".weight")}
        assert kinds and all(kind == np.int8 for kind in kinds.values())
    assert [layer["name"] for layer in text["layers"]] == [row.name for row in snn.layers()]
    hits = (network.run(images).argmax(2) == labels).double().mean(1) * 100
    assert text["accuracy"]["integers"] == pytest.approx(hits.tolist())


def test_fan_out_is_counted(tmp_path: Path) -> None:
    snn, images = converted("plain")
    ftbc.export.weights(snn, tmp_path / "net.npz", images)
    synapses = {entry["name"]: entry for entry in json.loads((tmp_path / "net.json").read_text())["synapses"]}
    first, hidden, last = synapses.values()
    assert first["fan_out"]["largest"] == 6 * 9 and hidden["fan_out"] == {"largest": 12, "mean": 12.0}
    assert last["synapses"] == 12 * 5 and hidden["weights"] == 96 * 12


def test_what_cannot_be_integers_is_refused(refused: Refused, tmp_path: Path) -> None:
    snn, images = converted("plain")
    path = tmp_path / "net.npz"
    refused(InputError, "bits=1", ftbc.export.weights, snn, path, images, bits=1)
    refused(FileError, ".npz", ftbc.export.weights, snn, tmp_path / "net.bin", images)
    refused(InputError, "shape", ftbc.export.weights, snn, path, images[:, :2])
    before, more = converted("before")
    refused(UnsupportedError, "write ONNX", ftbc.export.weights, before, path, more)
    assert not list(tmp_path.iterdir())


def test_scales_are_the_best_of_their_range() -> None:
    """No whole number of the range makes rounded and clipped weights come closer; with few bits, clipping pays."""
    rows = torch.randn(3, 5000, dtype=torch.float64) * torch.tensor([[0.01], [0.2], [3.0]], dtype=torch.float64)
    for bits, clips in ((4, True), (12, False)):
        largest = 2 ** (bits - 1) - 1
        chosen = best_scale(rows, largest)
        for row, scale in zip(rows, chosen, strict=True):
            fits = max(1, math.floor(largest / float(row.abs().max())))
            errors = {
                tried: float(((row * tried).round().clamp(-largest, largest) / tried - row).pow(2).sum())
                for tried in (math.floor(fits * (1 + k / 10)) for k in range(41))
            }
            assert errors[int(scale)] == pytest.approx(min(errors.values()))
            assert (int(scale) > fits) == clips or fits == 1
