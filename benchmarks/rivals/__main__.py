"""Answer one line for each line: the name of an offer is run and timed; ``output NAME`` also keeps what it gave."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from benchmarks.rivals.task import Task


@torch.no_grad()
def main(kind: str, folder: Path, threads: int) -> None:
    """Say what is on offer, then run what is asked for until the input ends."""
    # What other libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    try:
        offers, versions = importlib.import_module(f"benchmarks.rivals.{kind}").offers(Task.read(folder, threads))
    except Exception as error:  # a rival that is missing or does not work here is left out, with its own words
        answer({"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]})
        return
    answer({"offers": {name: offer.items for name, offer in offers.items()}, "versions": versions})
    for line in sys.stdin:
        word, _, name = line.rstrip("\n").partition(" ")
        begun = time.perf_counter()
        output = offers[name].run()
        seconds = time.perf_counter() - begun
        if word == "output":
            save_file({"output": output.float().contiguous()}, folder / f"{kind}.safetensors")
        answer({"seconds": seconds})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
