"""Whatever is wrong with a model, with data or with settings: one line that says what, and nothing is changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import ftbc
from ftbc.activation import QCFS
from ftbc.errors import FileError, FtbcError, InputError, NotFiniteError, RecipeError, TraceError, UnsupportedError

from .conftest import Refused

PLAIN = "mean-square"


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)
    ).eval()


@pytest.fixture
def images() -> Tensor:
    return torch.rand(6, 3, 4, 4)


@pytest.fixture
def snn(model: nn.Module, images: Tensor) -> ftbc.SpikingNetwork:
    return ftbc.convert(model, images, 3, PLAIN)


def everything(model: nn.Module) -> tuple[Any, ...]:
    """All that a conversion could leave behind in a model."""
    modules = [(name, id(module), module.training, set(module.__dict__)) for name, module in model.named_modules()]
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    gradients = [(name, p.requires_grad, p.grad is None) for name, p in model.named_parameters()]
    return modules, hooks, gradients


# ---- calibration images ----------------------------------------------------------------------------------


class NoIteration:
    pass


BAD_IMAGES: dict[str, tuple[type[FtbcError], str, Any]] = {
    "empty tensor": (InputError, "no images", torch.rand(0, 3, 4, 4)),
    "empty list": (InputError, "no images", []),
    "empty loader": (InputError, "no images", iter(())),
    "empty batches": (InputError, "no images", [torch.rand(0, 3, 4, 4)] * 2),
    "empty data loader": (InputError, "no images", DataLoader(TensorDataset(torch.rand(0, 3)))),
    "a number": (InputError, "single numbers", torch.tensor(1.0)),
    "numbers": (InputError, "single numbers", [torch.tensor(1.0)]),
    "no batch": (InputError, "[N, ...]", torch.rand(3)),
    "one image without batch": (FtbcError, "does not run", torch.rand(3, 4, 4)),
    "wrong channels": (FtbcError, "", torch.rand(6, 5, 4, 4)),
    "wrong size": (FtbcError, "", torch.rand(6, 3, 9, 9)),
    "images without pixels": (FtbcError, "", torch.rand(6, 3, 0, 0)),
    "mixed shapes": (InputError, "shape", [torch.rand(2, 3, 4, 4), torch.rand(2, 3, 8, 8)]),
    "a pair of images and labels": (InputError, "shape", (torch.rand(2, 3, 4, 4), torch.zeros(2))),
    "uint8": (InputError, "torch.uint8", torch.zeros(6, 3, 4, 4, dtype=torch.uint8)),
    "float64": (InputError, "torch.float64", torch.rand(6, 3, 4, 4, dtype=torch.float64)),
    "mixed types": (InputError, "torch.float64", [torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4, dtype=torch.float64)]),
    "another device": (InputError, "meta", torch.rand(6, 3, 4, 4, device="meta")),
    "mixed devices": (InputError, "meta", [torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4, device="meta")]),
    "NaN": (NotFiniteError, "NaN", torch.full((6, 3, 4, 4), torch.nan)),
    "one infinity": (NotFiniteError, "infinity", torch.rand(6, 3, 4, 4).index_fill(0, torch.tensor(5), torch.inf)),
    "None": (InputError, "NoneType", None),
    "a path": (InputError, "str", "images.npz"),
    "an array": (InputError, "ndarray", torch.rand(6, 3, 4, 4).numpy()),
    "dictionaries": (InputError, "dict", [{"image": torch.rand(2, 3, 4, 4)}]),
    "not iterable": (InputError, "NoIteration", NoIteration()),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_IMAGES)
def test_calibration_images(case: str, model: nn.Module, refused: Refused) -> None:
    kind, words, calibration = BAD_IMAGES[case]
    before, weights = everything(model), copy.deepcopy(model.state_dict())
    refused(kind, words, ftbc.convert, model, calibration, 2)
    if not isinstance(calibration, Iterator):
        refused(kind, words, ftbc.check, model, calibration)
    assert everything(model) == before
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


def test_every_form_of_images_gives_the_same_network(model: nn.Module, images: Tensor) -> None:
    def generated() -> Iterator[Tensor]:
        yield from images.split(2)

    class Unreadable:
        """A label that must not be looked at."""

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    forms = [images, [images], images.split(4), generated(), [(images, Unreadable())], [[images, None, 1]],
             DataLoader(TensorDataset(images, torch.zeros(6)), batch_size=4)]  # fmt: skip
    outputs = [ftbc.convert(model, form, 2, PLAIN)(images) for form in forms]
    assert all(torch.equal(output, outputs[0]) for output in outputs)


def test_endless_data_are_cut(model: nn.Module, images: Tensor) -> None:
    def endless() -> Iterator[Tensor]:
        while True:
            yield images.repeat(100, 1, 1, 1)

    assert ftbc.convert(model, endless(), 2, PLAIN)(images).shape == (2, 6, 5)


@pytest.mark.parametrize("count", [1, 2, 200])
def test_any_number_of_images(count: int, model: nn.Module) -> None:
    images = torch.rand(count, 3, 4, 4)
    assert torch.isfinite(ftbc.convert(model, images, 2)(images)).all()


# ---- models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thing", [None, 3, torch.relu, {"weight": torch.ones(2)}, nn.Linear], ids=lambda t: type(t).__name__
)
def test_not_a_model(thing: Any, images: Tensor, refused: Refused) -> None:
    for call in (lambda: ftbc.convert(thing, images, 2), lambda: ftbc.check(thing, images)):
        refused(InputError, ("nn.Module", type(thing).__name__), call)


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64], ids=str)
def test_reduced_precision(dtype: torch.dtype, model: nn.Module, images: Tensor, refused: Refused) -> None:
    for x in (images, images.to(dtype)):
        refused(InputError, ("0.weight", str(dtype), "model.float()"), ftbc.convert, model.to(dtype), x, 2)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", ["0.weight", "1.running_var", "4.bias"])
def test_weights_that_are_not_numbers(
    name: str, value: float, model: nn.Module, images: Tensor, refused: Refused
) -> None:
    model.state_dict()[name].view(-1)[-1] = value
    refused(NotFiniteError, f"'{name}'", ftbc.convert, model, images, 2)
    refused(NotFiniteError, f"'{name}'", ftbc.check, model, images)


@pytest.mark.parametrize("recipe", ["ftbc", "mean-square", "maximum", "percentile"])
def test_activations_that_overflow(recipe: str, model: nn.Module, images: Tensor, refused: Refused) -> None:
    hidden = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    for layer in (hidden[0], hidden[2]):
        nn.init.constant_(layer.weight, 1e30)  # type: ignore[arg-type]
    text = refused(NotFiniteError, "infinity", ftbc.convert, hidden, torch.rand(4, 5) + 0.1, 2, recipe)
    assert "'2'" in text or "'3'" in text  # the layer, or its activation


def test_a_model_without_values(model: nn.Module, images: Tensor, refused: Refused) -> None:
    refused(InputError, ("0.weight", "meta"), ftbc.convert, model.to("meta"), images, 2)
    refused(InputError, ("0.weight", "meta"), ftbc.convert, model.to("meta"), images.to("meta"), 2)
    refused(InputError, "meta", ftbc.convert, nn.ReLU(), images.to("meta"), 2)


def test_compiled_forms_of_a_model(refused: Refused) -> None:
    images = torch.rand(6, 3, 4, 4)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)).eval()
    scripted = torch.jit.script(model)
    refused(InputError, ("the model", "TorchScript"), ftbc.convert, scripted, images, 2)
    refused(InputError, ("'0'", "TorchScript"), ftbc.convert, nn.Sequential(scripted, nn.ReLU()), images, 2)
    exported = torch.export.export(model, (images,))
    refused(InputError, ("ExportedProgram", ".module()"), ftbc.convert, exported, images, 2)
    batch = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(model, (images,), dynamic_shapes=(batch,)).module()
    assert torch.equal(ftbc.convert(program, images, 2)(images), ftbc.convert(model, images, 2)(images))


def test_a_model_without_shapes(images: Tensor, refused: Refused) -> None:
    lazy = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    refused(InputError, ("0.weight", "run the model once"), ftbc.convert, lazy, images, 2)


def test_a_model_of_two_types(model: nn.Module, images: Tensor, refused: Refused) -> None:
    model[4].double()  # type: ignore[index]
    refused(InputError, ("'4.weight'", "'0.weight'", "torch.float64"), ftbc.convert, model, images, 2)


def test_a_model_that_does_not_run(images: Tensor, refused: Refused) -> None:
    class Broken(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError("first\nsecond")

    text = refused(TraceError, ("first", "test_bad_input.py:"), ftbc.convert, Broken(), images, 2)
    assert "second" not in text


def test_a_model_that_cannot_convert(images: Tensor, refused: Refused) -> None:
    gelu = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(16, 2))
    for training in (True, False):
        before = everything(gelu.train(training))
        refused(UnsupportedError, ("'1'", "GELU", "nn.ReLU"), ftbc.convert, gelu, images, 2)
        assert everything(gelu) == before
    assert not ftbc.check(gelu, images).ok


def test_a_model_without_activation(images: Tensor, refused: Refused) -> None:
    refused(UnsupportedError, "no ReLU", ftbc.convert, nn.Sequential(nn.Flatten(), nn.Linear(48, 2)), images, 2)


def test_a_successful_conversion_changes_nothing(model: nn.Module, images: Tensor) -> None:
    model.train()
    before, weights = everything(model), copy.deepcopy(model.state_dict())
    snn = ftbc.convert(model, images, 2)
    ftbc.evaluate(snn, (images, torch.zeros(6, dtype=torch.long)), reference=model)
    assert everything(model) == before
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


# ---- silent channels -------------------------------------------------------------------------------------


def activation_for(recipe: str) -> nn.Module:
    return QCFS(4, 0.5) if ftbc.recipe(recipe).facts.trained else nn.ReLU()


@pytest.mark.parametrize("recipe", list(ftbc.recipes()))
def test_a_channel_that_is_never_active(recipe: str) -> None:
    act = activation_for(recipe)
    net = nn.Sequential(nn.Linear(4, 6), act, nn.Linear(6, 6), act, nn.Linear(6, 2))
    with torch.no_grad():
        net[0].weight[2], net[0].bias[2] = -1.0, -0.5
    x = torch.rand(32, 4)
    snn = ftbc.convert(net, x, 4, recipe)
    spikes: dict[str, Tensor] = {}
    snn(x, observe=lambda node, inputs, output, *_: spikes.__setitem__(node.name, output))
    theta = snn.state_dict()["graph.1.threshold"]
    assert torch.isfinite(theta).all() and bool((theta > 0).all())
    assert not spikes["1"][:, :, 2].any() and spikes["1"].any()


@pytest.mark.parametrize("recipe", list(ftbc.recipes()))
def test_a_layer_that_is_never_active(recipe: str, tmp_path: Path) -> None:
    act = activation_for(recipe)
    net = nn.Sequential(nn.Linear(4, 6), act, nn.Linear(6, 3), act, nn.Linear(3, 2))
    with torch.no_grad():
        net[2].weight.zero_()
        net[2].bias.fill_(-1.0)
    x = torch.rand(32, 4)
    snn = ftbc.convert(net, x, 4, recipe)
    row = snn.layers()[1]
    assert row.firing_rate == 0 and row.error == 0 and 0 < row.threshold < float("inf")
    wanted = net[4].bias.detach().expand(4, 32, 2)
    torch.testing.assert_close(snn(x), wanted)
    torch.testing.assert_close(snn.with_unit_thresholds()(x), wanted)
    snn.save(tmp_path / "silent.snn")
    assert torch.equal(ftbc.load(tmp_path / "silent.snn")(x), snn(x))


# ---- settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, -1, 1.5, 2.0, True, "8", None, [8], torch.tensor(8.0)], ids=repr)
def test_steps(steps: Any, model: nn.Module, images: Tensor, refused: Refused) -> None:
    refused(RecipeError, "steps", ftbc.convert, model, images, steps)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0", 2**70], ids=repr)
def test_seeds(seed: Any, model: nn.Module, images: Tensor, refused: Refused) -> None:
    refused(RecipeError, "seed", ftbc.convert, model, images, 2, PLAIN, seed=seed)


def test_whole_numbers_of_numpy(model: nn.Module, images: Tensor, snn: ftbc.SpikingNetwork) -> None:
    found = ftbc.convert(model, images, np.int64(3), PLAIN, seed=np.int64(0))  # type: ignore[arg-type]
    assert type(found.steps) is int and torch.equal(found(images), snn(images))


def test_a_network_that_spikes_already(snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    refused(InputError, "already", ftbc.convert, snn, images, 2)


def test_an_unknown_recipe(model: nn.Module, images: Tensor, refused: Refused) -> None:
    refused(RecipeError, ("'fbtc'", "did you mean 'ftbc'"), ftbc.convert, model, images, 2, "fbtc")
    refused(RecipeError, "did you mean 'maximum'", ftbc.recipe, "maximun")
    refused(RecipeError, "did you mean", ftbc.recipe, "")


@pytest.mark.parametrize("recipe", [None, 3, ftbc.FTBC(), {"name": "ftbc"}, ["ftbc"]], ids=lambda r: type(r).__name__)
def test_a_recipe_of_another_type(recipe: Any, model: nn.Module, images: Tensor, refused: Refused) -> None:
    refused(RecipeError, type(recipe).__name__, ftbc.convert, model, images, 2, recipe)


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 0}, {"alpha": -1}, {"alpha": float("nan")}, {"alpha": float("inf")}, {"alpha": "x"}, {"alpha": None},
     {"iterations": 0}, {"iterations": 1.5}, {"iterations": "10"}, {"batch": 0}, {"batch": 2.5}, {"batches": -1},
     {"grain": "pixel"}, {"grain": 3}, {"clip": "yes"}],
    ids=str,
)  # fmt: skip
def test_settings_of_ftbc(settings: dict[str, Any], refused: Refused) -> None:
    refused(RecipeError, next(iter(settings)), lambda: ftbc.FTBC(**settings))


@pytest.mark.parametrize(
    "piece",
    [{"type": "MeanSquare", "rounding": "up"}, {"type": "MeanSquare", "grain": "pixel"},
     {"type": "Maximum", "grain": 1}, {"type": "Percentile", "percent": 0}, {"type": "Percentile", "percent": 101},
     {"type": "Percentile", "percent": "99"}, {"type": "Percentile", "percent": float("nan")},
     {"type": "Percentile", "grain": "pixel"}, {"type": "Half"}, {"type": "FTBC"}, {"type": "Median"},
     {"type": ["MeanSquare"]}, {}, "MeanSquare", None, 3],
    ids=str,
)  # fmt: skip
def test_settings_of_thresholds(piece: Any, refused: Refused) -> None:
    refused(RecipeError, "", ftbc.Recipe.from_dict, {"name": "mine", "threshold": piece})


@pytest.mark.parametrize(
    "changes",
    [{"initial": {"type": "Given", "fraction": "x"}}, {"initial": {"type": "Given"}}, {"initial": {"type": "Maximum"}},
     {"initial": {"type": "Given", "fraction": float("nan")}}, {"calibrate": [{"type": "Half"}]},
     {"calibrate": {"type": "FTBC"}}, {"calibrate": "FTBC"}, {"calibrate": 3}, {"pool": "max"}, {"pool": ["spiking"]},
     {"pool": None}, {"name": 3}, {"summary": None}, {"colour": "red"}],
    ids=str,
)  # fmt: skip
def test_settings_of_recipes(changes: dict[str, Any], refused: Refused) -> None:
    refused(RecipeError, "", ftbc.Recipe.from_dict, {"name": "mine", **changes})


def test_overrides(refused: Refused) -> None:
    refused(RecipeError, "no name", ftbc.recipe, 3)
    refused(RecipeError, "alpha", ftbc.recipe, "ftbc", alpha=0.5)
    refused(RecipeError, "calibrate", ftbc.recipe, "ftbc", calibrate=ftbc.FTBC())
    refused(RecipeError, "threshold", ftbc.recipe, "ftbc", threshold=0.5)


@pytest.mark.parametrize(
    "text",
    ["name = ", "[[[", "name = 'a'\nname = 'b'", "\x00", "threshold = 3", "threshold = []", "calibrate = 3",
     "[threshold]\ntype = 'Nothing'", "[threshold]", "[[calibrate]]\ntype = 'FTBC'\nalpha = 'big'",
     "[[calibrate]]\ntype = 'FTBC'\nalpha = nan", "colour = 'red'", "pool = 'max'", "pool = []"],
    ids=repr,
)  # fmt: skip
def test_recipe_files(text: str, tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    refused(FtbcError, "", ftbc.read_recipe, path)


def test_unreadable_recipe_files(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.toml", tmp_path, tmp_path / "bytes.toml"):
        refused(FileError, str(path), ftbc.read_recipe, path)


# ---- the spiking network ---------------------------------------------------------------------------------


BAD_INPUTS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "not a tensor": ("list", [[1.0]], {}),
    "no batch": ("[N, 3, 4, 4]", torch.rand(3, 4, 4), {}),
    "wrong channels": ("[N, 3, 4, 4]", torch.rand(2, 1, 4, 4), {}),
    "wrong size": ("[N, 3, 4, 4]", torch.rand(2, 3, 8, 8), {}),
    "time without time_first": ("[N, 3, 4, 4]", torch.rand(3, 2, 3, 4, 4), {}),
    "time_first without time": ("[T, N, 3, 4, 4]", torch.rand(2, 3, 4, 4), {"time_first": True}),
    "too many steps": ("4 steps", torch.rand(4, 2, 3, 4, 4), {"time_first": True}),
    "no steps": ("0 steps", torch.rand(0, 2, 3, 4, 4), {"time_first": True}),
    "float64": ("torch.float64", torch.rand(2, 3, 4, 4, dtype=torch.float64), {}),
    "uint8": ("torch.uint8", torch.zeros(2, 3, 4, 4, dtype=torch.uint8), {}),
    "another device": ("meta", torch.rand(2, 3, 4, 4, device="meta"), {}),
    "unknown engine": ("engine", torch.rand(2, 3, 4, 4), {"engine": "fast"}),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_inputs_of_the_network(case: str, snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    words, x, settings = BAD_INPUTS[case]
    wanted = snn(images)
    refused(InputError, words, snn, x, **settings)
    if not settings:
        refused(InputError, words, snn.step, x)
    assert torch.equal(snn(images), wanted)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_inputs_that_are_not_numbers(value: float, snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    """Spikes would make a confident answer of them."""
    images[3, 1, 2, 2] = value
    for call in (snn, snn.step, snn.predict):
        refused(NotFiniteError, "NaN or infinity", call, images)
    refused(NotFiniteError, "NaN or infinity", snn, images, engine="event")
    assert torch.isfinite(snn(torch.full_like(images, 1e37))).all()  # of which the sum alone is infinite


def test_later_steps_are_checked_as_the_first(snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    snn.step(images)
    for wrong in (torch.rand(6, 3, 8, 8), images.double(), images[:2]):
        refused(InputError, "", snn.step, wrong)


def test_stepping_past_the_end(snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    outputs = torch.stack([snn.step(images) for _ in range(3)])
    refused(InputError, ("step 4", "3 steps", "reset()"), snn.step, images)
    refused(InputError, "step 4", snn.step, images)
    snn.reset()
    assert torch.equal(snn.step(images), outputs[0])


def test_an_empty_batch(snn: ftbc.SpikingNetwork, refused: Refused) -> None:
    try:
        assert snn(torch.rand(0, 3, 4, 4)).shape == (3, 0, 5)
    except InputError as error:
        assert "image" in str(error)


# ---- evaluation ------------------------------------------------------------------------------------------


def labels(count: int = 6) -> Tensor:
    return torch.arange(count) % 5


BAD_DATA: dict[str, tuple[str, Any]] = {
    "triples": ("(images, labels)", [(torch.rand(6, 3, 4, 4), labels(), labels())]),
    "nothing": ("no images", []),
    "an empty pair": ("no images", (torch.rand(0, 3, 4, 4), labels(0))),
    "empty batches": ("no images", [(torch.rand(0, 3, 4, 4), labels(0))]),
    "None": ("(images, labels)", None),
    "a number": ("(images, labels)", 3),
    "a path": ("(images, labels)", "images.npz"),
    "fewer labels": ("labels", (torch.rand(6, 3, 4, 4), labels(5))),
    "fewer labels in a batch": ("labels", [(torch.rand(6, 3, 4, 4), labels(5))]),
    "a label for all": ("labels", [(torch.rand(6, 3, 4, 4), labels(1))]),
    "labels per class": ("labels", (torch.rand(6, 3, 4, 4), torch.rand(6, 5))),
    "labels are a list": ("labels", [(torch.rand(6, 3, 4, 4), [0] * 6)]),
    "labels are text": ("labels", [(torch.rand(6, 3, 4, 4), "abcdef")]),
    "labels are fractions": ("labels", (torch.rand(6, 3, 4, 4), torch.rand(6))),
    "wrong shape": ("[N, 3, 4, 4]", (torch.rand(6, 3, 8, 8), labels())),
    "wrong type": ("torch.float64", (torch.rand(6, 3, 4, 4).double(), labels())),
    "images are arrays": ("tensor", [(torch.rand(6, 3, 4, 4).numpy(), labels())]),
    "NaN": ("NaN", (torch.full((6, 3, 4, 4), torch.nan), labels())),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_data_to_evaluate_on(case: str, snn: ftbc.SpikingNetwork, model: nn.Module, refused: Refused) -> None:
    words, data = BAD_DATA[case]
    model.train()
    before = everything(model)
    refused(FtbcError, words, ftbc.evaluate, snn, data, reference=model)
    assert everything(model) == before


@pytest.mark.parametrize("data", [torch.rand(6, 3, 4, 4), [torch.rand(6, 3, 4, 4)]], ids=["alone", "batches"])
def test_images_without_labels_and_nothing_to_compare_with(
    data: Any, snn: ftbc.SpikingNetwork, refused: Refused
) -> None:
    refused(FtbcError, ("labels", "reference="), ftbc.evaluate, snn, data)


def test_outputs_that_are_no_scores(images: Tensor, refused: Refused) -> None:
    maps = ftbc.convert(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)), images, 2, PLAIN)
    refused(InputError, "class", ftbc.evaluate, maps, (images, labels()))


@pytest.mark.parametrize("label", [5, -1, 99])
def test_labels_of_no_class(label: int, snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    words = (str(label), "5 classes", "0 to 4")
    refused(InputError, words, ftbc.evaluate, snn, (images, torch.tensor([0, 1, 2, 3, 4, label])))


def test_a_reference_that_gives_its_outputs_in_a_tuple(
    snn: ftbc.SpikingNetwork, model: nn.Module, images: Tensor
) -> None:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> tuple[Tensor]:
            return (self.inner(x),)

    alike = [ftbc.evaluate(snn, images, reference=reference).error for reference in (Wrapped().eval(), model)]
    assert alike[0] == alike[1]


@pytest.mark.parametrize("count", [0, 2.5, True])
def test_counted_images(
    count: Any, snn: ftbc.SpikingNetwork, model: nn.Module, images: Tensor, refused: Refused
) -> None:
    refused(InputError, "counted_images", ftbc.evaluate, snn, images, reference=model, counted_images=count)


def test_a_reference_that_does_not_fit(snn: ftbc.SpikingNetwork, images: Tensor, refused: Refused) -> None:
    for reference in (nn.Linear(7, 5), nn.Sequential(nn.Flatten(), nn.Linear(48, 5)).double()):
        refused(InputError, "reference", ftbc.evaluate, snn, (images, labels()), reference=reference)
    refused(InputError, "reference", ftbc.evaluate, snn, (images, labels()), reference="resnet20")


@pytest.mark.parametrize("thing", [None, nn.Linear(2, 2), "net.snn"], ids=lambda t: type(t).__name__)
def test_not_a_spiking_network(thing: Any, images: Tensor, refused: Refused) -> None:
    refused(InputError, type(thing).__name__, ftbc.evaluate, thing, (images, labels()))


def test_evaluating_a_pair_and_batches_is_the_same(snn: ftbc.SpikingNetwork, images: Tensor) -> None:
    pair = ftbc.evaluate(snn, (images, labels()))
    batches = ftbc.evaluate(snn, list(zip(images.split(2), labels().split(2), strict=True)))
    assert pair.accuracy == batches.accuracy and pair.images == batches.images == 6
