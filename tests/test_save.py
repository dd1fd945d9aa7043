"""Saved networks: equal to the last bit without the model's class, and no harm from any file."""

from __future__ import annotations

import copy
import errno
import functools
import json
import os
import pickle
import random
import resource
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import ftbc
from ftbc.atomic import replacing
from ftbc.errors import FileError

from .conftest import Refused, RunPython


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.conv, self.bn = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.output = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        return self.output(F.relu(self.bn(self.conv(x)) + x).mean((2, 3)))


class Joined(nn.Module):
    """Concatenation, depthwise convolution, ReLU6, max-pool, softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.depthwise = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = nn.Linear(16 * 16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.wide(x))
        x = torch.cat([x, F.relu(self.depthwise(x))], 1)
        return F.softmax(self.head(F.max_pool2d(x, 2).flatten(1)), 1)


class Resized(nn.Module):
    """Everything that only moves numbers, and a BatchNorm without a layer beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.conv, self.back = (
            nn.BatchNorm2d(3),
            nn.Conv2d(3, 8, 3),
            nn.ConvTranspose2d(8, 8, 2, bias=False),
        )
        self.mix = nn.Sequential(nn.Upsample(scale_factor=2), nn.PixelUnshuffle(2), nn.ChannelShuffle(4))
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv(F.pad(self.first(x), (1, 1, 1, 1))))
        x = F.relu(self.back(self.mix(x)[:, ::4])).permute(0, 1, 3, 2)[:, :4]
        return torch.tanh(self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)))


class ChannelsLast(nn.Module):
    """Wide enough for torch to add in another order when the weights lie in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.linear = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3), nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.linear(F.relu(self.conv2(F.relu(self.conv1(x)))).mean((2, 3))))
        return F.linear(x, self.linear.weight.t())


MODELS = {kind.__name__: kind for kind in (Residual, Joined, Resized, ChannelsLast)}


def converted(name: str, dtype: torch.dtype = torch.float32) -> tuple[ftbc.SpikingNetwork, Tensor]:
    snn, images = _converted(name, dtype)
    return copy.deepcopy(snn), images


@functools.cache
def _converted(name: str, dtype: torch.dtype) -> tuple[ftbc.SpikingNetwork, Tensor]:
    torch.manual_seed(1)
    model = MODELS[name]()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_var.uniform_(0.5, 2)  # type: ignore[union-attr]
            module.bias.data.uniform_(-0.5, 0.5)
    images = torch.randn(8, 3, 8, 8, dtype=dtype)
    recipe = ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=1),))
    snn = ftbc.convert(model.to(dtype).eval(), images, 3, recipe)
    if name == "ChannelsLast":
        snn.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return snn, images


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file with most kinds of operations."""
    path = tmp_path_factory.mktemp("saved") / "net.snn"
    snn, _ = converted("Joined")
    snn.save(path)
    return path


def content(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["ftbc"])
        del header["checksum"]  # what is written instead is another file
        return header, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def write(path: Path, header: Any, tensors: dict[str, Tensor]) -> Path:
    save_file(tensors, path, {"ftbc": header if isinstance(header, str) else json.dumps(header)})
    return path


# ---- equal to the last bit -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_equal_to_the_last_bit(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    plain, x = converted(name, dtype)
    for snn in (plain, plain.with_unit_thresholds()):
        snn.save(tmp_path / "net.snn")
        loaded = ftbc.load(tmp_path / "net.snn")
        assert torch.equal(loaded(x), snn(x))
        assert torch.equal(loaded(x, engine="stepwise"), snn(x, engine="stepwise"))
        assert (loaded.steps, loaded.recipe, loaded.layers()) == (snn.steps, snn.recipe, snn.layers())
        assert [node.source for node in loaded.graph] == [node.source for node in snn.graph]
        assert not loaded.training and not any(p.requires_grad for p in loaded.parameters())
        mine, theirs = snn.state_dict(), loaded.state_dict()
        assert mine.keys() == theirs.keys() and all(torch.equal(mine[key], theirs[key]) for key in mine)
        # The order in memory decides in which order torch adds, and so the last bit of sums.
        assert [mine[key].stride() for key in mine] == [theirs[key].stride() for key in mine]


