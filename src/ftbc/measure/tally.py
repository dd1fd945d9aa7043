"""What is counted while a spiking network sees images: sums, so that images can be shared out and taken up again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ftbc.errors import InputError, first_line
from ftbc.graph.ir import Node
from ftbc.measure.early_exit import EarlyExit
from ftbc.measure.energy import CMOS_45NM, Operations
from ftbc.measure.evaluation import Evaluation
from ftbc.measure.events import of_neurons
from ftbc.measure.operations import SynapticOperations
from ftbc.measure.output_error import OutputError
from ftbc.network import SpikingNetwork
from ftbc.simulate import Confidence, steps_until
from ftbc.simulate.scales import Scales
from ftbc.simulate.schedule import require_single_steps

_SINGLES = ("counted", "labelled", "right by reference", "right when stopped", "steps when stopped")


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
        if stop is not None or engine == "stepwise":
            require_single_steps(snn.graph)
        steps = snn.extra_steps + snn.steps
        self.place = next((tensor.device for tensor in snn.state_dict().values()), torch.device("cpu"))
        self.operations = SynapticOperations(snn.graph)
        neurons = of_neurons(snn.graph)
        self.events = {**self.operations.events, **neurons}
        self.neurons = {name: torch.Size(snn.graph.shape(name)).numel() for name in neurons}
        self.weights = {name: self._weights(name) for name in self.events}
        self.on_events = engine == "event" and self._weighed_on_events()
        self.shape = snn.graph.shape(snn.graph.output)
        errors = 0 if reference is None else OutputError.size(snn.steps, self.shape)
        sizes = [snn.steps, steps, *[steps] * len(self.neurons), len(_SINGLES), errors]
        self.counts = torch.zeros(sum(sizes), dtype=torch.float64)
        # Views: what is written there is kept.
        self.right, self.synops, *spikes, singles, errors = self.counts.split(sizes)
        self.error = None if reference is None else OutputError(errors, snn.steps)
        self.spikes = dict(zip(self.neurons, spikes, strict=True))
        self.singles = dict(zip(_SINGLES, singles, strict=True))

    def take(self, x: Tensor, y: Tensor | None, begins: int) -> None:
        """Run a batch, whose first image has the number ``begins`` among all; y: its labels, if it has any."""
        x = x.to(self.place)
        watched = min(len(x), max(0, self.counted_images - begins))
        parts = [self._watched(x[:watched])] if watched else []
        parts += [self.snn(x[watched:], head=False, engine=self.engine)] if watched < len(x) else []
        means = torch.cat(parts, 1)
        outputs = self.snn.read_out(means)
        self.singles["counted"] += watched
        z = None if self.reference is None else answers(self.reference, x)
        if self.error is not None and z is not None:
            self.error.take(outputs, z)
        if y is not None:
            self._classify(outputs, means, y.to(self.place), z)

    def _classify(self, outputs: Tensor, means: Tensor, y: Tensor, z: Tensor | None) -> None:
        """Compare answers with labels: those after each step, those of images that stop early, and the reference's."""
        require_scores(outputs.shape[2:])
        classes, lowest, highest = outputs.shape[2], int(y.min()), int(y.max())
        if lowest < 0 or highest >= classes:
            raise InputError(
                f"there are labels from {lowest} to {highest}, but the network has {classes} classes, which are "
                f"numbered from 0 to {classes - 1}: check the labels"
            )
        hits = outputs.argmax(2) == y
        self.right += hits.sum(1).double().cpu()
        self.singles["labelled"] += len(y)
        if self.stop is not None:
            taken = steps_until(self.stop, means)
            self.singles["right when stopped"] += int(hits.gather(0, taken.unsqueeze(0) - 1).sum())
            self.singles["steps when stopped"] += int(taken.sum())
        if z is not None:
            self.singles["right by reference"] += int((z.argmax(1) == y).sum())

    def evaluation(self, images: int) -> Evaluation:
        """What the counts say of so many images."""
        snn, operations, spikes = self.snn, self.operations, self.spikes
        counted, labelled, by_reference, stopped_right, stopped_steps = map(float, self.singles.values())
        steps = snn.extra_steps + snn.steps
        synops = (self.synops.cumsum(0) / counted).tolist()[snn.extra_steps :]
        energy = [
            CMOS_45NM.microjoules(operations.macs_until(t), ac) for t, ac in enumerate(synops, 1 + snn.extra_steps)
        ]
        stopped = (100 * stopped_right / max(labelled, 1), stopped_steps / max(labelled, 1))
        return Evaluation(
            images=images,
            accuracy=(100 * self.right / labelled).tolist() if labelled else [],
            reference_accuracy=None if self.reference is None or not labelled else 100 * by_reference / labelled,
            error=None if self.error is None else self.error.relative(images, self.shape),
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


def require_scores(shape: Sequence[int]) -> None:
    """Refuse to count right answers of a network that gives none."""
    if len(shape) != 1 or shape[0] < 2:
        raise InputError(
            f"accuracy needs one score per class, but the network gives {list(shape)} for an image: use ftbc evaluate, "
            "or in Python images without labels and reference=, which compares outputs"
        )


def answers(model: nn.Module, x: Tensor) -> Tensor:
    """What a network of the user's gives for images."""
    try:
        found = model(x.clone())  # a forward may write into its input
    except Exception as error:
        raise InputError(f"the reference does not run on the data: {first_line(error)}") from error
    found = found[0] if isinstance(found, tuple | list) and len(found) == 1 else found  # as `convert` reads it
    if not isinstance(found, Tensor):
        raise InputError(f"the reference gives a {type(found).__name__}, not a tensor")
    return found
