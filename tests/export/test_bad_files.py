"""Files that are cut, foreign, of another version or damaged: one line, and nothing half-written."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import ftbc
from ftbc.errors import FileError, InputError, RecipeError, UnsupportedError
from ftbc.export.integer_file import read_integers
from ftbc.export.onnx_run import OnnxNetwork

from ..conftest import Refused, RunPython
from ..test_import import blocking
from .networks import RECIPE, converted

KEEP_POOLS = ftbc.recipe("ftbc", calibrate=RECIPE.calibrate)


# ---- NIR -------------------------------------------------------------------------------------------------


@pytest.fixture
def nir_file(tmp_path: Path) -> Path:
    pytest.importorskip("nir")
    ftbc.export.nir(converted("plain")[0], tmp_path / "net.nir")
    return tmp_path / "net.nir"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_cut_nir_file(nir_file: Path, share: float, refused: Refused) -> None:
    content = nir_file.read_bytes()
    nir_file.write_bytes(content[: int(share * len(content))])
    refused(FileError, ("net.nir", "complete"), ftbc.export.read_nir, nir_file)


def test_foreign_and_missing_nir_files(tmp_path: Path, refused: Refused) -> None:
    nir = pytest.importorskip("nir")
    graph = nir.NIRGraph.from_list(nir.Affine(np.ones((2, 3)), np.ones(2)))
    nir.write(tmp_path / "other.nir", graph)
    refused(FileError, ("other.nir", "another program"), ftbc.export.read_nir, tmp_path / "other.nir")
    (tmp_path / "text.nir").write_text("not at all")
    refused(FileError, "text.nir", ftbc.export.read_nir, tmp_path / "text.nir")
    refused(FileError, "gone.nir", ftbc.export.read_nir, tmp_path / "gone.nir")
    refused(FileError, str(tmp_path), ftbc.export.read_nir, tmp_path)


def _changed(path: Path, **header: object) -> None:
    import h5py

    with h5py.File(path, "r+") as file:
        text = json.loads(file["node/metadata/ftbc"][()])
        del file["node/metadata/ftbc"]
        file["node/metadata"].create_dataset("ftbc", data=json.dumps({**text, **header}))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"version": 99}, "version 99"),
        ({"version": None}, "version None"),
        ({"steps": 3}, "net.nir"),
        ({"steps": "many"}, "damaged"),
        ({"input_shape": [4, 8, 8]}, "net.nir"),
        ({"input_shape": []}, "net.nir"),
        ({"output_shape": [7]}, "net.nir"),
        ({"neurons": {}}, "damaged"),
        ({"dtype": "int8"}, "damaged"),
        ({"clock": False}, "net.nir"),
        ({"recipe": {"type": "x"}}, "net.nir"),
        ({"head": {"type": "Nonsense"}}, "Nonsense"),
        ({"readout": "x"}, "damaged"),
    ],
)
def test_a_damaged_header(nir_file: Path, header: dict, words: str, refused: Refused) -> None:
    _changed(nir_file, **header)
    refused(FileError, words, ftbc.export.read_nir, nir_file)


def test_nodes_that_are_not_ours(nir_file: Path, refused: Refused) -> None:
    import h5py

    with h5py.File(nir_file, "r+") as file:
        names = [name for name, node in file["node/nodes"].items() if node["type"][()] == b"Threshold"]
        file[f"node/nodes/{names[0]}/threshold"][...] = 0.5
    refused(FileError, ("thresholds other than 1", names[0]), ftbc.export.read_nir, nir_file)


# ---- ONNX ------------------------------------------------------------------------------------------------


def test_onnx_files(tmp_path: Path, refused: Refused) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    snn, images = converted("plain")
    path = tmp_path / "net.onnx"
    ftbc.export.onnx(snn, path)
    content = path.read_bytes()
    data = images.float(), torch.zeros(len(images), dtype=torch.long)
    for share in (0.0, 0.3, 0.9):
        path.write_bytes(content[: int(share * len(content))])
        refused(FileError, "net.onnx", ftbc.export.verify, path, snn.float(), data)
    model = onnx.load_model_from_string(content)
    for text, words in (("{}", "damaged"), ('{"version": 9}', "version 9"), (None, "another program")):
        del model.metadata_props[:]
        if text is not None:
            onnx.helper.set_model_props(model, {"ftbc": text})
        refused(FileError, words, OnnxNetwork, model.SerializeToString(), path)


# ---- integers --------------------------------------------------------------------------------------------


def test_integer_files(tmp_path: Path, refused: Refused) -> None:
    snn, images = converted("plain")
    path = tmp_path / "net.npz"
    ftbc.export.weights(snn, path, images)
    content = path.read_bytes()
    for share in (0.0, 0.3, 0.9):
        path.write_bytes(content[: int(share * len(content))])
        refused(FileError, ("net.npz", "complete"), read_integers, path)
    np.savez(path, a=np.ones(3))
    refused(FileError, "something else", read_integers, path)
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    text = json.loads(arrays["description"].tobytes())
    for change, words in (
        ({"version": 7}, "version 7"),
        ({"nodes": text["nodes"][1:]}, "net.npz"),
        ({"nodes": 3}, "damaged"),
        ({"output": {"name": "x", "scale": [1]}}, "not an operation"),
        ({"numbers": "float16"}, "damaged"),
    ):
        changed = np.frombuffer(json.dumps({**text, **change}).encode(), dtype=np.uint8)
        np.savez(path, **{**arrays, "description": changed})
        refused(FileError, words, read_integers, path)
    np.savez(path, **{**arrays, "description": np.frombuffer(b"{", dtype=np.uint8)})
    refused(FileError, "description", read_integers, path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("description.npy", b"nothing")
    refused(FileError, "net.npz", read_integers, path)


# ---- what is asked for -----------------------------------------------------------------------------------


def test_wrong_settings(tmp_path: Path, refused: Refused) -> None:
    pytest.importorskip("nir")
    snn, images = converted("plain")
    path = tmp_path / "net.nir"
    refused(RecipeError, ("'spikejelly'", "spikingjelly"), ftbc.export.nir, snn, path, dialect="spikejelly")
    refused(RecipeError, ("'none'", "clock", "mean"), ftbc.export.nir, snn, path, bias="none")
    refused(InputError, "shape", ftbc.export.nir, snn, path, images=images[:, :2])
    refused(InputError, "Linear", ftbc.export.nir, torch.nn.Linear(1, 1), path)
    refused(FileError, "no/net.nir", ftbc.export.nir, snn, tmp_path / "no" / "net.nir")
    refused(FileError, "folder", ftbc.export.nir, snn, tmp_path)
    pooled, _ = converted("pooled", KEEP_POOLS)
    refused(UnsupportedError, ("SpikingMaxPool", "ONNX", "pool='average'"), ftbc.export.nir, pooled, path)
    assert not list(tmp_path.iterdir())


def test_an_existing_file_survives_a_failure(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nir")
    snn, _ = converted("plain")
    path = tmp_path / "net.nir"
    path.write_text("precious")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ftbc.atomic.os.fsync", fail)
    refused(FileError, "No space left", ftbc.export.nir, snn, path)
    assert path.read_text() == "precious" and list(tmp_path.iterdir()) == [path]


def test_missing_packages_name_their_extra(run_python: RunPython) -> None:
    code = """
    import ftbc, torch
    snn = ftbc.convert(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU()), torch.rand(8, 4), 2)
    for use in (
        lambda: ftbc.export.nir(snn, "x.nir"),
        lambda: ftbc.export.onnx(snn, "x.onnx"),
        lambda: ftbc.export.to_spikingjelly(snn),
        lambda: ftbc.export.to_snntorch(snn),
    ):
        try:
            use()
        except ftbc.errors.FtbcError as error:
            print(error)
    ftbc.export.weights(snn, "x.npz", torch.rand(8, 4))
    """
    result = run_python(blocking("nir", "h5py", "onnx", "onnxruntime", "spikingjelly", "snntorch") + code)
    lines = result.stdout.splitlines()
    words = ("ftbc[nir]", "ftbc[onnx]", "pip install spikingjelly", "pip install snntorch")
    assert len(lines) == 4 and all(map(str.__contains__, lines, words)) and not result.stderr
