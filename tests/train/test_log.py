"""The log: a row an epoch, also after a kill between checkpoint and log."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftbc.train import Epoch, fit
from ftbc.train.log import read_log, write_log

from .test_classifier import NORMALISE, SETTINGS, Images, Killed, images, killed_after, network


def test_what_is_written_is_read(tmp_path: Path) -> None:
    epochs = [Epoch(1, 2.5, 10.25, 0.1, 333.3, 60.0), Epoch(2, 1 / 3, 55.5, 1e-7, 400.0)]
    write_log(tmp_path / "net.csv", epochs)
    assert read_log(tmp_path / "net.csv") == epochs
    lines = (tmp_path / "net.csv").read_text().splitlines()
    assert lines[0] == "epoch,loss,accuracy,learning_rate,images_per_second,seconds_left" and len(lines) == 3


def test_one_row_an_epoch_whatever_happens(tmp_path: Path) -> None:
    log, squares = tmp_path / "net.csv", Images(*images(), NORMALISE, "squares")

    def run(report=lambda epoch: None):
        fit(network(), squares, SETTINGS, tmp_path / "net.checkpoint", report, log=log)

    with pytest.raises(Killed):
        run(killed_after(2))
    log.unlink()  # as if the kill had come before the log was written
    run()
    rows = read_log(log)
    assert [row.epoch for row in rows] == [1, 2, 3]
    assert rows[-1].seconds_left == 0 and rows[0].seconds_left > 0
    log.unlink()
    run()
    assert read_log(log) == rows
