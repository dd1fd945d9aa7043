"""What is counted while a spiking network classifies images: whole numbers, whose sums no order or sharing changes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ftbc.errors import InputError, first_line
from ftbc.graph.ir import Node
from ftbc.measure.early_exit import EarlyExit
from ftbc.measure.energy import CMOS_45NM, Operations
from ftbc.measure.evaluation import Evaluation
from ftbc.measure.events import of_neurons
from ftbc.measure.operations import OperationCounter
from ftbc.network import SpikingNetwork
from ftbc.simulate import Confidence, steps_until

_SINGLES = ("counted", "right by reference", "right when stopped", "steps when stopped")


class Tally:
    """The counts of an evaluation, in one tensor ``counts``, so that they can be added up, kept and taken up again.

    counted_images: operations and firing rates are counted on so many images, the first of all.
    """

    def __init__(
        self,
        snn: SpikingNetwork,
        reference: nn.Module | None,
        stop: Confidence | None,
        engine: str,
        counted_images: int,
    ) -> None:
        self.snn, self.reference, self.stop, self.engine, self.counted_images = (
            snn, reference, stop, engine, counted_images,
        )  # fmt: skip
        steps = snn.extra_steps + snn.steps
        self.place = next((tensor.device for tensor in snn.state_dict().values()), torch.device("cpu"))
        self.counter = OperationCounter(snn.graph, steps)
        neurons = of_neurons(snn.graph)
        self.events = {**self.counter.events, **neurons}
        self.neurons = {name: torch.Size(snn.graph.shape(name)).numel() for name in neurons}
        self.on_events = engine == "event" and self._counted_by_events()
        sizes = [snn.steps, steps, *[steps] * len(self.neurons), len(_SINGLES)]
        self.counts = torch.zeros(sum(sizes), dtype=torch.float64)
        self.right, self.synops, *spikes, singles = self.counts.split(sizes)  # views: what is written there is kept
        self.spikes = dict(zip(self.neurons, spikes, strict=True))
        self.singles = dict(zip(_SINGLES, singles, strict=True))
        self.counter.synops = self.synops

    def take(self, x: Tensor, y: Tensor, begins: int) -> None:
        """Classify a batch, whose first image has the number ``begins`` among all."""
        x, y = x.to(self.place), y.to(self.place)
        watched = min(len(x), max(0, self.counted_images - begins))
        parts = [self._watched(x[:watched])] if watched else []
        parts += [self.snn(x[watched:], head=False, engine=self.engine)] if watched < len(x) else []
        means = torch.cat(parts, 1)
        outputs = self.snn.read_out(means)
        if outputs.ndim != 3:
            raise InputError(f"accuracy needs one score per class, but the network gives {list(outputs.shape[2:])}")
        hits = outputs.argmax(2) == y
        self.right += hits.sum(1).double().cpu()
        self.singles["counted"] += watched
        if self.stop is not None:
            taken = steps_until(self.stop, means)
            self.singles["right when stopped"] += int(hits.gather(0, taken.unsqueeze(0) - 1).sum())
            self.singles["steps when stopped"] += int(taken.sum())
        if self.reference is not None:
            self.singles["right by reference"] += right_by(self.reference, x, y)

    def evaluation(self, images: int) -> Evaluation:
        """What the counts say of so many images."""
        snn, counter, spikes = self.snn, self.counter, self.spikes
        counted, by_reference, stopped_right, stopped_steps = map(float, self.singles.values())
        steps = snn.extra_steps + snn.steps
        synops = (self.synops.cumsum(0) / counted).tolist()[snn.extra_steps :]
        energy = [CMOS_45NM.microjoules(counter.macs_until(t), ac) for t, ac in enumerate(synops, 1 + snn.extra_steps)]
        stopped = (100 * stopped_right / images, stopped_steps / images)
        return Evaluation(
            images=images,
            accuracy=(100 * self.right / images).tolist(),
            reference_accuracy=None if self.reference is None else 100 * by_reference / images,
            firing_rate={name: float(s.sum()) / self.neurons[name] / steps / counted for name, s in spikes.items()},
            neurons=sum(self.neurons.values()),
            spikes=(torch.stack([*spikes.values()]).sum(0).cumsum(0) / counted).tolist()[snn.extra_steps :],
            synops=synops,
            energy=energy,
            reference_energy=CMOS_45NM.microjoules(counter.dense_macs, counter.dense_sums),
            early_exit=None if self.stop is None else EarlyExit(self.stop, *stopped),
            image_macs=counter.macs,
            sent_once=counter.once,
            extra_steps=snn.extra_steps,
            reference_operations=Operations(counter.dense_macs, counter.dense_sums),
        )

    def _counted_by_events(self) -> bool:
        """Whether the event engine counts all that is counted here: one spike a value, on its way to the weights."""
        one_each = all(count.sends == "spikes" for count in self.events.values())
        return one_each and self.events.keys() <= self.snn.counted_on_events()

    def _watched(self, x: Tensor) -> Tensor:
        """Run images while their spikes are counted."""
        if self.on_events:
            return self.snn(x, head=False, engine="event", count=self._add)
        return self.snn(x, head=False, observe=self._observe)

    def _observe(self, node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if node.name in self.events:
            self._add(node.name, self.events[node.name](output, start).sum(1, dtype=torch.float32), start)

    def _add(self, name: str, spikes: Tensor, start: int = 0) -> None:
        """Take the spikes ``[steps, ...]`` behind a value, of several images together, from step ``start`` on."""
        spikes = spikes.flatten(1).double().cpu()
        self.counter.add(name, spikes, start)
        if name in self.spikes:
            self.spikes[name][start : start + len(spikes)] += spikes.sum(1)


def right_by(classify: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> int:
    """How many images a network of the user's classifies rightly."""
    try:
        return int((classify(x).argmax(1) == y).sum())
    except Exception as error:
        raise InputError(f"the reference does not run on the data: {first_line(error)}") from error
