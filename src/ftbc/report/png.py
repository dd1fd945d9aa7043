"""Small pictures as PNG text, without a package for images."""

from __future__ import annotations

import base64
import struct
import zlib

import torch
from torch import Tensor

from ftbc.errors import InputError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = {1: 0, 3: 2}
"""PNG's number for grey and for RGB, by how many channels a picture has."""


def png(pixels: Tensor) -> bytes:
    """A PNG file of pixels uint8 ``[1 or 3, H, W]``.

    >>> png(torch.zeros(3, 2, 2, dtype=torch.uint8))[:4]
    b'\\x89PNG'
    """
    if pixels.dtype != torch.uint8 or pixels.ndim != 3 or pixels.shape[0] not in _COLOURS:
        raise InputError(f"a picture is uint8 of 1 or 3 channels, not {pixels.dtype} {list(pixels.shape)}")
    channels, height, width = pixels.shape
    rows = pixels.permute(1, 2, 0).reshape(height, width * channels).contiguous().cpu().numpy()
    # Each row begins with the number of its filter: none.
    content = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(content, 9)) + _chunk(b"IEND", b"")


def data_address(pixels: Tensor) -> str:
    """A picture as an address that holds it all, for the inside of a page."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
