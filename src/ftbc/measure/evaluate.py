"""Accuracy at each time step in one pass, with firing rates, operations and energy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.calibrate.base import Progress, silent
from ftbc.errors import InputError, NotFiniteError, first_line
from ftbc.graph.ir import Node
from ftbc.measure.early_exit import EarlyExit
from ftbc.measure.energy import CMOS_45NM, Operations
from ftbc.measure.evaluation import Evaluation
from ftbc.measure.events import of_neurons
from ftbc.measure.operations import OperationCounter
from ftbc.network import SpikingNetwork
from ftbc.simulate import Confidence, require_engine, steps_until
from ftbc.simulate.early_exit import require_rule

COUNTED_IMAGES = 200
"""Operations and firing rates are counted on the first so many images: they hardly differ between images, and
counting takes time."""


@torch.no_grad()
def evaluate(
    snn: SpikingNetwork,
    data: Any,
    reference: nn.Module | None = None,
    *,
    stop: Confidence | None = None,
    engine: str = "layerwise",
    counted_images: int | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Classify labelled data at every time step in one pass.

    data: an iterable of ``(images, labels)`` batches, or a pair of tensors ``(images [N, ...], labels [N])``.
    reference: the ANN, for its accuracy beside. stop: also say what ``snn.predict(x, until=stop)`` would do. It is
    read from the outputs at all steps, which are needed anyway: it costs nothing, but no time is saved either.
    engine: as for ``snn(x)``. counted_images: operations and firing rates are counted on so many images, the first, by
    default 200; these always run on "layerwise", the only engine that can be watched.
    """
    if not isinstance(snn, SpikingNetwork):
        raise InputError(f"a {type(snn).__name__} cannot be evaluated: give the network that ftbc.convert gave back")
    if reference is not None and not isinstance(reference, nn.Module):
        raise InputError(f"the reference is a {type(reference).__name__}, not an nn.Module")
    if stop is not None:
        require_rule(stop, "stop")
    counted_images = COUNTED_IMAGES if counted_images is None else counted_images
    if counted_images < 1:
        raise InputError(f"counted_images={counted_images}: give at least 1")
    require_engine(engine)
    right = torch.zeros(snn.steps, dtype=torch.float64)
    reference_right = images = counted = stopped_right = stopped_steps = 0
    steps = snn.extra_steps + snn.steps
    counter = OperationCounter(snn.graph, steps)
    events = of_neurons(snn.graph)
    neurons = {name: torch.Size(snn.graph.shape(name)).numel() for name in events}
    spikes = {name: torch.zeros(steps, dtype=torch.float64) for name in neurons}

    def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        counter(node, inputs, output, start)
        if node.name in spikes:
            fired = events[node.name](output, start)
            spikes[node.name][start : start + len(output)] += fired.sum(tuple(range(1, fired.ndim))).double().cpu()

    sized = getattr(data, "dataset", data)  # a DataLoader's own length counts batches
    total = len(sized) if hasattr(sized, "__len__") and not isinstance(sized, tuple) else 0
    with _in_eval_mode(reference):
        for x, y in labelled_batches(data):
            watched = min(len(x), counted_images - counted)
            parts = [snn(x[:watched], head=False, observe=observe)] if watched else []
            parts += [snn(x[watched:], head=False, engine=engine)] if watched < len(x) else []
            means = torch.cat(parts, 1)
            outputs = snn.read_out(means)
            counted += watched
            if outputs.ndim != 3:
                raise InputError(f"accuracy needs one score per class, but the network gives {list(outputs.shape[2:])}")
            hits = outputs.argmax(2) == y
            right += hits.sum(1).double().cpu()
            if stop is not None:
                taken = steps_until(stop, means)
                stopped_right += int(hits.gather(0, taken.unsqueeze(0) - 1).sum())
                stopped_steps += int(taken.sum())
            if reference is not None:
                reference_right += _right_by_reference(reference, x, y)
            images += len(y)
            progress("evaluating", images, max(total, images))
    if not images:
        raise InputError("the data to evaluate on holds no images")
    synops = (counter.synops.cumsum(0) / counted).tolist()[snn.extra_steps :]
    energy = [CMOS_45NM.microjoules(counter.macs_until(t), ac) for t, ac in enumerate(synops, 1 + snn.extra_steps)]
    return Evaluation(
        images=images,
        accuracy=(100 * right / images).tolist(),
        reference_accuracy=None if reference is None else 100 * reference_right / images,
        firing_rate={name: float(fired.sum()) / neurons[name] / steps / counted for name, fired in spikes.items()},
        neurons=sum(neurons.values()),
        spikes=(torch.stack([*spikes.values()]).sum(0).cumsum(0) / counted).tolist()[snn.extra_steps :],
        synops=synops,
        energy=energy,
        reference_energy=CMOS_45NM.microjoules(counter.dense_macs, counter.dense_sums),
        early_exit=None if stop is None else EarlyExit(stop, 100 * stopped_right / images, stopped_steps / images),
        image_macs=counter.macs,
        sent_once=counter.once,
        extra_steps=snn.extra_steps,
        reference_operations=Operations(counter.dense_macs, counter.dense_sums),
    )


@torch.no_grad()
def reference_accuracy(model: nn.Module, data: Any) -> float:
    """Accuracy of the ANN alone, in percent; data as for `evaluate`."""
    right = images = 0
    with _in_eval_mode(model):
        for x, y in labelled_batches(data):
            right += _right_by_reference(model, x, y)
            images += len(y)
    if not images:
        raise InputError("the data to evaluate on holds no images")
    return 100 * right / images


@contextmanager
def _in_eval_mode(model: nn.Module | None) -> Iterator[None]:
    """Put every part of a model into eval mode, and afterwards each back into the mode it was in."""
    modes = {} if model is None else {module: module.training for module in model.modules()}
    for module in modes:
        module.training = False
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _right_by_reference(reference: nn.Module, x: Tensor, y: Tensor) -> int:
    try:
        return int((reference(x).argmax(1) == y).sum())
    except Exception as error:
        raise InputError(f"the reference does not run on the data: {first_line(error)}") from error


def labelled_batches(data: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield (images, labels) of any form that `evaluate` takes, checked."""
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        _check_pair(*data)
        yield from zip(data[0].split(100), data[1].split(100), strict=True) if len(data[0]) else ()
        return
    if not isinstance(data, Iterable) or isinstance(data, Tensor | str):
        raise InputError("the data to evaluate on must give (images, labels) batches, or be a pair of two tensors")
    for entry in data:
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise InputError("the data to evaluate on must give (images, labels) pairs")
        _check_pair(*entry)
        if len(entry[0]):
            yield entry[0], entry[1]


def _check_pair(x: Any, y: Any) -> None:
    if not isinstance(x, Tensor):
        raise InputError(f"the images to evaluate on are a {type(x).__name__}, not a tensor")
    if not isinstance(y, Tensor) or y.ndim != 1 or len(y) != len(x) or y.is_floating_point() or y.is_complex():
        kind = f"{y.dtype} of shape {list(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
        raise InputError(f"the labels of {len(x)} images are {kind}: give one whole number for each image")
    if x.is_floating_point() and x.device.type != "meta" and not bool(torch.isfinite(x).all()):
        raise NotFiniteError("the images to evaluate on hold NaN or infinity: check how they are read and normalised")
