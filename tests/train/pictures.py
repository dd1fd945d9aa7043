"""Image folders of a few bytes in the layout of ImageNet."""

from __future__ import annotations

from pathlib import Path

import torch


def write_pictures(root: Path, counts: dict[str, int], size: tuple[int, int] = (40, 30)) -> Path:
    """Noisy JPEGs, brighter from class to class: {"train/n01": 3} makes three there."""
    from PIL import Image

    generator = torch.Generator().manual_seed(0)
    for place, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True)
        for i in range(count):
            noise = torch.randint(0, 60, (size[1], size[0], 3), generator=generator) + 60 * (place % 3)
            Image.fromarray(noise.to(torch.uint8).numpy()).save(root / name / f"{i}.JPEG", "JPEG")
    return root
