"""The parts of the benchmarks that decide what is measured: networks, densities, shares of time, files, options."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import ftbc

pytest.importorskip("benchmarks", reason="not part of a source distribution")
pytest.importorskip("numba")

from benchmarks import __main__ as command
from benchmarks import engines, memory, profiles, results
from benchmarks.growth import at_density
from benchmarks.networks import mobilenet, resnet20, subjects, trained_vgg16, vgg16, wide_resnet20, with_statistics
from benchmarks.settings import Settings
from ftbc.measure.speed import density, folded
from ftbc.neuron.spiking import Spiking

QUICK = Settings(quick=True, threads=(1,), repeats=1)


@pytest.fixture
def small() -> tuple[ftbc.SpikingNetwork, nn.Module, torch.Tensor]:
    images = torch.rand(12, 3, 8, 8)
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 4)).eval()
    return ftbc.convert(model, images, 3, "mean-square"), model, images


def test_results_are_whole_or_nothing_and_every_row_says_on_what(tmp_path: Path) -> None:
    settings = Settings(to=tmp_path / "new", quick=True)
    assert results.read(settings.to, "x") is None
    path = results.write(settings, "x", [{"a": 1}, {"a": 2, "cpu": "another"}], ["left out"])
    content = results.read(settings.to, "x")
    assert path == tmp_path / "new" / "bench-x.json" and content is not None
    assert content["part"] == "x" and content["notes"] == ["left out"] and "--quick" in content["command"]
    first, second = content["rows"]
    assert first["cpu"] == content["machine"]["cpu"] and first["versions"]["torch"] == torch.__version__
    assert second["cpu"] == "another" and [row["a"] for row in content["rows"]] == [1, 2]
    with pytest.raises(ValueError, match="JSON"):
        results.write(settings, "x", [{"a": float("nan")}])
    assert json.loads(path.read_text()) == content and [p.name for p in path.parent.iterdir()] == [path.name]


def test_an_untrained_network_gets_the_statistics_of_the_images() -> None:
    model, images = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), torch.rand(100, 3, 8, 8) * 9
    out = with_statistics(model, images)(images).detach()
    assert not model.training and out.mean().abs() < 0.05 and abs(float(out.std()) - 1) < 0.05


def test_networks_say_what_they_are(tmp_path: Path) -> None:
    trained, untrained, wide = resnet20(QUICK), vgg16(QUICK), wide_resnet20(QUICK, 2)
    assert trained.weights.startswith("trained") and trained.recipe.name == "ftbc"
    assert untrained.weights.startswith("untrained") and wide.weights.startswith("untrained")
    assert wide.model.get_parameter("conv1.weight").shape[0] == 32
    torch.save(untrained.model.state_dict(), tmp_path / "vgg.pt")
    given = vgg16(Settings(quick=True, vgg=tmp_path / "vgg.pt"))
    assert given.weights == "trained"
    assert torch.equal(given.model(given.images), untrained.model(given.images))
    narrow = trained_vgg16(QUICK)
    assert narrow.weights.startswith("trained, 9") and narrow.recipe.name == "ftbc"
    assert set(trained.about()) == {"network", "weights", "pictures", "recipe"}


def test_mobilenet_takes_what_the_shared_folder_has(tmp_path: Path) -> None:
    without = mobilenet(QUICK)
    assert without.weights.startswith("untrained") and without.pictures == "random pixels"
    (tmp_path / "weights").mkdir()
    torch.save(without.model.state_dict(), tmp_path / "weights" / "mobilenet_v1_0.25_224_imagenet.pt")
    half = mobilenet(Settings(quick=True, shared=tmp_path))
    assert half.weights.startswith("trained") and half.pictures == "random pixels"
    (tmp_path / "data").mkdir()
    pixels = torch.randint(0, 256, (4, 3, 224, 224), dtype=torch.uint8)
    pictures = ftbc.data.Images(pixels, torch.arange(4), ftbc.data.NORMALISATIONS["unit"], "photographs")
    ftbc.data.write_npz(tmp_path / "data" / "imagenet_calibration_512.npz", pictures)
    whole = mobilenet(Settings(quick=True, shared=tmp_path))
    assert whole.pictures == "ImageNet" and whole.images.shape == (2, 3, 224, 224)
    assert whole.images.min() < -0.9 and whole.images.max() > 0.9, "normalised to -1 .. 1"


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
def test_density_is_what_was_asked_for(share: float, small: tuple) -> None:  # type: ignore[type-arg]
    snn, model, images = small
    made = at_density(snn, folded(model, images[:1]), images, share)
    assert density(made, images) == pytest.approx(share, abs=0.002)
    assert all(row.firing_rate == pytest.approx(share, abs=0.002) for row in made.layers()), "in every layer"
    assert torch.equal(made.graph["0"].module.weight, snn.graph["0"].module.weight)
    before = [node.module.bias.clone() for node in snn.graph if hasattr(node.module, "initial")]
    assert not any(bool(bias.any()) for bias in before), "the network itself is not changed"


@pytest.mark.parametrize("engine", [profiles.PLAIN, "layerwise", "stepwise", "event"])
def test_shares_of_the_time_add_up(engine: str, small: tuple) -> None:  # type: ignore[type-arg]
    snn, _, images = small
    from ftbc.simulate.event.packed import Packed

    unpack, forward = Packed.unpack, snn.graph["0"].module.forward
    if engine == profiles.PLAIN:
        shares = profiles._plain(snn, images).shares
    else:
        shares = (profiles._events if engine == "event" else profiles._dense)(snn, images, engine).shares
    assert sum(shares.values()) == pytest.approx(1, abs=0.02) and all(share >= 0 for share in shares.values())
    assert shares[profiles.WEIGHTS if engine != "event" else profiles.DENSE] > 0
    assert Packed.unpack is unpack and snn.graph["0"].module.forward == forward, "nothing stays watched"


def test_the_plain_way_gives_the_same_spikes(small: tuple) -> None:  # type: ignore[type-arg]
    snn, _, images = small
    graph = snn.graph.copy()
    for node in graph.of_type(Spiking):
        graph.replace_module(node.name, profiles._TorchNeuron(node.module))
    outputs = torch.stack([graph(images) for _ in range(snn.steps)])
    means = outputs.cumsum(0) / torch.arange(1, snn.steps + 1).view(-1, 1, 1)
    assert torch.allclose(means, snn(images, engine="stepwise"), atol=1e-5)


def test_a_method_within_another_is_counted_once() -> None:
    watch = profiles.Stopwatch()
    inner = watch.timed(lambda: time.sleep(0.01), "inner")
    watch.timed(lambda: inner(), "outer")()
    assert "inner" not in watch.seconds and watch.seconds["outer"] >= 0.01


@pytest.mark.skipif(not memory.FORGET.exists(), reason="needs /proc of Linux")
def test_peak_memory_sees_what_was_allocated() -> None:
    # In a process of its own, as the benchmark measures: a peak that this one has left behind could hide the growth.
    lines = ["import torch", "from benchmarks import memory", "memory.forget_peak()", "before = memory.peak()"]
    lines += ["torch.ones(64 << 20)", "print(memory.peak() - before)"]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, capture_output=True, text=True)
    assert 128 < float(done.stdout) < 384


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enginse"], "enginse"),
        (["--repeats", "0"], "--repeats"),
        (["--shared", "/no/such"], "--shared"),
        (["--vgg", "none.pt"], "--vgg"),
    ],
)
def test_bad_options_are_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 2 and words in capsys.readouterr().err.splitlines()[-1]


def test_options_reach_the_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr(command.PARTS["memory"], "run", seen.append)
    monkeypatch.setenv("FTBC_SHARED", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "memory", "--quick", "--repeats", "7"])
    command.main()
    (settings,) = seen
    assert settings.repeats == 7 and settings.quick and settings.shared == tmp_path
    assert settings.to == Path("runs/bench-quick"), "a quick look never goes where the real results are"
    assert "memory:" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["engines", "growth", "calibration", "memory", "calibration-memory", "profiles", "anns", "peers"]
)
def test_a_quick_run_of_every_part(part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the environment of the peers: then they are left out, with a word."""
    settings = Settings(to=tmp_path, quick=True, threads=(1,), repeats=1, peers=tmp_path / "none")
    command.PARTS[part].run(settings)
    content = results.read(tmp_path, part)
    assert content is not None and content["rows"]
    for row in content["rows"]:
        assert row["cpu"] and row["threads"] == 1 and row["versions"] and "steps" in row and "density" in row
        assert "n" in row or "batch" in row
    if part in ("anns", "peers"):
        assert any("left out" in note and "make peers" in note for note in content["notes"])
        assert "left out" in capsys.readouterr().out


def test_one_network_measured_anew_leaves_the_rows_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(to=tmp_path, quick=True, networks=("resnet20",))
    results.write(settings, "engines", [{"network": "VGG-16", "a": 1}, {"network": "ResNet-20", "a": 2}])
    monkeypatch.setattr(engines, "measure", lambda subject, settings: [])
    monkeypatch.setattr(engines, "speed_table", lambda found: "")
    engines.run(settings)
    content = results.read(tmp_path, "engines")
    assert content is not None and [row["network"] for row in content["rows"]] == ["VGG-16"]
    assert [subject.name for subject in subjects(settings)] == ["ResNet-20"]
