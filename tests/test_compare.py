"""`ftbc.compare`: every cell is what converting and counting by hand gives, and nothing is measured twice."""

from __future__ import annotations

import json
import logging
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.data.balance import draw_balanced
from ftbc.errors import FileError, InputError, RecipeError, TraceError
from ftbc.facts import Facts
from ftbc.neuron import IntegrateFire
from ftbc.protocol import work
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, residual

QUICK = ftbc.recipe("ftbc", name="quick", calibrate=(ftbc.FTBC(iterations=2, batch=6),))
METHODS = ("mean-square", QUICK)
STEPS = (1, 2, 4)
SEEDS = (3, 5)
DRAWN, LIMIT, FULL = 12, 8, 2


@pytest.fixture
def network(pool: Tensor) -> nn.Module:
    model = residual()
    model.head.bias.data -= model(pool).mean(0)  # else it answers all images alike
    return model


@pytest.fixture
def pool() -> Tensor:
    return torch.randn(30, *INPUT_SHAPE, dtype=torch.float64)


@pytest.fixture
def exam(network: nn.Module) -> tuple[Tensor, Tensor]:
    x = torch.randn(15, *INPUT_SHAPE, dtype=torch.float64)
    y = network(x).argmax(1)
    y[0] = (y[0] + 1) % 5
    return x, y


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The conversions that a comparison makes: recipe, T and seed."""
    made: list[tuple[str, int, int]] = []
    real = work.convert

    def counted(model: Any, images: Any, steps: int, recipe: ftbc.Recipe, **named: Any) -> ftbc.SpikingNetwork:
        made.append((recipe.name, steps, named["seed"]))
        return real(model, images, steps, recipe, **named)

    monkeypatch.setattr(work, "convert", counted)
    return made


Compare = Callable[..., ftbc.Comparison]


@pytest.fixture
def compare(network: nn.Module, pool: Tensor, exam: tuple[Tensor, Tensor]) -> Compare:
    def run(recipes: Any = METHODS, steps: Any = STEPS, **named: Any) -> ftbc.Comparison:
        return ftbc.compare(network, pool, exam, recipes, steps, **{"seeds": SEEDS, "images": DRAWN, **named})

    return run


# ---- the figures -----------------------------------------------------------------------------------------


def by_hand(snn: ftbc.SpikingNetwork, x: Tensor, y: Tensor, t: int) -> dict[str, float]:
    """Accuracy, spikes, rate and additions up to step t, counted one image, layer and step after another."""
    graph = snn.graph
    right = spikes = additions = 0
    neurons = sum(torch.Size(node.shape).numel() for node in graph.of_type(IntegrateFire))
    for image, label in zip(x, y, strict=True):
        fired: dict[str, Tensor] = {}

        def see(node: Any, inputs: list[Tensor], output: Tensor, start: int, fired: Any = fired) -> None:
            for k, (read, given) in enumerate(zip(inputs[0], output, strict=True)):
                fired[node.name, start + k] = (read[0], given[0])

        out = snn(image.unsqueeze(0), observe=see)
        right += int(out[t - 1, 0].argmax()) == int(label)
        for (name, step), (read, given) in fired.items():
            if step >= t:
                continue
            module = graph[name].module
            if isinstance(module, IntegrateFire):
                spikes += int((given != 0).sum())
            elif isinstance(module, nn.Conv2d | nn.Linear) and name != "stem":
                ones = torch.nn.functional.conv2d if isinstance(module, nn.Conv2d) else None
                events = (read != 0).double()
                additions += int(events.sum()) if name == "conv1" else 0  # the identity shortcut carries them past it
                if ones is None:
                    additions += int(events.sum()) * module.out_features
                else:
                    weight = torch.ones_like(module.weight)
                    additions += int(ones(events, weight, None, module.stride, module.padding).sum())
    return {
        "accuracy": 100 * right / len(x), "spikes": spikes / len(x), "synops": additions / len(x),
        "firing_rate": spikes / len(x) / neurons / t,
    }  # fmt: skip


@pytest.mark.parametrize("protocol", ["per-t", "anytime"])
def test_every_cell_counted_by_hand(
    protocol: str, compare: Compare, network: nn.Module, pool: Tensor, exam: tuple[Tensor, Tensor]
) -> None:
    table = compare(protocol=protocol, limit=LIMIT, full_up_to=FULL)
    assert [(row.recipe, row.steps) for row in table.rows] == [(n, t) for n in ("mean-square", "quick") for t in STEPS]
    part = draw_balanced(exam[1], LIMIT, 0)
    few = (exam[0][part], exam[1][part])
    for method, row in zip([m for m in METHODS for _ in STEPS], table.rows, strict=True):
        calibrated_for = row.steps if protocol == "per-t" else max(STEPS)
        x, y = exam if row.steps <= FULL else few
        counted = []
        for seed in SEEDS:
            order = torch.randperm(len(pool), generator=torch.Generator().manual_seed(seed))[:DRAWN]
            snn = ftbc.convert(network, pool[order], calibrated_for, method, seed=seed)
            counted.append(by_hand(snn, x, y, row.steps))
        assert row.calibrated_for == calibrated_for and row.seeds == SEEDS and row.reason == ""
        assert row.accuracies == pytest.approx([cell["accuracy"] for cell in counted])
        assert row.spread == pytest.approx(statistics.stdev(cell["accuracy"] for cell in counted))
        for name in ("accuracy", "spikes", "synops", "firing_rate"):
            assert getattr(row, name) == pytest.approx(sum(cell[name] for cell in counted) / 2), name
        assert row.test_images == len(x) and row.calibration_images == DRAWN and row.extra_steps == 0
        right = int((network(x).argmax(1) == y).sum())
        assert row.ann_accuracy == table.ann[row.steps] == pytest.approx(100 * right / len(x))
        assert row.energy is not None and row.ann_energy is not None and row.energy > 0 and row.calibration_seconds > 0
    assert len({row.accuracy for row in table.rows}) > 2, "a network that shows nothing"


def test_images_are_drawn_as_data_load_draws_them(network: nn.Module) -> None:
    pixels = torch.randint(0, 256, (20, *INPUT_SHAPE), dtype=torch.uint8)
    images = ftbc.data.Images(pixels, torch.arange(20) % 5, ftbc.data.NORMALISATIONS["unit"], "noise")
    table = ftbc.compare(network.float(), images, images, "mean-square", 2, seeds=[7], images=10)
    drawn = images.subset(draw_balanced(images.labels, 10, 7))
    by_seed: Callable[[int], Any] = lambda seed: drawn  # noqa: E731
    again = ftbc.compare(network, by_seed, images, "mean-square", 2, seeds=[7])
    result = ftbc.evaluate(ftbc.convert(network, drawn, 2, "mean-square", seed=7), images, reference=network)
    for row in (table.rows[0], again.rows[0]):
        assert row.accuracy == result.accuracy[-1] and row.ann_accuracy == result.reference_accuracy
        assert row.energy == result.energy[-1] and row.calibration_images == 10 and row.spread is None
    assert table.data == "noise" and table.model == "_Residual"


def test_extra_steps_count_as_work_but_not_as_t(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is read after two steps more: at t its mean is that of steps 3 .. t + 2 of the plain one."""
    from ftbc.simulate.readout import running_mean

    real = work.convert

    def late(model: Any, images: Tensor, steps: int, recipe: ftbc.Recipe, **named: Any) -> ftbc.SpikingNetwork:
        snn = real(model, images, steps + 2, recipe, **named)
        readout = running_mean(steps, 2, images)
        return ftbc.SpikingNetwork(snn.graph, steps, recipe, snn.head, snn.measured, readout).eval()

    plain = compare("mean-square", (2, 4, 6), seeds=[0], protocol="anytime")
    monkeypatch.setattr(work, "convert", late)
    for protocol, full_up_to in (("per-t", 9), ("anytime", 9), ("anytime", 2)):
        table = compare("mean-square", (2, 4), seeds=[0], protocol=protocol, limit=15, full_up_to=full_up_to)
        assert [row.extra_steps for row in table.rows] == [2, 2] and not table.rows[0].plain
        assert "mean-square: 2 steps before the T" in str(table).splitlines()
        if protocol == "anytime":
            assert table.rows[0].spikes == pytest.approx(plain.rows[1].spikes)
            assert table.rows[0].firing_rate == pytest.approx(plain.rows[1].firing_rate)
            assert table.rows[1].synops == pytest.approx(plain.rows[2].synops)


