"""Run every benchmark and write what was measured to results/."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch

from benchmarks import calibration, engines, memory, training

results = {
    "machine": platform.processor() or platform.machine(),
    "threads": torch.get_num_threads(),
    "torch": torch.__version__,
    "engines": engines.run(),
    "calibration": calibration.run(),
    "training": training.run(),
    "peak_memory_mb": memory.run(),
}
Path("results").mkdir(exist_ok=True)
target = Path("results/bench.json")
target.write_text(json.dumps(results, indent=1) + "\n")
print(f"written to {target}")
