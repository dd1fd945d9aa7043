"""Refit of the incoming weights, in closed form: the best synapses for the spikes that really arrive.

A layer's weights were trained for activations; it receives spikes, whose mean over the steps differs from them. With

    x   patches of the mean spikes (what the weights W read),   z   the ANN's value at the same place,
    r = z - x W - bias - (what arrives on other ways)

the change of weights that repairs most, in the mean square over rows of the calibration images, is that of ridge
regression (`least_squares.py`):

    dW = (Cov x + ridge diag(Cov x))^-1 Cov(x, r) ,   dbias = mean r - mean(x) dW

The ridge of each layer is the one that fits the other half of the images best: few images must not change much.

The target z is taken behind the sum of a residual block, so that the convolution also repairs what the shortcut lost.
Layers that meet in one sum are fitted together; those with groups, for each group, one after another.

*What does not matter* (``rounds``). Where the ANN's activation is flat any prediction on that side is as good. So the
target there is relaxed to the prediction (`relaxation.py`), and the system solved again with the same factor.

*Partial sums* (``partial``). Layers behind act before all T steps are over. So rows for the mean over the first t < T
steps are added, with the same targets and weight ``partial`` (t/T)^2, t drawn for each image, and an offset of
their own for each t, which b[t] can make up for: the refit learns to be right early. For a network that is read at any
step (``anytime``) t is drawn so that each doubling of the time is as frequent, and the weight is ``partial`` from the
fourth step on, the first that is worth reading, and ``partial`` (t/4)^2 before it: what is left to be right early for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from ftbc.calibrate.base import Calibration
from ftbc.calibrate.least_squares import Block, Ridge
from ftbc.calibrate.relaxation import FlatEnds, Relaxation
from ftbc.calibrate.walk import Layer, LayerCalibrator
from ftbc.calibrate.walk.layer import Synapse
from ftbc.calibrate.walk.rows import add_to_bias, matrix, rows_per_image, set_matrix
from ftbc.errors import RecipeError
from ftbc.processes import Team

FIRST = 4
"""From this step on a network that is read at any step has answers worth reading."""

_MOST_CELLS = 1 << 28
"""Numbers of all rows together: 1 GiB of float32."""

_BLOCK = 1 << 19
"""Numbers of one block of rows."""


@dataclass(frozen=True)
class Refit(LayerCalibrator):
    """Ridge regression of each layer's weights on the spikes it receives.

    ridge: penalty relative to the variance of each input, 0 to choose it for each layer on two halves of the images;
    rounds: how often targets are relaxed where the activation is flat; partial: weight of the rows for partial sums, 0
    for none; anytime: whether partial sums count as in a network that is read at any step; last: also the last layer,
    which `ReadOut` would refit in another way; rows: about how many are used (of each 1,024 images, if there are more).
    """

    ridge: float = 0.0
    rounds: int = 4
    partial: float = 0.5
    anytime: bool = False
    last: bool = True
    rows: int = 65536

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.ridge, self.rounds, self.partial) < 0:
            raise RecipeError(f"{self}: ridge, rounds and partial must not be negative")

    def require(self, calibration: Calibration) -> None:
        """It looks at what neurons send alone, whatever they are, but partial sums need one step after another."""
        if self.partial:
            calibration.stepped_neurons("Refit with partial > 0")

    def at(self, layer: Layer) -> None:
        """Refit the synapses of one layer."""
        if layer.last and not self.last:
            return
        ends = FlatEnds.of(layer.activation) if layer.junction.alone else None
        means = whole_and_partial(layer, self.partial, self.anytime)
        refit(layer, means, self.rows, self.ridge, ends, self.rounds)


Means: TypeAlias = Callable[[int], "list[Mean]"]
"""Which means over the steps to take rows from, on so many images."""


def whole_and_partial(layer: Layer, partial: float, anytime: bool = False) -> Means:
    """The mean over all steps, and with weight ``partial`` one over the first t, drawn for each image."""
    T, generator = layer.steps, layer.calibration.generator

    def means(images: int) -> list[Mean]:
        every = torch.full((T, images), 1 / T, dtype=torch.float64)
        whole = Mean(every, torch.ones(images), torch.full((images,), T - 1))
        if T == 1 or not partial:
            return [whole]
        if anytime:
            length = octaves(T, images, generator)
            share = (length.clamp(max=FIRST) / FIRST) ** 2
        else:
            length = torch.randint(1, T, (images,), generator=generator)
            share = (length / T) ** 2
        before = torch.arange(T).unsqueeze(1) < length
        return [whole, Mean(before / length.double(), partial * share, length - 1)]

    return means


def octaves(steps: int, images: int, generator: torch.Generator) -> Tensor:
    """A number of steps t below T = ``steps`` for each image, each doubling of the time alike often."""
    return (steps ** torch.rand(images, generator=generator)).long().clamp(max=steps - 1)


@dataclass(frozen=True)
class Mean:
    """A mean over the steps that rows are taken from, for each of n images: weights of the steps ``[T, n]``, the
    weight of its rows ``[n]``, and the part of the regression that they belong to ``[n]``, the last being whole."""

    weights: Tensor
    share: Tensor
    part: Tensor


def refit(
    layer: Layer, means: Means, rows: int, ridge: float, relaxation: Relaxation | None = None, rounds: int = 0
) -> None:
    """Refit the synapses that lead to a layer's junction, if there are any, and relax targets so often."""
    if not layer.junction.synapses:
        return
    together = [index for index, synapse in enumerate(layer.synapses) if synapse.groups == 1]
    alone = [[index] for index, synapse in enumerate(layer.synapses) if synapse.groups > 1]
    team = layer.calibration.team
    for chosen in [together] * bool(together) + alone:
        blocks, now, z = _gather(layer, chosen, means, rows)
        fit = Ridge(blocks, layer.steps, team)
        wanted = [y - have for y, have in zip(z, now, strict=True)]
        penalty = ridge or fit.choose(wanted)
        D, offset = fit.solve(wanted, penalty)
        if relaxation is not None:
            found = list(zip(blocks, now, z, strict=True))
            slack = relaxation.margin * _error(found, D, offset, team) if relaxation.margin else z[0].new_zeros(())
            for _ in range(rounds):
                targets = (relaxation(y, predicted(b, have, D, offset), b.part, slack) - have for b, have, y in found)
                D, offset = fit.solve(targets, penalty)
        # The last part holds the rows of all T steps: its offset is the bias.
        change([layer.synapses[index] for index in chosen], D, offset[-1])
    layer.changed()


