"""Builders of tiny files in the layouts of the real data sets."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from ftbc.data import NORMALISATIONS, Images


def make_records(count: int, classes: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Random pixels uint8 [count, 3072] and labels that go round all classes."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)
    return pixels, [(i * 7 + seed) % classes for i in range(count)]


def python2_pickle(pixels: np.ndarray, labels: list[int], label_key: str) -> bytes:
    """Pickle a batch as Python 2 did for the official archives: protocol 2, byte strings, old numpy names."""

    def text(value: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(value)) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN"
    dtype += number(-1) + number(-1) + b"K\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    array += b"(K\x01" + number(pixels.shape[0]) + number(pixels.shape[1]) + b"\x86" + dtype + b"\x89"
    array += text(pixels.tobytes()) + b"tb"
    items = text(b"batch_label") + text(b"testing batch") + text(b"data") + array
    items += text(label_key.encode()) + b"](" + b"".join(map(number, labels)) + b"e"
    return b"\x80\x02}(" + items + b"u."


LAYOUTS = {
    "cifar-10-batches-py": ([f"data_batch_{i}" for i in range(1, 6)], ["test_batch"]),
    "cifar-10-batches-bin": ([f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]),
    "cifar-100-python": (["train"], ["test"]),
    "cifar-100-binary": (["train.bin"], ["test.bin"]),
}


@pytest.fixture
def make_cifar(tmp_path: Path) -> Callable[..., tuple[Path, dict]]:
    """Write an archive's folder under tmp_path; give it and {split: (pixels, labels)} as expected back."""

    def make(folder: str, count: int = 4) -> tuple[Path, dict]:
        root = tmp_path / folder
        root.mkdir()
        classes = 10 if folder.startswith("cifar-10-") else 100
        expected = {}
        for split, names in zip(("train", "test"), LAYOUTS[folder], strict=True):
            parts = [make_records(count, classes, seed + 10 * (split == "test")) for seed in range(len(names))]
            for name, (pixels, labels) in zip(names, parts, strict=True):
                if not name.endswith(".bin"):
                    key = "labels" if classes == 10 else "fine_labels"
                    content = python2_pickle(pixels, labels, key)
                else:
                    # The coarse label (always 19 here) must not be taken for the fine one.
                    heads = [bytes([label]) if classes == 10 else bytes([19, label]) for label in labels]
                    content = b"".join(h + p.tobytes() for h, p in zip(heads, pixels, strict=True))
                (root / name).write_bytes(content)
            expected[split] = np.concatenate([p for p, _ in parts]), [label for _, y in parts for label in y]
        return root, expected

    return make


@pytest.fixture
def make_images() -> Callable[..., Images]:
    """Random CIFAR-like Images with labels that go round the classes."""

    def make(count: int, classes: int = 10, side: int = 32, seed: int = 0) -> Images:
        generator = torch.Generator().manual_seed(seed)
        pixels = torch.randint(0, 256, (count, 3, side, side), generator=generator, dtype=torch.uint8)
        return Images(pixels, torch.arange(count) % classes, NORMALISATIONS["cifar10"], "made", batch=7)

    return make


@pytest.fixture
def picture() -> Callable[..., bytes]:
    """Encode a picture of one colour."""
    from PIL import Image

    def encode(colour: tuple[int, int, int], size: tuple[int, int] = (8, 8), kind: str = "PNG") -> bytes:
        file = io.BytesIO()
        Image.new("RGB", size, colour).save(file, kind)
        return file.getvalue()

    return encode


@pytest.fixture
def make_folder(tmp_path: Path, picture: Callable[..., bytes]) -> Callable[..., Path]:
    """Write class folders of one-colour pictures: {"train/n01": 3} makes three pictures there."""

    def make(counts: dict[str, int]) -> Path:
        root = tmp_path / "pictures"
        for place, (name, count) in enumerate(counts.items()):
            (root / name).mkdir(parents=True)
            for i in range(count):
                (root / name / f"{i}.JPEG").write_bytes(picture((10 * place, 10 * i, 0), (40, 30)))
        return root

    return make
