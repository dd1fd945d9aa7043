"""Which memory layout convolutions are fastest in, by their shape: python -m benchmarks.layouts

The rule in `src/ftbc/graph/layout.py` is read off this table: times with channels outermost over those with channels
innermost, one thread, the least of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

CHANNELS, SIDES = (32, 64, 128, 256, 512), (2, 4, 7, 8, 14, 16)
_REPEATS, _ROOM = 5, 16 << 20


def main() -> None:
    """Print a row for each number of channels and side of the map."""
    torch.set_num_threads(1)
    print("time with channels outermost over that with channels innermost\nchannels  side  3 x 3  1 x 1  depthwise")
    with torch.no_grad():
        for channels in CHANNELS:
            for side in SIDES:
                images = max(16, min(128, _ROOM // (4 * channels * side * side)))
                x = torch.randn(images, channels, side, side)
                full, single = torch.randn(channels, channels, 3, 3), torch.randn(channels, channels, 1, 1)
                depthwise = torch.randn(channels, 1, 3, 3)
                ratios = (_ratio(x, full, 1), _ratio(x, single, 1), _ratio(x, depthwise, channels))
                print(f"{channels:8}  {side:4}  {ratios[0]:5.2f}  {ratios[1]:5.2f}  {ratios[2]:9.2f}", flush=True)


def _ratio(x: Tensor, weight: Tensor, groups: int) -> float:
    def run(form: torch.memory_format) -> Callable[[], Tensor]:
        own, values = weight.contiguous(memory_format=form), x.contiguous(memory_format=form)
        return lambda: F.conv2d(values, own, padding=weight.shape[2] // 2, groups=groups)

    return _least(run(torch.contiguous_format)) / _least(run(torch.channels_last))


def _least(work: Callable[[], Tensor]) -> float:
    work()
    least = float("inf")
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - begun)
    return least


if __name__ == "__main__":
    main()
