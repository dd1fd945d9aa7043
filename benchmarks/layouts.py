"""Which memory layout convolutions are fastest in, by their shape: python -m benchmarks.layouts

The rule in `src/ftbc/graph/layout.py` is read off this table: the speed with channels outermost over that with channels
innermost, one thread.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ftbc.measure.machine import threads
from ftbc.measure.timing import Spread, Way, interleaved

CHANNELS, SIDES = (32, 64, 128, 256, 512), (2, 4, 7, 8, 14, 16)
_ROOM = 16 << 20


def main() -> None:
    """Print a row for each number of channels and side of the map."""
    print("speed with channels outermost over that with channels innermost")
    print(f"{'channels':>8}  {'side':>4}  {'3 x 3':>18}  {'1 x 1':>18}  {'depthwise':>18}")
    with threads(1), torch.no_grad():
        for channels in CHANNELS:
            for side in SIDES:
                x = torch.randn(max(16, min(128, _ROOM // (4 * channels * side * side))), channels, side, side)
                kernels = ((channels, 3, 1), (channels, 1, 1), (1, 3, channels))
                ratios = [_ratio(x, torch.randn(channels, read, size, size), groups) for read, size, groups in kernels]
                print(f"{channels:8}  {side:4}  " + "  ".join(f"{ratio!s:>18}" for ratio in ratios), flush=True)


def _ratio(x: Tensor, weight: Tensor, groups: int) -> Spread:
    def way(form: torch.memory_format) -> Way:
        own, values = weight.contiguous(memory_format=form), x.contiguous(memory_format=form)
        return Way(lambda: F.conv2d(values, own, padding=weight.shape[2] // 2, groups=groups))

    found = interleaved({"outer": way(torch.contiguous_format), "inner": way(torch.channels_last)})
    return found["outer"].speed_over(found["inner"])


if __name__ == "__main__":
    main()
