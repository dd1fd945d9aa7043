"""Many conversions in one process, several threads, and no word with the network."""

from __future__ import annotations

import gc
import resource
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.cli.app import run
from tests.networks import INPUT_SHAPE, depthwise, residual

_MOST_GROWTH = 40 << 20


def _resident() -> int:
    """Bytes of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_does_not_grow_over_a_thousand_conversions() -> None:
    networks = [nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)).eval(), depthwise().float()]
    shapes = [(6,), INPUT_SHAPE]
    recipe = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1, batch=4),))
    begun = 0
    for count in range(1000):
        network, shape = networks[count % 2], shapes[count % 2]
        x = torch.rand(4, *shape)
        snn = ftbc.convert(network, x, 2, recipe)
        ftbc.evaluate(snn, (x, torch.zeros(4, dtype=torch.int64)), reference=network)
        if count == 200:  # what is loaded and cached once is there by now
            gc.collect()
            begun = _resident()
    gc.collect()
    assert _resident() - begun < _MOST_GROWTH, f"{(_resident() - begun) >> 20} MB more"


def test_networks_in_two_threads_do_not_mix() -> None:
    """Stepped in turns, as fast as they can, each gives what it gives alone."""
    images = [torch.randn(3, *INPUT_SHAPE, dtype=torch.float64) for _ in range(2)]
    networks = [
        ftbc.convert(make(), x, 6, "mean-square") for make, x in zip((residual, depthwise), images, strict=True)
    ]
    wanted = [snn(x) for snn, x in zip(networks, images, strict=True)]
    found: list[list[Tensor]] = [[], []]

    def work(place: int) -> None:
        snn, x = networks[place], images[place]
        for _ in range(5):
            snn.reset()
            found[place].append(torch.stack([snn.step(x) for _ in range(6)]))
            found[place].append(snn(x))

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own, alone in zip(found, wanted, strict=True):
        assert len(own) == 10 and all(torch.allclose(result, alone, rtol=1e-12, atol=1e-12) for result in own)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of the network, which is not there."""
    asked: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> None:
        asked.append(arguments)
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


def test_nothing_talks_to_the_network_unasked(
    opened: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ann, (calibration, test) = ftbc.zoo.load("resnet20-cifar10"), ftbc.data.load("cifar10-sample", 8, 10)
    snn = ftbc.convert(ann, calibration, 1, "mean-square")
    ftbc.evaluate(snn, test, reference=ann)
    snn.save(tmp_path / "net.snn")
    ftbc.load(tmp_path / "net.snn")
    assert run(["methods"]) == 0
    assert run(["check", "resnet20-cifar10"]) == 0
    assert not opened
    assert run(["data", "get", "cifar10", "--to", str(tmp_path / "data")]) == 2, "only a download asks"
    assert opened and "there is no network" in capsys.readouterr().err