def test_loads_in_a_process_without_the_models_class(tmp_path: Path, run_python: RunPython) -> None:
    for name in MODELS:
        snn, x = converted(name)
        snn.save(tmp_path / f"{name}.snn")
        save_file({"x": x, "wanted": snn(x)}, tmp_path / f"{name}.safetensors")
    code = """if True:
        import sys, torch, ftbc
        from pathlib import Path
        from safetensors.torch import load_file
        torch.set_num_threads(1)
        for path in sorted(Path(sys.argv[1]).glob("*.snn")):
            known = load_file(path.with_suffix(".safetensors"))
            print(path.stem, torch.equal(ftbc.load(path)(known["x"]), known["wanted"]))
        assert not any("test_save" in name for name in sys.modules)
    """
    result = run_python(code, tmp_path)
    assert result.stdout.split() == [word for name in sorted(MODELS) for word in (name, "True")], result.stderr


def test_a_network_has_one_file(tmp_path: Path) -> None:
    snn, _ = converted("Residual")
    for name in ("first.snn", "second.snn"):
        snn.save(tmp_path / name)
    ftbc.load(tmp_path / "first.snn").save(tmp_path / "third.snn")
    first, second, third = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first == second == third


def test_a_network_that_is_being_stepped_is_saved_at_rest(tmp_path: Path) -> None:
    snn, x = converted("Residual")
    wanted = snn(x)
    snn.save(tmp_path / "rest.snn")
    snn.step(x)
    snn.save(tmp_path / "stepped.snn")
    assert (tmp_path / "rest.snn").read_bytes() == (tmp_path / "stepped.snn").read_bytes()
    assert torch.equal(ftbc.load(tmp_path / "stepped.snn")(x), wanted)


def test_the_file_may_change_after_loading(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.snn"
    path.write_bytes(saved.read_bytes())
    snn, (_, x) = ftbc.load(path), converted("Joined")
    before = snn(x)
    path.open("r+b").write(bytes(path.stat().st_size))
    assert torch.equal(snn(x), before)


@pytest.mark.parametrize("name", ["nodes", "shape", "copy", "weight", "a-b c", "größe"])
def test_layers_of_any_name(name: str, tmp_path: Path) -> None:
    model = nn.Sequential()
    model.add_module(name, nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU()))
    model.add_module("last", nn.Linear(6, 2))
    x = torch.randn(8, 4)
    snn = ftbc.convert(model.eval(), x, 2)
    snn.save(tmp_path / "net.snn")
    assert torch.equal(ftbc.load(tmp_path / "net.snn")(x), snn(x))


def test_what_was_not_measured_stays_unknown(tmp_path: Path) -> None:
    snn, _ = converted("Residual")
    snn.measured[snn.layers()[0].name] = (float("nan"), float("inf"))
    snn.save(tmp_path / "net.snn")
    rows = ftbc.load(tmp_path / "net.snn").layers()
    assert rows[0].error != rows[0].error and rows[1] == snn.layers()[1]


# ---- damaged and foreign files ---------------------------------------------------------------------------


def test_the_format_has_a_version(saved: Path, tmp_path: Path, refused: Refused) -> None:
    header, tensors = content(saved)
    assert header["version"] == 1
    for other in (2, 0, "1", True, 1.0, None, [1]):
        refused(FileError, "version", ftbc.load, write(tmp_path / "other.snn", {**header, "version": other}, tensors))


def test_truncated(saved: Path, tmp_path: Path, refused: Refused) -> None:
    whole = saved.read_bytes()
    header_end = 8 + int.from_bytes(whole[:8], "little")
    cuts = {0, 1, 7, 8, 9, 20, header_end - 1, header_end, header_end + 1, len(whole) - 1}
    cuts |= {random.Random(0).randrange(len(whole)) for _ in range(40)}
    path = tmp_path / "cut.snn"
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        refused(FileError, "cut.snn", ftbc.load, path)