def _error(found: Sequence[tuple[Block, Tensor, Tensor]], D: Tensor, offset: Tensor, team: Team) -> Tensor:
    """The root mean square of what a fit leaves of each output, ``[G, M]``."""
    outputs = found[0][2]
    squares = torch.zeros(outputs.shape[1:].numel(), dtype=torch.float64, device=outputs.device)
    weights = squares.new_zeros(())
    for block, have, y in found:
        squares += block.weight @ (y - predicted(block, have, D, offset)).square_().flatten(1)
        weights += block.weight.sum()
    return (team.sum(squares) / team.sum(weights)).sqrt().view(outputs.shape[1:]).to(outputs)


def _gather(layer: Layer, chosen: list[int], means: Means, rows: int) -> tuple[list[Block], list[Tensor], list[Tensor]]:
    """Inputs of the chosen synapses, what the junction has now, and what the ANN has there, ``[R, G, ...]``."""
    synapses = layer.synapses
    groups = synapses[chosen[0]].groups
    columns = sum(matrix(synapses[index].module).shape[:2].numel() for index in chosen)
    total = len(layer.calibration.images)
    count = min(rows_per_image(rows, total), -(-_MOST_CELLS // (columns * len(means(1)) * total)))
    blocks, now, z = [], [], []
    # The means of the parts of other processes are drawn, too: chance must run on alike in all of them.
    drawn = [means(size) for size in layer.flow.sizes][layer.flow.before :]
    for part, positions in layer.parts():
        some = positions[:, :count]
        n, k = some.shape
        target = layer.target(part).unflatten(0, positions.shape)[:, :k].flatten(0, 1)
        for mean in drawn[part] if n else means_of_none(layer.steps):
            weights = mean.weights.to(target)
            read = layer.inputs(part, some, weights)
            have = layer.rest(part, some, weights)
            for synapse, x in zip(synapses, read, strict=True):
                have = have + synapse.output(x)
            x = read[chosen[0]] if len(chosen) == 1 else torch.cat([read[index] for index in chosen], 2)
            share, number = mean.share.to(target), mean.part.to(target.device)
            for fold, half in enumerate((slice(0, n // 2), slice(n // 2, n))):
                # Blocks that stay in the cache while a round predicts, relaxes and adds up.
                for images in _cut(half, most=max(1, _BLOCK // (k * columns))):
                    cut = slice(images.start * k, images.stop * k)
                    weight, at = share[images].repeat_interleave(k), number[images].repeat_interleave(k)
                    blocks.append(Block(x[cut], weight, at, fold))
                    now.append(have[cut].unflatten(1, (groups, -1)))
                    z.append(target[cut].unflatten(1, (groups, -1)))
    return blocks, now, z


def means_of_none(steps: int) -> list[Mean]:
    """Of a process that has no images: rows of the right shape, but none."""
    return [Mean(torch.zeros(steps, 0, dtype=torch.float64), torch.zeros(0), torch.zeros(0, dtype=torch.int64))]


def _cut(whole: slice, most: int) -> Iterator[slice]:
    """Parts of a range, none longer than ``most``; an empty one of an empty range."""
    for start in range(whole.start, max(whole.stop, whole.start + 1), most):
        yield slice(start, min(start + most, whole.stop))


def predicted(block: Block, now: Tensor, D: Tensor, offset: Tensor) -> Tensor:
    """What the junction would have with the change D, ``[R, G, M]``; offset: ``[parts, G, M]``."""
    x = torch.matmul(block.x.transpose(0, 1), D.to(block.x)).transpose(0, 1)
    return x.add_(now).add_(offset.to(x)[block.part])


def change(synapses: list[Synapse], D: Tensor, offset: Tensor) -> None:
    """Add a change ``[G, K, M]`` at the junction to the weights of synapses side by side, and an offset ``[G, M]``."""
    begin = 0
    for place, synapse in enumerate(synapses):
        old = matrix(synapse.module)
        factor = torch.as_tensor(synapse.factor, dtype=D.dtype, device=D.device).expand(offset.numel())
        part = D[:, begin : begin + old.shape[1]] / factor.view(offset.shape).unsqueeze(1)
        set_matrix(synapse.module, (old + part).to(old.dtype))
        if place == 0:
            add_to_bias(synapse.module, (offset.flatten() / factor).to(old.dtype))
        begin += old.shape[1]
