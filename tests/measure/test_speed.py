"""Engines beside the ANN: what is measured, on what, and what a row says."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import ftbc
from ftbc.errors import InputError, NotFiniteError
from ftbc.graph.ir import Node
from ftbc.measure import speed
from ftbc.measure.speed import ENGINES, Bench, density, folded
from ftbc.measure.timing import Spread
from ftbc.neuron import IntegrateFire
from ftbc.report.table import speed_table
from tests.conftest import Refused

IMAGES = 6


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(IMAGES, 3, 8, 8)


@pytest.fixture
def model(images: torch.Tensor) -> nn.Module:
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 4))
    network.train()(images)
    return network.eval()


def test_folded_is_the_same_network_without_batchnorm(model: nn.Module, images: torch.Tensor) -> None:
    graph = folded(model, images)
    assert not graph.of_type(nn.BatchNorm2d) and not graph.training
    assert torch.allclose(graph(images), model(images), atol=1e-5)


def test_density_counts_every_neuron_alike(model: nn.Module, images: torch.Tensor) -> None:
    snn = ftbc.convert(model, images, 3, "mean-square")
    spikes: list[torch.Tensor] = []

    def see(node: Node, inputs: list[torch.Tensor], output: torch.Tensor, start: int) -> None:
        if isinstance(node.module, IntegrateFire):
            spikes.append((output != 0).flatten())

    snn(images, observe=see)
    assert density(snn, images) == pytest.approx(float(torch.cat(spikes).double().mean()))


def test_every_engine_and_batch_has_a_row(model: nn.Module, images: torch.Tensor) -> None:
    pytest.importorskip("numba")
    seen: list[tuple[str, int, int]] = []
    bench = Bench(model, images, repeats=2, progress=lambda *entry: seen.append(entry))
    rows = bench.compare(ftbc.convert(model, images, 3, "mean-square"), batches=(4, 1))
    assert [(row.engine, row.batch) for row in rows] == [(name, batch) for name in ENGINES for batch in (4, 1)]
    for row in rows:
        assert row.steps == 3 and row.threads == 1 and row.repeats == 2 and 0 < row.density < 1
        assert row.over_ann.low <= row.over_ann.median <= row.over_ann.high and row.over_ann.low > 0
        assert row.steps_over_ann == row.over_ann * 3
        # One image at a time is compared with the ANN on one image at a time, else with its best.
        assert row.ann.batch == 1 if row.batch == 1 else row.ann.batch in (1, 4)
        assert row.ann.layout in ("plain layout", "channels last")
        data = json.loads(json.dumps(row.to_dict(), allow_nan=False))
        assert Spread.from_dict(data["over_ann"]) == row.over_ann and data["ann"]["batch"] == row.ann.batch
        assert data["steps_over_ann"] == row.steps_over_ann.to_dict()
    numbers = {row.engine: row.numbers for row in rows}
    assert numbers["layerwise"] == {} and numbers["event"] == {"dense": 1, "float32": 1}
    assert numbers["event-int16"] == {"dense": 1, "int16": 1}
    assert {what for what, _, _ in seen} == {"ANN", "T = 3"}
    table = speed_table(rows)
    assert len(table.splitlines()) == 1 + len(ENGINES) and all(name in table for name in ENGINES)
    assert all(str(row.over_ann) in table for row in rows)


def test_the_ann_is_searched_once_for_each_number_of_threads(
    model: nn.Module, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    best = speed._Ann.best
    monkeypatch.setattr(speed._Ann, "best", lambda *given: used.append(torch.get_num_threads()) or best(*given))
    bench = Bench(model, images, repeats=1, ann_batches=(2,))
    snn, before = ftbc.convert(model, images, 2, "mean-square"), torch.get_num_threads()
    for threads in (1, 2, 1):
        (row,) = bench.compare(snn, [ENGINES["layerwise"]], batches=(2,), threads=threads)
        assert row.threads == threads
    assert used == [1, 2] and torch.get_num_threads() == before


def test_more_images_than_there_are(model: nn.Module, images: torch.Tensor) -> None:
    snn = ftbc.convert(model, images, 2, "mean-square")
    rows = Bench(model, images, repeats=1).compare(snn, [ENGINES["stepwise"]], batches=(99, 1))
    assert [row.batch for row in rows] == [IMAGES, 1]
    rows = Bench(model, images[:1], repeats=1).compare(snn, [ENGINES["stepwise"]], batches=(99, 1))
    assert [(row.batch, row.ann.batch) for row in rows] == [(1, 1)]
    assert len(speed_table(rows).splitlines()) == 2


def test_a_network_without_images_has_one_layout() -> None:
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.rand(8, 4)
    rows = Bench(model, x, repeats=1).compare(ftbc.convert(model, x, 2), [ENGINES["layerwise"]])
    assert {row.ann.layout for row in rows} == {"plain layout"}


def test_bad_input(model: nn.Module, images: torch.Tensor, refused: Refused) -> None:
    snn = ftbc.convert(model, images, 2, "mean-square")
    refused(InputError, "no images", Bench, model, images[:0])
    refused(InputError, "int", Bench, model, [1, 2])
    refused(InputError, "float64", Bench, model, images.double())
    refused(InputError, "nn.Module", Bench, "model", images)
    refused(NotFiniteError, "NaN", Bench, model, images / 0)
    refused(InputError, "shape", Bench(model, images).compare, ftbc.convert(nn.ReLU(), torch.rand(4, 4), 2))
    refused(InputError, "batches", Bench(model, images).compare, snn, batches=())
    refused(InputError, "batches", Bench(model, images).compare, snn, batches=(0,))
    refused(InputError, "threads=0", Bench(model, images).compare, snn, threads=0)


def test_an_engine_without_its_extra_is_not_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert [engine.name for engine in ENGINES.values() if engine.usable] == ["layerwise", "stepwise"]


def test_beside_long_runs_the_ann_makes_several_passes(model: nn.Module, images: torch.Tensor, monkeypatch) -> None:
    passes = []
    way = speed._Ann.way
    monkeypatch.setattr(speed._Ann, "way", lambda self, b, layout, n=1: passes.append(n) or way(self, b, layout, n))
    bench = Bench(model, images, ann_batches=(IMAGES,), repeats=1)
    for steps in (2, 16):
        bench.compare(ftbc.convert(model, images, steps, "mean-square"), [ENGINES["layerwise"]], batches=(IMAGES,))
    assert passes[-1] == 4 and passes[0] == 1, "16 steps, of which a quarter"
    seen = []
    counted = way(bench.ann, 2, "plain layout", 3)
    monkeypatch.setattr(type(bench.ann.forms["plain layout"][0]), "forward", lambda self, x: seen.append(len(x)))
    counted.run()
    assert sum(seen) == 3 * IMAGES == counted.items
