"""One layer of a network that is walked through: what a method may look at, and what it may change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.walk.flow import Flow
from ftbc.calibrate.walk.plan import Junction, factor, path
from ftbc.calibrate.walk.rows import at_positions, channel_dimension, matrix, patches
from ftbc.calibrate.walk.spikes import Weights
from ftbc.calibrate.walk.targets import Targets
from ftbc.graph.ops import Activation, Synapses
from ftbc.neuron.integrate_fire import IntegrateFire

_DENSE = 4
"""Above one position of so many it is faster to compute a layer's whole output than the chosen positions alone."""

_FEWEST = 4096
"""Neurons of a channel that are looked at however many steps there are."""


@dataclass(frozen=True)
class Sample:
    """Some neurons on some images: currents x ``[T, C, P]`` and the ANN's activations a ``[C, P]``.

    All processes that share the images have the whole sample: what is learnt from it needs no more talk.
    """

    x: Tensor
    a: Tensor


@dataclass(frozen=True)
class Synapse:
    """A layer whose weights may be chosen, and by how much its output counts at the junction: 1, or per channel."""

    name: str
    module: nn.Module
    factor: Tensor | float

    @property
    def groups(self) -> int:
        """In how many groups its channels fall."""
        return getattr(self.module, "groups", 1)

    def output(self, x: Tensor) -> Tensor:
        """What `patches` ``[rows, G, K]`` add to the junction: ``[rows, C]``."""
        y = torch.matmul(x.transpose(0, 1), matrix(self.module)).transpose(0, 1).flatten(1)
        bias: Tensor | None = self.module.bias  # type: ignore[assignment]
        return (y if bias is None else y + bias) * self.factor