@pytest.mark.parametrize("engine", ["stepwise", "event"])
def test_other_engines_run_the_first_steps_alone(
    engine: str, compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "event":
        pytest.importorskip("numba")
    options = {"protocol": "anytime", "limit": LIMIT, "full_up_to": FULL}
    wanted = compare("mean-square", **options)
    monkeypatch.setattr("ftbc.measure.evaluate.COUNTED_IMAGES", 1)  # others are not run by the engine that counts
    found = compare("mean-square", engine=engine, **options)
    assert [row.accuracies for row in found.rows] == [row.accuracies for row in wanted.rows]


def test_a_network_that_sees_all_steps_at_once_has_no_answer_before_the_last(
    compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IntegrateFire, "together", 2)
    table = compare(METHODS[:1], (1, 2))
    assert table.rows[1].accuracy is not None
    again = compare(METHODS[:1], 2, protocol="anytime")
    assert again.rows[0].accuracies == table.rows[1].accuracies
    with pytest.raises(RecipeError, match="2 steps at once, so that it has no answer before the last"):
        compare(METHODS[:1], (1, 2), protocol="anytime")


def test_facts_of_recipes_are_told(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts("ternary", 0, gradients=True, trained=True)
    monkeypatch.setattr(ftbc.Recipe, "facts", facts)
    table = compare("mean-square", 1)
    assert table.rows[0].levels == "ternary" and table.rows[0].needs == "gradients, training"
    assert "mean-square: ternary spikes" in str(table) and ',ternary,"gradients, training",True,' in table.to_csv()


# ---- nothing twice ---------------------------------------------------------------------------------------


def test_a_second_run_measures_nothing(compare: Compare, conversions: list[Any], tmp_path: Path) -> None:
    first = compare(results=tmp_path / "kept", limit=LIMIT, full_up_to=FULL)
    assert first.measured == len(conversions) == len(set(conversions)) == 2 * 3 * 2 and first.kept == 0
    assert [steps for _, steps, _ in conversions] == sorted(steps for _, steps, _ in conversions), "cheap first"
    assert conversions[:4] == [("mean-square", 1, 3), ("quick", 1, 3), ("mean-square", 1, 5), ("quick", 1, 5)]
    conversions.clear()
    second = compare(results=tmp_path / "kept", limit=LIMIT, full_up_to=FULL)
    assert not conversions and second.rows == first.rows and second.ann == first.ann
    assert second.kept == 12 and second.measured == 0 and str(second) == str(first)
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(names) == 12 + 2 + 1 and sum(name.startswith("ann-") for name in names) == 2 and ".lock" in names


def test_more_of_a_table_measures_only_what_is_new(compare: Compare, conversions: list[Any], tmp_path: Path) -> None:
    compare("mean-square", (1, 4), results=tmp_path)
    conversions.clear()
    grown = compare(["rmp", "mean-square"], (1, 2, 4), seeds=(3, 4, 5), results=tmp_path)
    wanted = {(name, t, seed) for name in ("rmp", "mean-square") for t in (1, 2, 4) for seed in (3, 4, 5)}
    known = {("mean-square", t, seed) for t in (1, 4) for seed in SEEDS}
    assert sorted(conversions) == sorted(wanted - known) and grown.kept == 4
    conversions.clear()
    # One network for the largest T, which the other protocol has made already; and an own name for the same recipe.
    compare(["rmp", "mean-square"], (1, 2, 4), seeds=(3, 4, 5), protocol="anytime", results=tmp_path)
    compare(ftbc.recipe("rmp", name="mine", summary="as ever"), (1, 2), seeds=(3,), results=tmp_path)
    assert not conversions


def test_a_timeless_recipe_is_converted_once_with_the_same_figures(compare: Compare, conversions: list[Any]) -> None:
    table = compare("percentile", STEPS, limit=LIMIT, full_up_to=FULL)
    assert conversions == [("percentile", 4, 3), ("percentile", 4, 5)]
    for row in table.rows:
        alone = compare("percentile", row.steps, limit=LIMIT, full_up_to=FULL).rows[0]
        assert row.calibrated_for == max(STEPS) and alone.calibrated_for == row.steps
        assert (row.accuracies, row.spikes, row.synops) == (alone.accuracies, alone.spikes, alone.synops)
        assert row.test_images == alone.test_images == (LIMIT if row.steps > FULL else 15)


def test_what_decides_a_figure_is_part_of_its_key(
    network: nn.Module, pool: Tensor, exam: tuple[Tensor, Tensor], conversions: list[Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def run(model: nn.Module = network, x: Any = pool, y: Any = exam, recipe: Any = "mean-square", **named: Any) -> int:
        conversions.clear()
        ftbc.compare(model, x, y, recipe, 2, results=tmp_path, **{"seeds": 1, "images": DRAWN, **named})
        return len(conversions)

    assert run() == 1 and run() == 0
    other = residual()
    other.load_state_dict(network.state_dict())
    assert run(other) == 0, "the same content"
    other.head.bias.data[0] += 1e-9
    assert run(other) == 1
    assert run(x=pool.flip(0)) == 1
    assert run(y=(exam[0], (exam[1] + 1) % 5)) == 1
    assert run(y=(exam[0] * 1.01, exam[1])) == 1
    assert run(recipe="maximum") == 1
    assert run(recipe=ftbc.recipe("mean-square", initial=ftbc.recipe("ftbc-cifar").initial)) == 1
    assert run(seeds=[1]) == 1 and run(images=DRAWN - 1) == 1 and run(engine="stepwise") == 1
    monkeypatch.setattr("ftbc.measure.evaluate.COUNTED_IMAGES", 7)
    assert run() == 1
    monkeypatch.setattr("ftbc.__version__", "9.9")
    assert run() == 1 and run() == 0


def _half(text: bytes) -> bytes:
    return text[: len(text) // 2]


def _other_figure(text: bytes) -> bytes:
    content = json.loads(text)
    content["result"]["accuracy"][-1] = 100.0
    return json.dumps(content).encode()


def _other_cell(text: bytes) -> bytes:
    return _resealed(text, lambda content: content["key"].update(seed=99))


def _figures_missing(text: bytes) -> bytes:
    return _resealed(text, lambda content: content["result"].pop("spikes"))


def _figures_of_words(text: bytes) -> bytes:
    return _resealed(text, lambda content: content["result"].update(accuracy=["high", "low"]))


def _resealed(text: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    from ftbc.protocol.fingerprint import of_settings

    content = json.loads(text)
    del content["checksum"]
    change(content)
    return json.dumps({**content, "checksum": of_settings(content)}).encode()


@pytest.mark.parametrize(
    "damage",
    [_half, _other_figure, _other_cell, _figures_missing, _figures_of_words, lambda text: b"", lambda text: b"[1, 2]",
     lambda text: b"\xff\x00", lambda text: b"[" * 100_000],
)  # fmt: skip
def test_a_damaged_entry_is_named_and_made_again(
    damage: Callable[[bytes], bytes], compare: Compare, conversions: list[Any], tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    first = compare("mean-square", (1, 2), results=tmp_path)
    (path,) = tmp_path.glob("t2-seed3-*.json")
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    conversions.clear()
    with caplog.at_level(logging.WARNING):
        again = compare("mean-square", (1, 2), results=tmp_path)
    assert conversions == [("mean-square", 2, 3)] and again.kept == 3 and again.measured == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert str(path) in line and "damaged" in line and line.isprintable()
    assert [row.accuracies for row in again.rows] == [row.accuracies for row in first.rows]
    assert json.loads(path.read_bytes())["result"]["accuracy"] == json.loads(sound)["result"]["accuracy"]


def test_a_damaged_accuracy_of_the_ann(compare: Compare, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = compare("mean-square", 1, results=tmp_path)
    (path,) = tmp_path.glob("ann-*.json")
    path.write_bytes(_resealed(path.read_bytes(), lambda content: content["result"].update(accuracy="high")))
    assert compare("mean-square", 1, results=tmp_path).ann == first.ann and path.name in caplog.text


def test_a_run_that_is_interrupted_keeps_what_it_has(
    compare: Compare, conversions: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compare(results=tmp_path / "whole")
    conversions.clear()
    counted = work.convert

    def stop_at_the_eighth(*args: Any, **named: Any) -> ftbc.SpikingNetwork:
        if len(conversions) == 7:
            raise KeyboardInterrupt
        return counted(*args, **named)

    monkeypatch.setattr(work, "convert", stop_at_the_eighth)
    with pytest.raises(KeyboardInterrupt):
        compare(results=tmp_path / "broken")
    part = compare(results=tmp_path / "broken", measure=False)
    assert part.kept == 7 and part.measured == 0
    assert [row.seeds for row in part.rows] == [(3, 5), (3, 5), (), (3, 5), (3,), ()]
    assert part.row("quick", 2).reason == part.row("quick", 4).reason == "not measured"
    lines = str(part).splitlines()
    assert "quick: at T = 2: not measured (1 of 2 draws)" in lines
    assert "mean-square, quick: at T = 4: not measured" in lines
    monkeypatch.setattr(work, "convert", counted)
    conversions.clear()
    ended = compare(results=tmp_path / "broken")
    assert len(conversions) == 5 and ended.kept == 7
    assert [(row.accuracies, row.synops) for row in ended.rows] == [(row.accuracies, row.synops) for row in whole.rows]


def test_figures_of_another_state_of_the_code_are_told(
    compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "states of the code" not in str(compare("mean-square", 1, results=tmp_path))
    monkeypatch.setattr("ftbc.protocol.origin.code", lambda: "another")
    table = compare("mean-square", (1, 2), results=tmp_path)
    assert "2 different states of the code" in str(table) and "another" in table.made["codes"]


def test_what_is_kept_says_where_it_comes_from(compare: Compare, tmp_path: Path) -> None:
    compare("mean-square", 2, seeds=[4], results=tmp_path, name="mine", command="ftbc compare mine")
    (path,) = tmp_path.glob("t2-seed4-*.json")
    content = json.loads(path.read_text())
    made, key = content["made"], content["key"]
    assert made["model"] == "mine" and made["command"] == "ftbc compare mine" and made["recipe"] == "mean-square"
    assert made["machine"]["versions"]["torch"] == torch.__version__ and {"commit", "code", "time"} <= made.keys()
    assert key["seed"] == 4 and key["steps"] == 2 and key["recipe"]["threshold"]["type"] == "MeanSquare"
    assert len(content["result"]["accuracy"]) == 2 and content["result"]["firing_rate"]


# ---- recipes that do not apply ---------------------------------------------------------------------------


def test_a_recipe_that_does_not_apply_is_a_row_that_says_why(compare: Compare, conversions: list[Any]) -> None:
    table = compare(["qcfs", "mean-square"], (1, 2))
    assert table.refused().keys() == {"qcfs"} and "plain ReLU" in table.refused()["qcfs"]
    for row in table.rows[:2]:
        assert row.recipe == "qcfs" and row.accuracy is None and row.seeds == () and "plain ReLU" in row.reason
        assert row.ann_accuracy is not None
    assert all(row.accuracy is not None for row in table.rows[2:])
    assert str(table).count("plain ReLU") == 1, "said once, though it is so at every T"
    assert [entry for entry in conversions if entry[0] == "qcfs"] == [("qcfs", 2, 3)]
    assert json.loads(table.to_json())["rows"][0]["accuracy"] is None


def test_no_recipe_applies(compare: Compare, refused: Refused, tmp_path: Path) -> None:
    refused(RecipeError, ("none of the recipes applies", "qcfs", "plain ReLU"), compare, "qcfs", results=tmp_path)


def test_a_network_that_does_not_convert_is_an_error_at_once(
    pool: Tensor, exam: tuple[Tensor, Tensor], refused: Refused, conversions: list[Any], tmp_path: Path
) -> None:
    small = nn.Sequential(nn.Flatten(), nn.Linear(5, 3), nn.ReLU()).double()
    refused(TraceError, "does not run", ftbc.compare, small, pool, exam, results=tmp_path / "kept")
    assert not conversions and not (tmp_path / "kept").exists()


# ---- wrong input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "kind", "words"),
    [
        ({"recipes": ["fbtc"]}, RecipeError, ("fbtc", "ftbc")),
        ({"recipes": []}, RecipeError, "no recipes"),
        ({"recipes": [3]}, RecipeError, "int"),
        ({"recipes": ["ftbc", ftbc.recipe("maximum", name="ftbc")]}, RecipeError, ("two recipes", "'ftbc'")),
        ({"steps": [0]}, InputError, "steps=0"),
        ({"steps": [True]}, InputError, "steps=True"),
        ({"steps": [1.5]}, InputError, "steps=1.5"),
        ({"steps": []}, InputError, "no steps"),
        ({"seeds": 0}, InputError, "seeds=0"),
        ({"seeds": [-1]}, InputError, "seeds=-1"),
        ({"seeds": []}, InputError, "seeds=[]"),
        ({"protocol": "per-T"}, InputError, ("per-T", "per-t", "anytime")),
        ({"limit": 5}, InputError, "full_up_to"),
        ({"full_up_to": 5}, InputError, "limit"),
        ({"limit": 99, "full_up_to": 1}, InputError, ("99", "15")),
        ({"images": 99}, InputError, ("99", "30")),
        ({"images": 0}, InputError, ("0", "30")),
        ({"engine": "evnt"}, InputError, ("evnt", "layerwise")),
        ({"measure": False}, FileError, "none of these measurements"),
    ],
    ids=str,
)
def test_wrong_settings(
    named: dict[str, Any], kind: Any, words: Any, compare: Compare, refused: Refused, conversions: list[Any],
    tmp_path: Path,
) -> None:  # fmt: skip
    refused(kind, words, compare, results=tmp_path / "kept", **named)
    assert not conversions and not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (torch.rand(3, *INPUT_SHAPE), "pair of tensors"),
        ((torch.rand(3, *INPUT_SHAPE), torch.arange(4)), "3 test images"),
        ((torch.rand(3, *INPUT_SHAPE), torch.arange(3) - 1), "from 0"),
        ((torch.rand(3, *INPUT_SHAPE), torch.rand(3)), "float32"),
        ([], "at least one"),
        ([torch.rand(3)], "pairs"),
        ([(torch.rand(2, 3), torch.arange(2)), (torch.rand(2, 4), torch.arange(2))], "do not fit together"),
    ],
    ids=["no labels", "a label too many", "negative", "no classes", "nothing", "not in pairs", "two shapes"],
)
def test_wrong_test_images(wrong: Any, words: str, network: nn.Module, pool: Tensor, refused: Refused) -> None:
    refused(InputError, words, ftbc.compare, network, pool, wrong)


def test_test_images_in_every_form(compare: Compare, network: nn.Module, pool: Tensor, exam: Any) -> None:
    pair = compare("mean-square", 2)
    batches = [(x, y) for x, y in zip(exam[0].split(7), exam[1].split(7), strict=True)]
    again = ftbc.compare(network, [pool[:20], pool[20:]], batches, "mean-square", 2, seeds=SEEDS, images=DRAWN)
    assert again.rows[0].accuracies == pair.rows[0].accuracies and again.data == "tensors"


def test_a_results_folder_that_is_none(compare: Compare, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(FileError, ("file", "not a folder"), compare, results=tmp_path / "file")
    refused(FileError, "cannot make the folder", compare, results=tmp_path / "file" / "inside")


def test_progress_covers_the_whole(compare: Compare, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def progress(what: str, done: int, total: int) -> None:
        if what == "comparing":
            told.append((done, total))

    compare(results=tmp_path, progress=progress)
    assert told[0][0] == 0 and told[-1][0] == told[-1][1] == told[0][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    told.clear()
    compare(results=tmp_path, progress=progress)
    assert not told
