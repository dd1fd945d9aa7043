"""One layer of neurons, made ready for the kernel: its weights in blocks, its jobs, its constants."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ftbc.graph.ir import Shape
from ftbc.simulate.event.aligned import aligned, room
from ftbc.simulate.event.cells import Cell
from ftbc.simulate.event.jobs import Job, jobs_of
from ftbc.simulate.event.kernel import (
    BITS,
    CHANNEL,
    COLLECT_1,
    COLLECT_9,
    COLUMN,
    COLUMNS,
    DIGIT,
    DIGITS,
    IMAGE,
    KIND,
    ROW,
    ROWS,
    SOURCE,
    STEP,
    TAP,
    TARGET,
    WEIGHTS,
    count_kernel,
    layer_kernel,
    put_scaled,
)
from ftbc.simulate.event.neurons import Place, RuledNeurons
from ftbc.simulate.event.packed import Packed, Pool, digits, pooled_shape
from ftbc.simulate.event.paths import plane
from ftbc.simulate.event.vector import in_stacks
from ftbc.threads import over_images
from ftbc.vectors import Block

WORTH_A_THREAD = 1 << 14
"""Neuron-steps that are worth a thread of their own."""

IN_CACHE = 8
"""Images whose membranes stay in the cache from one pass over them to the next."""


@dataclass
class _Part:
    """A block of channels: the job table, with addresses of sources still missing, and what its rows refer to."""

    table: np.ndarray
    sources: list[tuple[str, Pool]]
    weights: list[np.ndarray]
    start: np.ndarray
    bias: np.ndarray


@dataclass
class PartOfRun:
    """What the kernel is given for a block of channels: jobs, currents and shape; start and bias; where spikes go.

    neurons: those that are not plain.
    """

    given: tuple[np.ndarray, np.ndarray, np.ndarray]
    constants: tuple[np.ndarray, np.ndarray]
    sent: np.ndarray
    neurons: RuledNeurons | None


@dataclass
class Run:
    """Some images on their way through a layer. worth: in how many threads; held: what addresses point to."""

    out: Packed
    parts: list[PartOfRun]
    worth: int
    currents: np.ndarray | None
    held: object


class EventLayer:
    """Runs all steps of a cell for a batch of images.

    element: "int16" (numbers are times ``cell.grid``), "float32" or "float64". Around the membranes that fire, ``rows x
    columns``, lies a margin that spikes near the border reach and nobody reads: ``top`` rows above, ``left`` columns;
    ``height x width`` with it.
    """

    def __init__(self, cell: Cell, shapes: dict[str, Shape], element: str, density: Mapping[str, float]) -> None:
        self.cell = cell
        self.density = density
        self.element = element
        self.scale = cell.grid if element == "int16" else 1
        channels, self.rows, self.columns = plane(cell.shape)
        self.block = Block(element, 16 if channels <= 16 else 32 if channels <= 32 else 64)
        self.blocks = -(-channels // self.block.channels)
        jobs = [self._jobs(begin, shapes) for begin in self._begins()]
        every = [job for part in jobs for job in part]
        self.top = max([0, *(-job.target[0] for job in every)])
        self.left = max([0, *(-job.target[1] for job in every)])
        bottom = max([self.rows, *(job.target[0] + job.count[0] + job.reach[0] - 1 for job in every)])
        right = [job.target[1] + job.count[1] + job.reach[1] - 1 for job in every]
        self.height, self.width = self.top + bottom, self.left + max([self.columns, *right])
        self.parts = [self._part(part, begin, shapes) for part, begin in zip(jobs, self._begins(), strict=True)]
        self.own = None if cell.own is None else self._currents(cell.own.to(cell.bias), len(cell.own), 1)
        self.kernel = layer_kernel(element, self.block.channels)
        self.counter = count_kernel(element, self.block.channels)
        self._peaks = aligned(np.zeros(64), element)  # of single steps, which nobody reads: they run in floating point

    def _begins(self) -> range:
        return range(0, self.blocks * self.block.channels, self.block.channels)

    def _jobs(self, begin: int, shapes: dict[str, Shape]) -> list[Job]:
        found = [
            jobs_of(path, shapes[path.source], self.cell.shape, self.block, begin, self.density.get(path.source, 0.0))
            for path in self.cell.paths
            if path.weight is not None
        ]
        return [job for jobs in found for job in jobs]

    def _part(self, jobs: list[Job], begin: int, shapes: dict[str, Shape]) -> _Part:
        weights = self._shared([in_stacks(job.weights, self.block) if job.sums else job.weights for job in jobs])
        table = np.zeros((len(jobs), DIGIT + 1), np.int64)
        for row, job, numbers in zip(table, jobs, weights, strict=True):
            source, pool = job.source
            channels, _, width = pooled_shape(shapes[source], pool)
            pixel = 8 * -(-channels // 64) * digits(pool) * job.planes
            collects = job.kind in (COLLECT_1, COLLECT_9)
            row[KIND] = job.kind
            row[SOURCE] = job.first[0] * width * pixel + job.first[1] * pixel + 8 * job.first[2]
            row[ROW], row[COLUMN] = job.step[0] * width * pixel, job.step[1] * pixel
            row[ROWS], row[COLUMNS] = job.count
            row[WEIGHTS] = numbers.ctypes.data
            row[CHANNEL] = width * pixel if collects else job.reach[0] * job.reach[1] * self.block.size
            row[TARGET] = self._offset(*job.target)
            row[BITS] = job.bits
            row[TAP] = pixel
            row[DIGITS], row[DIGIT] = job.digits, pixel // digits(pool)
        start, bias = self._start(begin), self._repeated(self.cell.bias, begin)
        return _Part(table, [job.source for job in jobs], weights, start, bias)

    def _shared(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Weights in the numbers of the layer; equal ones once."""
        known: dict[bytes, np.ndarray] = {}
        found = []
        for array in arrays:
            key = hashlib.sha256(array.tobytes()).digest()
            if key not in known:
                known[key] = aligned(array * self.scale, self.element)
            found.append(known[key])
        return found

    def _offset(self, row: int, column: int) -> int:
        return ((row + self.top) * self.width + column + self.left) * self.block.size

    def _start(self, begin: int) -> np.ndarray:
        """The block's initial potentials, for each channel or for each membrane."""
        initial = self.cell.initial
        if initial.ndim == 1:
            return self._constant(initial, begin)
        part = initial[begin : begin + self.block.channels].movedim(0, -1).numpy() * self.scale
        room = np.zeros((self.height, self.width, self.block.channels))
        room[self.top : self.top + self.rows, self.left : self.left + self.columns, : part.shape[-1]] = part
        return aligned(room.reshape(-1), self.element)

    def _constant(self, values: Tensor, begin: int) -> np.ndarray:
        """The block's entries of a constant per channel, filled up with what never fires."""
        numbers = values[..., begin : begin + self.block.channels].double().numpy() * self.scale
        filled = np.zeros((*numbers.shape[:-1], self.block.channels))
        filled[..., : numbers.shape[-1]] = numbers
        return aligned(filled, self.element)

    def _repeated(self, values: Tensor, begin: int) -> np.ndarray:
        """As `_constant`, as often as it takes to fill a word."""
        return aligned(np.tile(self._constant(values, begin), 64 // self.block.channels), self.element)

    def run(self, sources: dict[str, Packed], current: Tensor | None, steps: int, images: int) -> tuple[Packed, float]:
        """The spikes, and the largest size that a membrane was left with.

        current: ``[N, ...]`` or ``[T * N, ...]``, added at each step.
        """
        run = self._prepared(sources, current, steps, images)
        if self.cell.rule is not None:
            for part in run.parts:
                charge_and_fire = functools.partial(self._step_by_step, part, self._membranes(images), steps)
                over_images(charge_and_fire, images, run.worth)
            return run.out, 0.0
        peak = 0.0
        for part in run.parts:
            peaks: list[float] = []

            def share(first: int, last: int, part=part, peaks=peaks) -> None:  # type: ignore[no-untyped-def]
                v, seen = self._membranes(1), aligned(np.zeros(64), self.element)
                self.kernel(*part.given, v, *part.constants, seen, part.sent, 0, 2 * steps, first, last)
                peaks.append(float(seen.max()))

            over_images(share, images, run.worth)
            peak = max(peak, *peaks)
        return run.out, peak

    def _step_by_step(self, part: PartOfRun, v: np.ndarray, steps: int, first: int, last: int) -> None:
        """All steps of neurons that are not plain, a few images after another."""
        for begin in range(first, last, IN_CACHE):
            end = min(begin + IN_CACHE, last)
            for t in range(steps):
                self._charge(part, v, t, begin, end)
                self._fire(part, v, t, begin, end)

    def _charge(self, part: PartOfRun, v: np.ndarray, t: int, first: int, last: int) -> None:
        """Bring the events of step t to the membranes ``[N, cells]`` of some images."""
        self.kernel(*part.given, v, *part.constants, self._peaks, part.sent, 2 * t, 2 * t + 1, first, last)

    def _fire(self, part: PartOfRun, v: np.ndarray, t: int, first: int, last: int) -> None:
        """Let charged membranes fire at step t."""
        if part.neurons is not None:
            part.neurons.fire(v, t, first, last)
            return
        self.kernel(*part.given, v, *part.constants, self._peaks, part.sent, 2 * t + 1, 2 * t + 2, first, last)

    def _prepared(self, sources: dict[str, Packed], current: Tensor | None, steps: int, images: int) -> Run:
        out = Packed.empty(images, steps, self.cell.shape, self.cell.coding)
        pixel = out.words.strides[3]
        shape = np.array(
            [self.rows, self.columns, self.width * self.block.size, self._offset(0, 0), pixel, self.scale], np.int64
        )
        currents = self.own
        if current is not None:
            currents = self._currents(current, steps, images)
            currents = currents if self.own is None else currents + self.own[:, :steps]
        counted = {key: sources[key[0]].pooled(key[1]) for part in self.parts for key in set(part.sources)}
        parts = []
        for index, part in enumerate(self.parts):
            sent = np.array([out.words.ctypes.data + 8 * index, *out.words.strides[:2]], np.int64)
            given = (_addressed(part, counted), self._current_at(currents, index), shape)
            start, neurons = part.start, None
            if self.cell.rule is not None:
                place = self._place(index)
                neurons = RuledNeurons(self.cell.rule, self.block, place, part.start, part.bias, currents, out)
                start = np.zeros_like(start) if out.coding.changes else start  # then v holds what arrived alone
            parts.append(PartOfRun(given, (start, part.bias), sent, neurons))
        worth = images * steps * self.rows * self.columns * self.block.channels // WORTH_A_THREAD
        return Run(out, parts, worth, currents, counted)

    def _place(self, index: int) -> Place:
        channels = self.block.channels
        row, begin = self.width * channels, self._offset(0, 0) * channels // self.block.size
        return Place(self.rows, self.columns, row, begin, self.height * row, index)

    def _membranes(self, images: int) -> np.ndarray:
        return room((images, self.height * self.width * self.block.channels), self.element)

    def _current_at(self, currents: np.ndarray | None, index: int) -> np.ndarray:
        """Where the kernel finds the currents of a block."""
        if currents is None:
            return np.zeros(5, np.int64)
        image, step, row, column = currents.strides[:4]
        begin = currents.ctypes.data + index * self.block.size
        # What all images, or all steps, share lies there once.
        image, step = (
            0 if length == 1 else stride for length, stride in zip(currents.shape, (image, step), strict=False)
        )
        return np.array([begin, image, step, row, column], np.int64)

    def _currents(self, current: Tensor, steps: int, images: int) -> np.ndarray:
        """Currents as ``[N, 1 or T, rows, columns, channels]`` in the layer's own numbers."""
        channels, rows, columns = plane(self.cell.shape)
        values = current.view(-1, images, channels, rows, columns).permute(1, 0, 3, 4, 2).contiguous()
        wide = self.blocks * self.block.channels
        room = np.empty((*values.shape[:4], wide), self.element)
        # In numbers of their own kind: times the scale, they are whole.
        scale, step = (values.new_tensor(number).numpy()[()] for number in (self.scale, self.cell.step))
        put_scaled(values.view(-1, channels).numpy(), scale, step, room.reshape(-1, wide))
        return room


def _addressed(part: _Part, sources: Mapping[tuple[str, Pool], Packed]) -> np.ndarray:
    """The job table with the addresses of this run."""
    table = part.table.copy()
    for row, source in zip(table, part.sources, strict=True):
        words = sources[source].words
        row[SOURCE] += words.ctypes.data
        row[IMAGE], row[STEP] = words.strides[:2]
    return table
