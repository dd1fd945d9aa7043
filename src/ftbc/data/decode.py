"""One encoded picture (JPEG, PNG ...) to RGB pixels, through Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ftbc.errors import FileError, MissingExtraError

if TYPE_CHECKING:
    from PIL import Image


def pillow() -> Any:
    """Import Pillow's ``Image`` module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("pillow", "reading image files", "images") from error
    return Image


def open_rgb(source: Path | bytes, place: str) -> Image.Image:
    """Decode a picture completely, as RGB; ``place`` names it in the error if it cannot be read."""
    image_module = pillow()
    try:
        with image_module.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            return _in_8_bits(image).convert("RGB")
    except Exception as error:  # a damaged picture makes Pillow's decoders raise nearly anything
        raise FileError(f"{place} cannot be read as an image: replace it or remove it") from error


def _in_8_bits(image: Image.Image) -> Image.Image:
    """A grey picture of 16 bits in 8, which Pillow would clip; any other as it is."""
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError("more than 16 bits")
    return pillow().fromarray((values // 257).astype(np.uint8))


def pixels_of(image: Image.Image) -> Tensor:
    """An RGB picture as uint8 ``[3, H, W]``, with the channels of a pixel side by side in memory."""
    width, height = image.size
    return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(height, width, 3).permute(2, 0, 1)
