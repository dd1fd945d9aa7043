"""Our own engines, and the ANN: BatchNorm folded, in both layouts and as TorchScript makes it for inference."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.rivals.task import Offer, Task, in_batches, sizes
from ftbc.measure.speed import ENGINES, folded

ANN_BATCHES = (1, 8, 16, 64)
SNN_BATCHES = (1, 8, 64)


def offers(task: Task) -> tuple[dict[str, Offer], dict[str, str]]:
    """The ANN and every engine."""
    found: dict[str, Offer] = {}
    images = task.images
    graph = folded(task.ann, images[:1])
    last = graph.copy().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images_last = images.contiguous(memory_format=torch.channels_last)
    for batch in sizes(ANN_BATCHES, images):
        found[f"ANN, torch, batch {batch}, plain layout"] = in_batches(graph, images, batch)
        found[f"ANN, torch, batch {batch}, channels last"] = in_batches(last, images_last, batch)
        script = torch.jit.trace(task.ann, images[:batch])
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(script.eval()))  # type: ignore[attr-defined]
        found[f"ANN, TorchScript, batch {batch}"] = in_batches(frozen, images, batch)
    whole = task.snn.rounded(images)
    for name, engine in ENGINES.items():
        network = whole if engine.whole else task.snn

        def last_mean(x: Tensor, network=network, engine=engine) -> Tensor:  # type: ignore[no-untyped-def]
            return network(x, engine=engine.engine)[-1]

        for batch in sizes(SNN_BATCHES, images):
            found[f"{name}, batch {batch}"] = in_batches(last_mean, images, batch)
    return found, {"torch": str(torch.__version__)}