@dataclass
class Layer:
    """A junction of synapses (see `plan`) and the neurons that read it, if any do.

    last: whether it is the last of the network; amplitude: what a spike of each channel is worth to those that read
    it, where that is to differ from the threshold.
    """

    calibration: Calibration
    flow: Flow
    targets: Targets
    junction: Junction
    last: bool = False
    amplitude: Tensor | None = None
    _sample: tuple[int, Sample] | None = field(default=None, repr=False)

    @property
    def steps(self) -> int:
        """The number of time steps."""
        return self.calibration.steps

    @property
    def neuron(self) -> IntegrateFire | None:
        """The neurons, None where nothing spikes."""
        site = self.junction.site
        module = None if site is None else self.calibration.snn[site].module
        return module if isinstance(module, IntegrateFire) else None

    @property
    def read_by_neurons(self) -> bool:
        """Whether other neurons lie behind these, whose b[t] can make up for means that change with t."""
        return self._read_by(Activation)

    @property
    def read_by_synapses(self) -> bool:
        """Whether weights lie behind these neurons, which can make up for what a spike is worth and for an offset."""
        return self._read_by(*Synapses)

    def _read_by(self, *kinds: type[nn.Module]) -> bool:
        """Whether anything behind the neurons, directly or not, is of one of these kinds."""
        ann, waiting, seen = self.calibration.ann, [self.junction.site], set()
        while waiting:
            name = waiting.pop()
            if name is None or name in seen:
                continue
            seen.add(name)
            readers = ann.users(name)
            if any(isinstance(reader.module, kinds) for reader in readers):
                return True
            waiting += [reader.name for reader in readers]
        return False

    @property
    def activation(self) -> Activation | None:
        """The ANN's activation in the place of the neurons."""
        site = self.junction.site
        module = None if site is None else self.calibration.ann[site].module
        return module if isinstance(module, Activation) else None

    @property
    def synapses(self) -> list[Synapse]:
        """The layers that lead to the junction."""
        found = []
        for name in self.junction.synapses:
            way = path(self.calibration.ann, self.calibration.ann[name])
            node = self.calibration.snn[name]
            channels = node.shape[channel_dimension(node.module, node.shape)]
            found.append(Synapse(name, node.module, factor(way, channels)))
        return found

    # ---- rows of the junction ----------------------------------------------------------------------------

    def parts(self) -> Iterator[tuple[int, Tensor]]:
        """The parts of the images, by number, and the positions of the rows in each, ``[n, k]``."""
        positions = self.targets.positions(self.junction.value)
        for part, start in enumerate(self.flow.starts()):
            yield part, positions[start : start + len(self.flow.parts[part])]

    def target(self, part: int) -> Tensor:
        """The ANN's value at the junction, ``[n k, C]``."""
        return self.targets.rows(self.junction.value, part)

    def inputs(self, part: int, positions: Tensor, weights: Weights | None) -> list[Tensor]:
        """What each of the `synapses` reads at positions ``[n, k]``, ``[n k, G, K]``: the mean over the steps, or
        without weights all steps one after another, ``[T n k, G, K]``."""
        found = []
        for synapse in self.synapses:
            name = self.calibration.snn[synapse.name].inputs[0]
            if weights is not None:
                found.append(patches(synapse.module, self.flow.mean(name, part, weights), positions))
            else:
                value = self.flow.over_time(name, part).flatten(0, 1)
                found.append(patches(synapse.module, value, positions.repeat(self.steps, 1)))
        return found

    def rest(self, part: int, positions: Tensor, weights: Weights | None) -> Tensor:
        """What reaches the junction beside the outputs of its synapses, as rows like `inputs`, ``[..., C]``."""
        shape = self.calibration.snn.shape(self.junction.value)
        if weights is None:
            positions = positions.repeat(self.steps, 1)
        nothing = self.flow.parts[part].new_zeros(len(positions), *[1] * len(shape))
        given = dict.fromkeys(self.junction.synapses, nothing)
        if weights is None:
            value = self.flow.over_time(self.junction.value, part, given).flatten(0, 1)
        else:
            value = self.flow.mean(self.junction.value, part, weights, given)
        return at_positions(value.expand(len(positions), *shape), self.junction.dim, positions)

    # ---- neurons -----------------------------------------------------------------------------------------

    def sample(self, currents: int) -> Sample:
        """About so many currents of a channel, over neurons and steps, as the network is now: more neurons where there
        are few steps, but no fewer than what many steps need, either."""
        rows = max(currents // self.steps, min(_FEWEST, currents))
        if self._sample is None or self._sample[0] != rows:
            self._sample = rows, self._take_sample(rows)
        return self._sample[1]

    def changed(self) -> None:
        """Say that currents are no longer what they were."""
        self._sample = None

    def _take_sample(self, rows: int) -> Sample:
        assert self.activation is not None
        key = at_neurons(self.junction)
        positions = self.targets.positions(key)
        count = min(positions.shape[1], -(-rows // len(positions)))
        x, a = [], []
        for part, start in enumerate(self.flow.starts()):
            some = positions[start : start + len(self.flow.parts[part]), :count]
            x.append(self._currents(part, some))
            z = self.targets.rows(key, part).unflatten(0, (len(some), positions.shape[1]))[:, :count].flatten(0, 1)
            a.append(self.activation(z))
        team = self.calibration.team
        currents, wanted = team.rows(torch.cat(x, 1).transpose(0, 1)).transpose(0, 1), team.rows(torch.cat(a))
        return Sample(currents.movedim(2, 1).contiguous(), wanted.t().contiguous())

    def _currents(self, part: int, positions: Tensor) -> Tensor:
        """The currents of the neurons at positions ``[n, k]``: ``[T, n k, C]``."""
        shape = self.calibration.snn.shape(self.junction.value)
        few = positions.shape[1] * _DENSE * shape[0] < torch.Size(shape).numel()
        if few and self.junction.dim == 0 and self.junction.synapses:
            x = self.rest(part, positions, None)
            for synapse, read in zip(self.synapses, self.inputs(part, positions, None), strict=True):
                x = x + synapse.output(read)
            return x.unflatten(0, (self.steps, -1))
        value = self.flow.over_time(self.junction.value, part)
        if value.stride(0) == 0:
            return at_positions(value[0], 0, positions).expand(self.steps, -1, -1)
        return at_positions(value.flatten(0, 1), 0, positions.repeat(self.steps, 1)).unflatten(0, (self.steps, -1))


def at_neurons(junction: Junction) -> str:
    """The key of the targets at neurons, whose channels always lie first."""
    return junction.value if junction.dim == 0 else f"{junction.value} of {junction.site}"
