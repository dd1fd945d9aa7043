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
from ftbc.measure.operations import SynapticOperations
from ftbc.network import SpikingNetwork
from ftbc.simulate import Confidence, steps_until
from ftbc.simulate.scales import Scales

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
        self.operations = SynapticOperations(snn.graph)
        neurons = of_neurons(snn.graph)
        self.events = {**self.operations.events, **neurons}
        self.neurons = {name: torch.Size(snn.graph.shape(name)).numel() for name in neurons}
        self.weights = {name: self._weights(name) for name in self.events}
        self.on_events = engine == "event" and self._weighed_on_events()
        sizes = [snn.steps, steps, *[steps] * len(self.neurons), len(_SINGLES)]
        self.counts = torch.zeros(sum(sizes), dtype=torch.float64)
        self.right, self.synops, *spikes, singles = self.counts.split(sizes)  # views: what is written there is kept
        self.spikes = dict(zip(self.neurons, spikes, strict=True))
        self.singles = dict(zip(_SINGLES, singles, strict=True))

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
        snn, operations, spikes = self.snn, self.operations, self.spikes
        counted, by_reference, stopped_right, stopped_steps = map(float, self.singles.values())
        steps = snn.extra_steps + snn.steps
        synops = (self.synops.cumsum(0) / counted).tolist()[snn.extra_steps :]
        energy = [
            CMOS_45NM.microjoules(operations.macs_until(t), ac) for t, ac in enumerate(synops, 1 + snn.extra_steps)
        ]
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
            reference_energy=CMOS_45NM.microjoules(operations.dense_macs, operations.dense_sums),
            early_exit=None if self.stop is None else EarlyExit(self.stop, *stopped),
            image_macs=operations.macs,
            sent_once=operations.once,
            extra_steps=snn.extra_steps,
            reference_operations=Operations(operations.dense_macs, operations.dense_sums),
        )

    def _weights(self, name: str) -> Tensor:
        """What is counted of a spike at each place of a value, ``[2, ...]``: the spike of a neuron, and its SynOps."""
        nothing = torch.zeros(self.snn.graph.shape(name), dtype=torch.float64)
        return torch.stack([nothing + (name in self.neurons), self.operations.reached.get(name, nothing)])

    def _weighed_on_events(self) -> bool:
        """Whether the event engine sees all that is counted here: one spike a value, on its way to the weights."""
        one_each = all(count.sends == "spikes" for count in self.events.values())
        return one_each and self.weights.keys() <= self.snn.weighed_on_events()

    def _watched(self, x: Tensor) -> Tensor:
        """Run images while their spikes are counted."""
        scales = Scales(self.weights, len(self.synops))

        def observe(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
            if node.name in self.events:
                spikes = self.events[node.name](output, start).sum(1, dtype=torch.float32)
                scales.add(node.name, spikes.flatten(1).double().cpu() @ self.weights[node.name].flatten(1).t(), start)

        if self.on_events:
            outputs = self.snn(x, head=False, engine="event", scales=scales)
        else:
            outputs = self.snn(x, head=False, observe=observe)
        for name, sums in scales.sums.items():
            sent, operations = sums.unbind(1)
            self.synops += operations
            if name in self.spikes:
                self.spikes[name] += sent
        return outputs


def right_by(classify: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> int:
    """How many images a network of the user's classifies rightly."""
    try:
        return int((classify(x).argmax(1) == y).sum())
    except Exception as error:
        raise InputError(f"the reference does not run on the data: {first_line(error)}") from error