def test_foreign_files(tmp_path: Path, refused: Refused) -> None:
    save_file({"weight": torch.ones(2)}, tmp_path / "weights.snn")
    save_file({"weight": torch.ones(2)}, tmp_path / "marked.snn", {"format": "pt"})
    (tmp_path / "text.snn").write_text("a network, honestly\n" * 100)
    (tmp_path / "empty.snn").write_bytes(b"")
    (tmp_path / "folder.snn").mkdir()
    for path in [*tmp_path.iterdir(), tmp_path / "missing.snn", tmp_path / "no" / "folder.snn"]:
        refused(FileError, path.name, ftbc.load, path)
        refused(FileError, path.name, ftbc.load, str(path))


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_is_not_run(tmp_path: Path, refused: Refused) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "pickle.snn").write_bytes(pickle.dumps(_Touch(mark)))
    torch.save({"net": _Touch(mark)}, tmp_path / "torch.snn")
    for name in ("pickle.snn", "torch.snn"):
        refused(FileError, name, ftbc.load, tmp_path / name)
    assert not mark.exists()


def test_a_bit_that_changed_in_a_weight(saved: Path, tmp_path: Path, refused: Refused) -> None:
    whole = saved.read_bytes()
    begin = 8 + int.from_bytes(whole[:8], "little")
    for place in (begin, (begin + len(whole)) // 2, len(whole) - 1):
        for bit in (0, 6):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            (tmp_path / "flipped.snn").write_bytes(damaged)
            refused(FileError, ("flipped.snn", "checksum"), ftbc.load, tmp_path / "flipped.snn")


def test_flipped_bits(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    header_end = 8 + int.from_bytes(whole[:8], "little")
    chance = random.Random(1)
    path, refusals = tmp_path / "flipped.snn", 0
    for _ in range(150):
        damaged = bytearray(whole)
        damaged[chance.randrange(header_end)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        refusals += _loads_or_refuses(path)
    assert refusals > 100


# ---- hostile files ---------------------------------------------------------------------------------------


def node(header: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(entry for entry in header["nodes"] if entry["module"]["type"] == kind)


def with_argument(kind: str, argument: str, value: Any) -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        node(header, kind)["module"][argument] = value

    return edit


def with_field(field: str, value: Any, kind: str = "Concat") -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        node(header, kind)[field] = value

    return edit


def with_top(field: str, value: Any) -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        header[field] = value

    return edit


def with_recipe(field: str, value: Any) -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        header["recipe"][field] = value

    return edit


def without(field: str) -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        del header[field]

    return edit


def extra_node(**changes: Any) -> Callable[[dict, dict], None]:
    """One more operation at the end, which takes over the output."""

    def edit(header: dict, tensors: dict) -> None:
        shape = header["nodes"][-1]["shape"]
        entry = {"name": "extra", "inputs": [header["output"]], "shape": shape, "source": "",
                 "module": {"type": "Sum", "weights": [1.0]}, **changes}  # fmt: skip
        header["nodes"].append(entry)
        header["output"] = entry["name"]

    return edit


def with_tensor(name: str, change: Callable[[Tensor], Tensor]) -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        tensors[name] = change(tensors.get(name, torch.ones(1)))

    return edit


def all_tensors(change: Callable[[Tensor], Tensor]) -> Callable[[dict, dict], None]:
    def edit(header: dict, tensors: dict) -> None:
        tensors.update({name: change(tensor) for name, tensor in tensors.items()})

    return edit


def cyclic(header: dict, tensors: dict) -> None:
    header["nodes"][0]["inputs"] = [header["nodes"][-1]["name"]]


def twice(header: dict, tensors: dict) -> None:
    header["nodes"].append(copy.deepcopy(header["nodes"][-1]))


def missing_tensor(header: dict, tensors: dict) -> None:
    del tensors["wide.weight"]


def many_nodes(header: dict, tensors: dict) -> None:
    shape = header["nodes"][-1]["shape"]
    for i in range(20_000):
        header["nodes"].append({"name": f"n{i}", "inputs": [header["output"]], "shape": shape, "source": "",
                                "module": {"type": "Sum", "weights": [1.0]}})  # fmt: skip


HUGE = 10**12
HOSTILE: dict[str, Callable[[dict, dict], None]] = {
    "unknown type": with_argument("Conv2d", "type", "os.system"),
    "type of Python": with_argument("Conv2d", "type", "__import__"),
    "type is a list": with_argument("Conv2d", "type", ["Conv2d"]),
    "argument too many": with_argument("Conv2d", "device", "cuda"),
    "module is no dict": with_field("module", "Concat"),
    "huge channels": with_argument("Conv2d", "out_channels", HUGE),
    "huge channels and groups": with_argument("Conv2d", "groups", HUGE),
    "huge kernel": with_argument("Conv2d", "kernel_size", [10**9, 10**9]),
    "kernel of words": with_argument("Conv2d", "kernel_size", "exit()"),
    "huge padding": with_argument("Conv2d", "padding", [HUGE, HUGE]),
    "stride 0": with_argument("Conv2d", "stride", [0, 0]),
    "padding mode": with_argument("Conv2d", "padding_mode", "\x1b[31m"),
    "huge features": with_argument("Linear", "in_features", HUGE),
    "fractional features": with_argument("Linear", "out_features", 5.5),
    "concat of another dimension": with_argument("Concat", "dim", 10**9),
    "reshape to something else": with_argument("Reshape", "shape", [HUGE, HUGE]),
    "reshape negative": with_argument("Reshape", "shape", [-1, -1]),
    "pool of nothing": with_argument("SpikingMaxPool", "pool", "MaxPool2d"),
    "pool with weights": with_argument("SpikingMaxPool", "pool", {"type": "Linear"}),
    "slice": extra_node(module={"type": "Slice", "dim": 1, "start": -HUGE, "stop": HUGE, "step": 0}),
    "slice of no dimension": extra_node(module={"type": "Slice", "dim": 10**9, "start": 0, "stop": 1, "step": 1}),
    "pad": extra_node(module={"type": "Pad", "pad": [HUGE, HUGE], "mode": "constant", "value": 0.0}),
    "pad mode": extra_node(module={"type": "Pad", "pad": [1, 1], "mode": "exec", "value": 0.0}),
    "upsample": extra_node(module={"type": "Upsample", "size": None, "scale_factor": 1e300, "mode": "nearest",
                                   "align_corners": None, "recompute_scale_factor": None}),
    "permute": extra_node(module={"type": "Permute", "dims": [1, 0]}),
    "reduce the batch": extra_node(module={"type": "Reduce", "dims": [0], "keepdim": True, "mean": True}),
    "sum of too few": extra_node(module={"type": "Sum", "weights": [1.0, 1.0]}),
    "sum of words": extra_node(module={"type": "Sum", "weights": ["x"]}),
    "NaN": extra_node(module={"type": "Sum", "weights": [float("nan")]}),
    "cyclic": cyclic,
    "dangling input": with_field("inputs", ["nobody", "input"]),
    "no inputs": with_field("inputs", []),
    "inputs are a word": with_field("inputs", "input"),
    "inputs of inputs": with_field("inputs", [["input"]]),
    "name twice": twice,
    "name of another": extra_node(name="wide"),
    "name inside another": extra_node(name="wide.weight"),
    "name of a container": extra_node(name="wide.weight.x"),
    "name that torch forbids": extra_node(name="training"),
    "name input": extra_node(name="input"),
    "name of a path": extra_node(name="../x"),
    "name empty": extra_node(name=""),
    "name with an empty part": extra_node(name="a..b"),
    "name with an end of line": extra_node(name="a\nb"),
    "name is a number": extra_node(name=7),
    "name endless": extra_node(name="a" * 10**6),
    "name too deep": extra_node(name=".".join("a" * 500)),
    "negative shape": with_field("shape", [-1, 8, 8]),
    "huge shape": with_field("shape", [HUGE, HUGE]),
    "wrong shape": with_field("shape", [1, 2, 3]),
    "shape of words": with_field("shape", ["8", "8"]),
    "shape of many dimensions": with_field("shape", [1] * 1000),
    "shape missing": lambda header, tensors: node(header, "Concat").pop("shape"),
    "source is a list": with_field("source", [[[]]]),
    "source with escapes": with_field("source", "\x1b]0;title\x07"),
    "input shape": with_top("input_shape", [3, HUGE, HUGE]),
    "input shape of another size": with_top("input_shape", [4, 8, 8]),
    "input shape 0": with_top("input_shape", [3, 0, 0]),
    "output nowhere": with_top("output", "nobody"),
    "output is the input": with_top("output", "input"),
    "output is a list": with_top("output", ["head"]),
    "steps as text": with_top("steps", "3"),
    "steps huge": with_top("steps", 10**9),
    "steps 0": with_top("steps", 0),
    "steps true": with_top("steps", True),
    "steps NaN": with_top("steps", float("nan")),
    "steps of neurons huge": with_argument("IntegrateFire", "steps", 10**9),
    "steps of neurons as text": with_argument("IntegrateFire", "steps", "3"),
    "rank huge": with_argument("IntegrateFire", "rank", 10**9),
    "no nodes": with_top("nodes", []),
    "nodes are a dict": with_top("nodes", {"a": 1}),
    "nodes are numbers": with_top("nodes", [1, 2]),
    "many nodes": many_nodes,
    "head of neurons": with_top("head", {"type": "IntegrateFire", "steps": 3, "rank": 1}),
    "head with state": with_top("head", {"type": "SpikingMaxPool", "pool": {"type": "Sigmoid"}}),
    "head unknown": with_top("head", {"type": "Exec"}),
    "head of no dimension": with_top("head", {"type": "Softmax", "dim": 5}),
    "measured is a list": with_top("measured", [1]),
    "measured of words": with_top("measured", {"a": ["x", "y"]}),
    "measured of three": with_top("measured", {"a": [1, 2, 3]}),
    "strides reach out": with_top("strides", {"wide.weight": [HUGE, 1, 1, 1]}),
    "strides overlap": with_top("strides", {"wide.weight": [0, 0, 0, 0]}),
    "strides negative": with_top("strides", {"wide.weight": [-3, 1, 1, 1]}),
    "strides too few": with_top("strides", {"wide.weight": [1]}),
    "recipe unknown piece that holds data": with_recipe("threshold", {"type": "Exec", "of": ["a"]}),
    "recipe piece without a name": with_recipe("threshold", {"of": 1}),
    "recipe wrong setting": with_recipe("threshold", {"type": "MeanSquare", "exec": 1}),
    "recipe wrong value": with_recipe("calibrate", [{"type": "FTBC", "alpha": "x"}]),
    "recipe more fields": with_recipe("exec", 1),
    "recipe pool is a list": with_recipe("pool", []),
    "recipe name with escapes": with_recipe("name", "\x1b[2J"),
    "recipe name is a number": with_recipe("name", 3),
    "recipe is a list": with_top("recipe", []),
    **{f"no {field}": without(field) for field in ("steps", "input_shape", "output", "nodes", "head", "recipe")},
    "no measured": without("measured"),
    "no strides": without("strides"),
    "tensor missing": missing_tensor,
    "tensor too many": with_tensor("nobody.weight", torch.clone),
    "tensor too many of an operation": with_tensor("wide.extra", torch.clone),
    "tensor without a name": with_tensor("x", torch.clone),
    "tensor of another shape": with_tensor("wide.weight", lambda t: t[:1].clone()),
    "integer tensor": with_tensor("wide.weight", lambda t: t.to(torch.int64)),
    "boolean tensors": all_tensors(lambda t: t > 0),
    "half precision": all_tensors(lambda t: t.half()),
    "mixed precision": with_tensor("wide.weight", lambda t: t.double()),
    "threshold of another shape": with_tensor("relu6.threshold", lambda t: torch.ones(3)),
    "bias of another shape": with_tensor("relu6.bias", lambda t: torch.ones(3, 3)),
    "bias of other steps": with_tensor("relu6.bias", lambda t: t[:1].clone()),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_description(case: str, saved: Path, tmp_path: Path, refused: Refused) -> None:
    header, tensors = content(saved)
    HOSTILE[case](header, tensors)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    refused(FileError, "hostile.snn", ftbc.load, write(tmp_path / "hostile.snn", header, tensors))
    assert time.process_time() - begun < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # kilobytes


@pytest.mark.parametrize(
    "name", ["__class__", "__init__", "forward", "weight", "_modules", "state_dict", "nodes", "__del__"]
)
def test_names_of_python_are_only_names(name: str, saved: Path, tmp_path: Path) -> None:
    header, tensors = content(saved)
    extra_node(name=name)(header, tensors)
    snn, wanted = ftbc.load(write(tmp_path / "named.snn", header, tensors)), ftbc.load(saved)
    x = torch.randn(2, 3, 8, 8)
    assert torch.equal(snn(x), wanted(x)) and type(snn.graph) is type(wanted.graph)


def test_pools_in_pools_load_or_are_refused(saved: Path, tmp_path: Path) -> None:
    header, tensors = content(saved)
    module = node(header, "SpikingMaxPool")["module"]
    refusals = []
    for depth in (1, 100, 400, 900):
        pool = module["pool"]
        for _ in range(depth):
            pool = {"type": "SpikingMaxPool", "pool": pool}
        edited = copy.deepcopy(header)
        node(edited, "SpikingMaxPool")["module"]["pool"] = pool
        refusals.append(_loads_or_refuses(write(tmp_path / "nested.snn", edited, tensors)))
    assert refusals[-1]


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "1", "null", '"x"', "{}", '{"version": 1}', '{"version": 1e999}', "[" * 100_000,
     '{"version": ' + "9" * 10_000 + "}", '{"version": 1, "nodes": ' + '{"a":' * 2000 + "1" + "}" * 2001],
    ids=range(12),
)  # fmt: skip
def test_hostile_json(text: str, tmp_path: Path, refused: Refused) -> None:
    refused(FileError, "json.snn", ftbc.load, write(tmp_path / "json.snn", text, {"a": torch.ones(1)}))


VALUES = [0, 1, -1, 3, 10**9, 2**31, 2**63, 2**64, HUGE, 10**30, 0.5, 1e308, float("inf"), float("nan"), True, None,
          "", "x", "input", "same", "circular", "bilinear", [], [0], [2, 2], [10**9, 10**9], [1] * 100, {}, [None],
          "IntegrateFire", "Conv2d", "Linear", {"type": "Softmax", "dim": 1}]  # fmt: skip


def mutated(value: Any, chance: random.Random) -> Any:
    """The same description with one to three entries replaced, removed or repeated."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 2, 3))):
        inside = value
        while True:
            places = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            if not places:
                break
            place = chance.choice(places)
            if isinstance(inside[place], dict | list) and chance.random() < 0.9:
                inside = inside[place]
                continue
            if chance.random() < 0.8:
                inside[place] = copy.deepcopy(chance.choice(VALUES))
            elif isinstance(inside, list):
                inside.append(copy.deepcopy(inside[place]))
            else:
                del inside[place]
            break
    return value


def _loads_or_refuses(path: Path) -> bool:
    """Whether loading was refused; anything but a network or a one-line FileError fails the test."""
    try:
        assert isinstance(ftbc.load(path), ftbc.SpikingNetwork)
    except FileError as error:
        assert len(str(error).splitlines()) == 1 and str(error).isprintable()
        return True
    return False


@pytest.mark.filterwarnings("ignore")
def test_random_descriptions_load_or_are_refused(tmp_path: Path) -> None:
    files = []
    for name in MODELS:
        converted(name)[0].save(tmp_path / name)
        files.append(content(tmp_path / name))
    before, refusals = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for seed in range(200):
        chance = random.Random(seed)
        header, tensors = chance.choice(files)
        refusals += _loads_or_refuses(write(tmp_path / "random.snn", mutated(header, chance), tensors))
    assert 100 < refusals < 200
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def test_random_bytes_load_or_are_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    path, refusals = tmp_path / "random.snn", 0
    for seed in range(200):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 2, 8))):
            start = chance.randrange(len(damaged))
            stop = start + chance.randrange(64)
            damaged[start:stop] = chance.choice((b"", bytes(stop - start), chance.randbytes(stop - start)))
        path.write_bytes(damaged)
        refusals += _loads_or_refuses(path)
    assert refusals > 100


# ---- writing ---------------------------------------------------------------------------------------------


@pytest.fixture
def small() -> ftbc.SpikingNetwork:
    return ftbc.convert(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)), torch.rand(8, 4), 2, "mean-square")


def fails_with(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize("where", ["os.fsync", "Path.replace", "Path.open"])
@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_failed_write_leaves_the_older_file(
    where: str,
    problem: int,
    small: ftbc.SpikingNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Refused,
) -> None:
    path = tmp_path / "net.snn"
    path.write_bytes(b"older")
    monkeypatch.setattr(f"ftbc.atomic.{where}", fails_with(OSError(problem, os.strerror(problem))))
    refused(FileError, ("net.snn", os.strerror(problem)), small.save, path)
    monkeypatch.undo()
    assert path.read_bytes() == b"older" and list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "net.snn"
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk(small: ftbc.SpikingNetwork, refused: Refused) -> None:
    refused(FileError, os.strerror(errno.ENOSPC), small.save, "/dev/full")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(small: ftbc.SpikingNetwork, tmp_path: Path, refused: Refused) -> None:
    tmp_path.chmod(0o500)
    refused(FileError, "net.snn", small.save, tmp_path / "net.snn")
    tmp_path.chmod(0o700)


def test_no_such_folder_or_a_folder(small: ftbc.SpikingNetwork, tmp_path: Path, refused: Refused) -> None:
    refused(FileError, "nowhere", small.save, tmp_path / "nowhere" / "net.snn")
    refused(FileError, str(tmp_path), small.save, tmp_path)
    refused(FileError, "cannot write", small.save, "")
    assert not list(tmp_path.iterdir())


def test_a_long_name(small: ftbc.SpikingNetwork, tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251 + ".snn")
    small.save(path)
    assert ftbc.load(path).steps == small.steps


def test_a_pipe_is_written_to_and_not_replaced(small: ftbc.SpikingNetwork, tmp_path: Path) -> None:
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()), daemon=True)
    reader.start()
    small.save(pipe)
    reader.join(10)
    small.save(tmp_path / "file")
    assert stat.S_ISFIFO(pipe.stat().st_mode) and seen == [(tmp_path / "file").read_bytes()]


def test_a_link_stays_a_link(small: ftbc.SpikingNetwork, tmp_path: Path) -> None:
    target, link = tmp_path / "target.snn", tmp_path / "link.snn"
    target.write_bytes(b"older")
    link.symlink_to(target)
    small.save(link)
    assert link.is_symlink() and load_file(target).keys() == load_file(link).keys()


def test_others_may_read_what_was_written(small: ftbc.SpikingNetwork, tmp_path: Path) -> None:
    small.save(tmp_path / "net.snn")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "net.snn").stat().st_mode == (tmp_path / "other").stat().st_mode
