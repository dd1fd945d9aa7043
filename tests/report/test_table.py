"""Tables of text: every figure stands in the row and the column that it belongs to."""

from __future__ import annotations

import re
from dataclasses import replace

import torch
from torch import nn

import ftbc
from ftbc.measure.evaluation import Evaluation
from ftbc.measure.inside import LayerInside
from ftbc.measure.speed import AnnSpeed, Speed, Spread
from ftbc.report.table import accuracy_table, energy_table, error_table, speed_table


def _evaluated() -> Evaluation:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
    x, y = torch.rand(12, 6), torch.randint(3, (12,))
    return ftbc.evaluate(ftbc.convert(network, x, 2), (x, y), reference=network)


def _speed(engine: str, batch: int, times: float) -> Speed:
    spread = Spread(times, times, times)
    return Speed(engine, 4, batch, 1, 0.1, {}, 3, spread, spread, AnnSpeed(batch, "plain layout", spread))


def test_energy_has_a_row_for_each_step_and_the_ann_last() -> None:
    found = _evaluated()
    head, *lines = energy_table(found).splitlines()[1:]
    assert re.split(r" {2,}", head.strip()) == ["t", "accuracy", *found.energies()]
    rows = [line.split() for line in lines]
    assert [row[0] for row in rows] == ["1", "2", "ANN"]
    for name, column in zip(found.energies(), list(zip(*rows, strict=True))[2:], strict=True):
        *steps, ann = column
        assert [float(cell) for cell in steps] == [float(f"{value:.4g}") for value in found.energies()[name]]
        known = found.reference_energies()
        assert ann == (f"{known[name]:.4g}" if name in known else "-")
    assert [row[1] for row in rows] == [f"{value:.2f}%" for value in (*found.accuracy, found.reference_accuracy)]
    assert energy_table(replace(found, reference_accuracy=None)).splitlines()[-1].split()[:2] == ["ANN", "-"]


def test_accuracy_without_an_ann_has_no_column_for_it() -> None:
    assert "ANN" not in accuracy_table([1], {"ftbc": {1: 50.0}}, None)


def test_errors_of_other_neurons_are_said_to_be_unknown() -> None:
    layer = LayerInside("burst", (4,), (1, 1, 1), [0.25, 0.75], None, None, [], [], [], [])
    head, row, *_ = error_table([layer]).splitlines()
    assert head.split()[0] == "layer" and row.split() == ["burst", "0.5000", *["-"] * 6]
    assert error_table([layer]).endswith("Errors are known of plain neurons alone, in the units of the ANN.")


def test_speed_has_a_line_for_each_engine_with_one_image_at_a_time_beside() -> None:
    rows = [_speed("layerwise", 64, 0.5), _speed("event", 64, 2.0), _speed("layerwise", 1, 0.25)]
    _, first, second = speed_table(rows).splitlines()
    assert first.split()[:3] == ["4", "1", "layerwise"] and second.split()[:3] == ["4", "1", "event"]
    assert str(rows[0].over_ann) in first and first.endswith(str(rows[2].over_ann)) and second.split()[-1] == "-"
    assert str(rows[1].over_ann) in second and str(rows[1].steps_over_ann) in second
    assert len(speed_table(rows[2:]).splitlines()) == 2
