"""What each command writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import ftbc
from ftbc.zoo import registry

from .conftest import Outcome

Command = Callable[..., Outcome]
Fails = Callable[..., str]
QUICK = ("--data", "squares", "--images", "16", "--recipe", "mean-square")
COMMANDS = (
    "demo", "check", "convert", "evaluate", "compare", "report", "bench", "train", "methods", "data get", "data sample",
    "export nir", "export onnx", "export weights", "export verify",
)  # fmt: skip


class Tiny(nn.Sequential):
    def __init__(self, classes: int) -> None:
        super().__init__(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, classes))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, ftbc_command: Command) -> None:
    outcome = ftbc_command(*command.split(), "--help")
    text = " ".join(outcome.out.split())
    assert outcome.status == 0 and not outcome.err
    assert f"Example: ftbc {command} " in text and "--json" in text


def test_help_lists_every_command(ftbc_command: Command) -> None:
    for arguments in ([], ["--help"]):
        outcome = ftbc_command(*arguments)
        assert outcome.status == 0 and all(command.split()[0] in outcome.out for command in COMMANDS)


def test_methods(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("methods", "--json", "methods.json")
    lines = outcome.out.splitlines()
    assert outcome.status == 0 and not outcome.err
    assert lines[0].split() == ["method", "spikes", "extra", "gradients", "trained", "stepwise"]
    for entry, line in zip(ftbc.recipes().values(), lines[1:], strict=True):
        facts = entry.facts
        needs = ["yes" if needed else "no" for needed in (facts.gradients, facts.trained, facts.steppable)]
        row = [entry.name, facts.spikes, str(facts.extra_steps), *needs]
        assert line.split()[:6] == row and line.endswith(entry.summary)
    written = json.loads((folder / "methods.json").read_text())
    assert [entry.pop("facts") for entry in written] == [asdict(entry.facts) for entry in ftbc.recipes().values()]
    assert [ftbc.Recipe.from_dict(entry) for entry in written] == list(ftbc.recipes().values())


@pytest.mark.parametrize("name", list(ftbc.recipes()))
def test_a_method_is_printed_as_a_recipe_that_reads_back(name: str, ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("methods", name, "--json", "one.json")
    (folder / "mine.toml").write_text(outcome.out)
    assert outcome.status == 0 and ftbc.read_recipe(folder / "mine.toml") == ftbc.recipe(name)
    facts = asdict(ftbc.recipe(name).facts)
    assert json.loads((folder / "one.json").read_text()) == [{**ftbc.recipe(name).to_dict(), "facts": facts}]


def test_check_of_a_good_network(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("check", "nets.py:good", "--data", "squares", "--json", "check.json")
    assert outcome.status == 0 and not outcome.err
    assert "This network converts: 2 spiking layers." in outcome.out
    report = json.loads((folder / "check.json").read_text())
    assert report["ok"] and not report["problems"]
    assert [row["becomes"] for row in report["rows"]].count("neurons") == 2
    assert {"name", "kind", "becomes", "shape", "source"} <= report["rows"][0].keys()


def test_check_says_where_few_steps_lose_most(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command(
        "check", "nets.py:good", "--data", "squares", "--steps", "2", "--images", "20", "--json", "check.json"
    )
    assert outcome.status == 0 and not outcome.err
    assert "T = 2, mean-square, in percent" in outcome.out and "Most is lost at" in outcome.out
    errors = json.loads((folder / "check.json").read_text())["errors"]
    lost = {name: e["clipping"] + e["quantisation"] + e["unevenness"] for name, e in errors.items()}
    assert len(errors) == 2 and f"Most is lost at {max(lost, key=lambda name: lost[name])}:" in outcome.out
    assert "Most is lost" not in ftbc_command("check", "nets.py:Bad", "--data", "squares", "--steps", "2").out


def test_check_of_a_bad_network(ftbc_command: Command, folder: Path) -> None:
    line = (folder / "nets.py").read_text().splitlines().index("        x = torch.sin(self.conv(x))") + 1
    outcome = ftbc_command("check", "nets.py:Bad", "--data", "squares", "--json", "check.json")
    assert outcome.status == 2 and not outcome.err
    assert f"nets.py:{line}" in outcome.out and "sin" in outcome.out
    report = json.loads((folder / "check.json").read_text())
    assert not report["ok"] and report["problems"][0]["source"] == f"nets.py:{line}"


def test_check_takes_a_single_file_of_images(ftbc_command: Command) -> None:
    assert ftbc_command("check", "nets.py:instance", "--data", "squares/squares_test.npz").status == 0


def test_evaluate_says_what_each_piece_removes(ftbc_command: Command, folder: Path) -> None:
    options = ("evaluate", "nets.py:good", "--data", "squares", "--images", "20", "--steps", "2", "--pieces")
    outcome = ftbc_command(*options, "--recipe", "snnc-lp", "--json", "pieces.json")
    assert outcome.status == 0 and "The outputs gain most by" in outcome.out
    course = json.loads((folder / "pieces.json").read_text())["results"][0]["pieces"]
    assert course[0]["piece"] == "thresholds" and len(course) > 1
    assert f"{100 * course[-1]['outputs']:.1f}" in outcome.out
    refused = ftbc_command(*options, "--snn", "net.snn")
    assert refused.status == 2 and "leave --snn out" in refused.err


def test_convert_then_evaluate(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command(
        "convert", "nets.py:good", *QUICK, "--steps", "3", "--to", "net.snn", "--json", "convert.json"
    )
    assert outcome.status == 0 and not outcome.err
    assert "2 spiking layers, T = 3, recipe mean-square: written to net.snn" in outcome.out
    snn = ftbc.load(folder / "net.snn")
    report = json.loads((folder / "convert.json").read_text())
    assert report["steps"] == snn.steps == 3 and ftbc.Recipe.from_dict(report["recipe"]) == snn.recipe
    assert [(row["name"], row["threshold"]) for row in report["layers"]] == [
        (r.name, r.threshold) for r in snn.layers()
    ]

    outcome = ftbc_command(
        "evaluate",
        "nets.py:good",
        "--snn",
        "net.snn",
        "--data",
        "squares/squares_test.npz",
        "--layers",
        "--json",
        "e.json",
    )
    assert outcome.status == 0 and not outcome.err
    assert "mean-square, T = 3" in outcome.out and "ANN" in outcome.out and "12 images" in outcome.out
    report = json.loads((folder / "e.json").read_text())
    (row,) = report["results"]
    direct = ftbc.evaluate(snn, ftbc.data.read(folder / "squares", "test"))
    assert row["accuracy"] == direct.accuracy and row["synops"] == direct.synops and row["images"] == 12
    assert row["firing_rate"] == direct.firing_rate and 0 <= row["reference_accuracy"] <= 100
    assert all(name in outcome.out for name in direct.firing_rate)
    assert "Most is lost at" in outcome.out and row["errors"].keys() == direct.firing_rate.keys()
    assert report["model"] == "nets.py:good" and row["recipe"] == snn.recipe.to_dict()


def test_evaluate_on_every_engine(ftbc_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches of four, of which the first alone is counted on another engine."""
    monkeypatch.setattr("ftbc.measure.evaluate.COUNTED_IMAGES", 1)
    find = ftbc.cli.evaluate.find_test
    monkeypatch.setattr("ftbc.cli.evaluate.find_test", lambda *arguments: find(*arguments).with_batch(4))
    rows, used = {}, []
    run = ftbc.SpikingNetwork.forward

    def forward(self: ftbc.SpikingNetwork, *arguments: object, **named: object) -> torch.Tensor:
        used.append(named.get("engine"))
        return run(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(ftbc.SpikingNetwork, "forward", forward)
    for engine in ("layerwise", "stepwise", "event"):
        used.clear()
        outcome = ftbc_command(
            "evaluate", "nets.py:good", *QUICK, "--steps", "3", "--engine", engine, "--json", "e.json"
        )
        assert outcome.status == 0 and not outcome.err and "12 images" in outcome.out
        (rows[engine],) = json.loads((folder / "e.json").read_text())["results"]
        assert used[-2:] == [engine, engine]
    accuracies = [row["accuracy"] for row in rows.values()]
    assert accuracies[0] == accuracies[1] == accuracies[2]


def test_convert_is_what_the_library_does(ftbc_command: Command, folder: Path) -> None:
    recipe = ftbc.Recipe(calibrate=(ftbc.FTBC(iterations=2, batch=8),), name="mine", summary="two iterations")
    (folder / "mine.toml").write_text(recipe.to_toml())
    options = ("--data", "squares", "--images", "16", "--recipe", "mine.toml", "--steps", "2", "--seed", "4")
    for to in ("a.snn", "b.snn"):
        assert ftbc_command("convert", "nets.py:good", *options, "--to", to).status == 0
    assert (folder / "a.snn").read_bytes() == (folder / "b.snn").read_bytes()
    from ftbc.cli.options import find_model

    images = ftbc.data.read("squares", "train", limit=16, seed=4)
    wanted = ftbc.convert(find_model("nets.py:good", None, None), images, 2, recipe, seed=4)
    x = images.tensor()
    assert torch.equal(ftbc.load(folder / "a.snn")(x), wanted(x))


def test_evaluate_several_methods_and_steps(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command(
        "evaluate", "nets.py:good", "--data", "squares", "--images", "16", "--recipe", "mean-square,maximum", "--steps",
        "1,2", "--test-images", "8", "--json", "e.json",
    )  # fmt: skip
    assert outcome.status == 0 and not outcome.err
    rows = json.loads((folder / "e.json").read_text())["results"]
    assert [(row["recipe"]["name"], row["steps"]) for row in rows] == [
        ("mean-square", 1), ("mean-square", 2), ("maximum", 1), ("maximum", 2),
    ]  # fmt: skip
    assert all(len(row["accuracy"]) == row["steps"] and row["images"] == 8 for row in rows)
    assert all(row["calibration_images"] == 16 and row["conversion_seconds"] > 0 and row["seed"] == 0 for row in rows)


def test_evaluate_a_network_that_is_no_classifier(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("evaluate", "nets.py:plane", *QUICK, "--steps", "2,4", "--json", "e.json")
    assert outcome.status == 0 and not outcome.err
    assert "error" in outcome.out and "accuracy" not in outcome.out
    rows = json.loads((folder / "e.json").read_text())["results"]
    assert [len(row["error"]) for row in rows] == [2, 4] and all(row["accuracy"] == [] for row in rows)
    outcome = ftbc_command("evaluate", "nets.py:plane", *QUICK, "--steps", "2", "--layers", "--json", "e.json")
    assert outcome.status == 0 and "Most is lost at" in outcome.out
    assert json.loads((folder / "e.json").read_text())["results"][0]["errors"]
    assert (
        "Most is lost at"
        in ftbc_command("check", "nets.py:plane", "--data", "squares", "--images", "16", "--steps", "2").out
    )
    refused = ftbc_command("evaluate", "nets.py:plane", *QUICK, "--stop", "0.9")
    assert refused.status == 2 and "score per class" in refused.err


def test_evaluate_with_early_exit(ftbc_command: Command, folder: Path) -> None:
    arguments = ("evaluate", "nets.py:good", *QUICK, "--steps", "4", "--json", "e.json")
    assert ftbc_command(*arguments).status == 0
    (plain,) = json.loads((folder / "e.json").read_text())["results"]
    outcome = ftbc_command(*arguments, "--stop", "0.3")
    assert outcome.status == 0 and not outcome.err
    (row,) = json.loads((folder / "e.json").read_text())["results"]
    ftbc_command("convert", "nets.py:good", *QUICK, "--steps", "4", "--to", "net.snn")
    test = ftbc.data.read(folder / "squares", "test")
    direct = ftbc.evaluate(ftbc.load(folder / "net.snn"), test, stop=ftbc.Confidence(0.3))
    assert row["early_exit"] == direct.to_dict()["early_exit"] and str(direct.early_exit) in outcome.out
    assert 1 < row["early_exit"]["mean_steps"] < 4, "a level that decides nothing"
    assert plain["early_exit"] is None and plain["accuracy"] == row["accuracy"]


def test_pipes_get_no_progress_bar_and_no_colours(ftbc_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    outcome = ftbc_command("evaluate", "nets.py:good", *QUICK, "--steps", "2")
    assert outcome.status == 0 and outcome.err == ""
    assert outcome.out.isascii() and "\x1b" not in outcome.out and "\r" not in outcome.out and "ANN" in outcome.out


def test_weights_of_a_network_file(ftbc_command: Command, folder: Path) -> None:
    from ftbc.cli.options import find_model

    model = find_model("nets.py:good", None, None)
    for weight in model.parameters():
        weight.data.mul_(0.5)
    torch.save({"state_dict": model.state_dict()}, folder / "half.pt")
    ftbc_command("convert", "nets.py:good", *QUICK, "--to", "whole.snn")
    outcome = ftbc_command("convert", "nets.py:good", *QUICK, "--to", "half.snn", "--weights", "half.pt")
    assert outcome.status == 0
    whole, half = load_file(folder / "whole.snn"), load_file(folder / "half.snn")
    assert torch.equal(half["0.weight"], whole["0.weight"] / 2)


def test_calibration_images_from_elsewhere(ftbc_command: Command, folder: Path) -> None:
    alone = ("--calibration", "squares/squares_train.npz", "--images", "16", "--recipe", "mean-square")
    assert ftbc_command("convert", "nets.py:good", *alone, "--to", "alone.snn").status == 0
    assert ftbc_command("convert", "nets.py:good", *QUICK, "--to", "split.snn").status == 0
    assert (folder / "alone.snn").read_bytes() == (folder / "split.snn").read_bytes()
    # The network sees both through the normalisation of --data.
    images = ftbc.data.read(folder / "squares", "train")
    ftbc.data.write_npz(folder / "other.npz", images.with_normalise(ftbc.data.NORMALISATIONS["unit"]))
    both = ("--data", "squares", "--calibration", "other.npz", "--images", "16", "--recipe", "mean-square")
    assert ftbc_command("convert", "nets.py:good", *both, "--to", "both.snn").status == 0
    assert (folder / "both.snn").read_bytes() == (folder / "split.snn").read_bytes()
    outcome = ftbc_command("convert", "nets.py:good", *both, "--normalise", "unit", "--to", "unit.snn")
    assert outcome.status == 0 and (folder / "unit.snn").read_bytes() != (folder / "split.snn").read_bytes()


def test_mirror_images(ftbc_command: Command, folder: Path) -> None:
    """The same as calibrating on both by hand; each image and its mirror image side by side."""
    assert ftbc_command("convert", "nets.py:good", *QUICK, "--mirrored", "--to", "both.snn").status == 0
    from ftbc.cli.options import find_model

    images = ftbc.data.read("squares", "train", limit=16, seed=0)
    both = torch.stack([images.tensor(), images.tensor().flip(3)], 1).flatten(0, 1)
    wanted = ftbc.convert(find_model("nets.py:good", None, None), both, 8, "mean-square", seed=0)
    assert torch.equal(ftbc.load(folder / "both.snn")(both), wanted(both))
    for command in (("evaluate", "--recipe", "mean-square"), ("compare", "--recipes", "mean-square", "--seeds", "1")):
        name, *options = command
        outcome = ftbc_command(
            name, "nets.py:good", "--data", "squares", "--images", "16", "--mirrored", *options, "--steps", "2"
        )
        assert outcome.status == 0 and "32 calibration images" in outcome.out


@pytest.mark.parametrize(("most", "mirrored", "less"), [(15, (), 15), (20, ("--mirrored",), 10)])
def test_no_images_are_left_out_silently(
    fails: Fails, monkeypatch: pytest.MonkeyPatch, most: int, mirrored: tuple[str, ...], less: int
) -> None:
    monkeypatch.setattr("ftbc.cli.options.MOST_IMAGES", most)
    said = fails("convert", "nets.py:good", *QUICK, *mirrored, "--to", "both.snn")
    asked = " with ".join(["--images 16", *mirrored])
    assert f"{asked}: a calibration takes {most} images at most; give --images {less}" in said


def test_a_file_may_bear_the_name_of_a_module(ftbc_command: Command, folder: Path) -> None:
    (folder / "json.py").write_text(
        "from torch import nn\nnet = nn.Sequential(nn.Flatten(), nn.Linear(108, 4), nn.ReLU())\n"
    )
    outcome = ftbc_command("check", "json.py:net", "--data", "squares", "--json", "check.json")
    assert outcome.status == 0 and json.loads((folder / "check.json").read_text())["ok"]
    import sys

    assert sys.modules["json"] is json and str(folder) not in sys.path


def test_train(ftbc_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._ARCHITECTURES, "tiny", registry.Architecture(Tiny, 6, "a tiny network"))
    options = ("--data", "squares", "--epochs", "1", "--batch", "8", "--json", "train.json")
    outcome = ftbc_command("train", "tiny", *options, "--to", "new/net.safetensors")
    assert outcome.status == 0 and not outcome.err, outcome
    assert "epoch   1/1" in outcome.out and "weights in new/net.safetensors" in outcome.out
    report = json.loads((folder / "train.json").read_text())
    assert report["architecture"] == "tiny" and report["settings"]["epochs"] == 1 and report["images"] == 12
    model = ftbc.zoo.load_weights(ftbc.zoo.build("tiny", classes=4), folder / "new" / "net.safetensors")
    assert model.state_dict()["1.num_batches_tracked"] == 3
    again = ftbc_command("train", "tiny", *options, "--to", "new/net.safetensors")
    assert again.status == 0 and "epoch" not in again.out  # the checkpoint holds all of it


def test_train_with_settings_and_another_activation(
    ftbc_command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "plan.toml").write_text(
        'data = "squares"\n[network]\narchitecture = "resnet20"\nwidth = 0.25\nactivation = "qcfs"\nlevels = 4\n'
        "[train]\nepochs = 3\nbatch = 8\n"
    )
    outcome = ftbc_command(
        "train", "--settings", "plan.toml", "--epochs", "2", "--levels", "2", "--to", "net.safetensors"
    )
    assert outcome.status == 0 and not outcome.err, outcome
    assert "epoch   2/2" in outcome.out and "images/s" in outcome.out and " left" in outcome.out
    resolved = (folder / "net.toml").read_text()
    assert "levels = 2" in resolved and "epochs = 2" in resolved and "classes = 4" in resolved
    assert "learning_rate = 0.1" in resolved
    assert len((folder / "net.csv").read_text().splitlines()) == 3
    assert (folder / "net.png").read_bytes().startswith(b"\x89PNG")

    # The weights say which network they belong to: width, activation and levels need not be given again.
    known = ("--data", "squares", "--images", "16", "--steps", "2")
    outcome = ftbc_command(
        "convert", "resnet20", "--weights", "net.safetensors", *known, "--recipe", "qcfs", "--to", "x.snn"
    )
    assert outcome.status == 0 and "19 spiking layers" in outcome.out, outcome
    wrong = ftbc_command("convert", "resnet56", "--weights", "net.safetensors", *known, "--to", "y.snn")
    assert wrong.status == 2 and "'resnet20'" in wrong.err


def test_finetune(ftbc_command: Command, folder: Path) -> None:
    options = ("resnet20", "--data", "squares", "--batch", "8", "--width", "0.25")
    assert ftbc_command("train", *options, "--epochs", "1", "--to", "relu.safetensors").status == 0
    outcome = ftbc_command(
        "train", *options, "--activation", "qcfs", "--levels", "4", "--finetune-from", "relu.safetensors",
        "--epochs", "1", "--learning-rate", "1e-9", "--weight-decay", "0", "--to", "qcfs.safetensors",
    )  # fmt: skip
    assert outcome.status == 0, outcome
    relu, qcfs = (ftbc.zoo.blueprint_of(folder / f"{name}.safetensors").build() for name in ("relu", "qcfs"))
    ftbc.zoo.load_weights(relu, folder / "relu.safetensors")
    ftbc.zoo.load_weights(qcfs, folder / "qcfs.safetensors")
    torch.testing.assert_close(qcfs.conv1.weight, relu.conv1.weight, rtol=0, atol=1e-6)  # it began with these
    thresholds = [module.threshold.item() for module in qcfs.modules() if isinstance(module, ftbc.activation.QCFS)]
    assert len(thresholds) == 19 and len(set(thresholds)) == 19 and 8.0 not in thresholds


def test_resume_needs_something_to_resume(ftbc_command: Command, folder: Path) -> None:
    outcome = ftbc_command("train", "resnet20", "--data", "squares", "--resume", "--to", "net.safetensors")
    assert outcome.status == 2 and "net.checkpoint" in outcome.err and "--resume" in outcome.err
    assert not (folder / "net.toml").exists()


def test_data_sample(ftbc_command: Command, folder: Path) -> None:
    (folder / "many").mkdir()
    for split in ("train", "test"):
        pixels = torch.randint(0, 256, (1000, 3, 4, 4), dtype=torch.uint8)
        images = ftbc.data.Images(pixels, torch.arange(1000) % 10, ftbc.data.NORMALISATIONS["unit"], split)
        ftbc.data.write_npz(folder / "many" / f"many_{split}.npz", images)
    outcome = ftbc_command("data", "sample", "many", "--to", "sample.npz", "--json", "sample.json")
    assert outcome.status == 0 and "written to sample.npz" in outcome.out
    assert len(ftbc.data.read_npz(folder / "sample.npz", "calibration_")) == 512
    assert json.loads((folder / "sample.json").read_text())["place"] == "sample.npz"


def test_rounded_networks_are_converted_saved_and_measured(ftbc_command: Command, folder: Path) -> None:
    pytest.importorskip("numba")
    network = ("nets.py:good", *QUICK, "--rounded", "--steps", "2")
    converted = ftbc_command("convert", *network, "--to", "whole.snn")
    assert converted.status == 0 and "int16" in converted.out
    snn = ftbc.load(folder / "whole.snn")
    assert {row.events for row in snn.layers()} == {"dense", "int16"}
    assert ftbc_command("evaluate", *network, "--engine", "event", "--json", "r.json").status == 0
    (row,) = json.loads((folder / "r.json").read_text())["results"]
    assert row["rounded"] is True and row["engine"] == "event"
    assert row["accuracy"] == ftbc.evaluate(snn, ftbc.data.read(folder / "squares", "test")).accuracy


def test_engines_and_rounding_that_make_no_sense(ftbc_command: Command, folder: Path) -> None:
    unknown = ftbc_command("evaluate", "nets.py:good", *QUICK, "--engine", "evnt")
    assert unknown.status == 2 and "layerwise, stepwise, event" in unknown.err
    ftbc_command("convert", "nets.py:good", *QUICK, "--steps", "1", "--to", "a.snn")
    saved = ftbc_command("evaluate", "nets.py:good", *QUICK, "--snn", "a.snn", "--rounded")
    assert saved.status == 2 and "--rounded belongs to the conversion" in saved.err
