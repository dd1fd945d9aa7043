"""The spiking network that a conversion gives back."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from ftbc.errors import InputError, NotFiniteError
from ftbc.graph.ir import Graph
from ftbc.graph.precision import without_autocast
from ftbc.neuron import Spiking
from ftbc.neuron.scale import scale_thresholds_to_one
from ftbc.recipe import Recipe
from ftbc.simulate import (
    Confidence,
    Reader,
    Stepper,
    event_engine,
    extra_steps,
    layerwise,
    read,
    require_engine,
    run_until,
    stepwise,
)
from ftbc.simulate.early_exit import require_rule
from ftbc.simulate.event.cells import numbers_by_layer
from ftbc.simulate.layerwise import Observer
from ftbc.simulate.scales import Scales
from ftbc.simulate.schedule import together
from ftbc.simulate.sums import needs

if TYPE_CHECKING:
    from ftbc.simulate.event.engine import EventEngine

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Layer:
    """A row of `SpikingNetwork.layers`: one spiking layer.

    threshold: the mean over the layer; firing_rate: spikes per neuron and step; error: mean square of (average
    spikes - activation) over the mean square of the activation. The last two are measured on calibration images.
    events: how the event engine brings this layer its spikes: one by one, in numbers of "int16", "float32" or
    "float64", or "dense" (by torch, as all other engines do).
    """

    name: str
    shape: tuple[int, ...]
    threshold: float
    firing_rate: float
    error: float
    events: str


@dataclass(frozen=True, eq=False)  # tensors have no single answer to ==
class Prediction:
    """What `SpikingNetwork.predict` says of N images.

    classes: ``[N]``, the class of the largest output; steps: ``[N]``, how many steps each image took; outputs:
    ``[N, classes]``, the mean output over these steps, in the ANN's own units.
    """

    classes: Tensor
    steps: Tensor
    outputs: Tensor


def _undisturbed(
    run: Callable[Concatenate[SpikingNetwork, P], R],
) -> Callable[Concatenate[SpikingNetwork, P], R]:
    """Let one caller run the network at a time, because neurons hold their state, and outside of any autocast."""

    @functools.wraps(run)
    def alone(network: SpikingNetwork, *given: P.args, **named: P.kwargs) -> R:
        with network._lock, without_autocast():
            return run(network, *given, **named)

    return alone


class SpikingNetwork(nn.Module):
    """A converted network: `graph` with neurons, to be run for up to ``steps`` steps.

    ``snn(x)`` gives ``[T, N, ...]``: entry t is the mean output of the first t + 1 steps, in the ANN's own units.
    readout: how that mean weighs the steps, where a method calibrates it (see `simulate/readout.py`); with it a method
    can also take ``extra_steps`` before those that it is read at. None: all steps alike.
    """

    readout: Tensor | None

    def __init__(
        self,
        graph: Graph,
        steps: int,
        recipe: Recipe,
        head: nn.Module | None = None,
        measured: dict[str, tuple[float, float]] | None = None,
        readout: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.graph = graph
        self.steps = steps
        self.recipe = recipe
        self.head = head
        self.measured = measured or {}
        self.register_buffer("readout", readout)
        self._stepper: Stepper | None = None
        self._reader: Reader | None = None
        self._images = 0
        self._events: dict[bool, EventEngine] = {}
        self._lock = threading.RLock()

    @torch.no_grad()
    @_undisturbed
    def forward(
        self,
        x: Tensor,
        time_first: bool = False,
        engine: str = "layerwise",
        observe: Observer | None = None,
        head: bool = True,
        scales: Scales | None = None,
    ) -> Tensor:
        """Run from rest.

        x: ``[N, ...]``, the same at each step, or ``[T, N, ...]`` with ``time_first``, the extra steps before. engine:
        "layerwise" (all steps of a layer at once), "stepwise" (memory independent of T; not for neurons that need
        several steps at once) or "event" (only spikes that occurred are propagated: the fastest on a CPU; needs the
        extra ``fast``). All give the same spikes; "event" adds in another order, which in floating point may round a
        membrane to the other side of the threshold, but never does in a `rounded` network. A network none of whose
        neurons gain by events runs by "layerwise", in one pass if they look at whole sums alone (`simulate/sums.py`).
        observe: see `simulate.layerwise`, with that engine only. head: apply the softmax, sigmoid ... that the network
        may end with. scales: see `EventEngine.run`, with that engine only. A network being stepped is put to rest.
        """
        self.reset()
        self._check(x, time_first)
        require_engine(engine)
        if observe is not None and engine != "layerwise":
            raise InputError(f"the engine {engine!r} cannot be observed: choose 'layerwise'")
        on_events = self._on_events(time_first) if engine == "event" else None
        if scales is not None and on_events is None:
            raise InputError("spikes are weighed by the engine 'event' alone, for neurons that it runs")
        steps = len(x) if time_first else self.extra_steps + self.steps
        if engine == "stepwise":
            outputs = _collect(stepwise(self.graph, x, steps, time_first), steps)
        elif on_events is not None:
            outputs = on_events.run(x, steps, time_first, scales)
        else:
            outputs = layerwise(self.graph, x, steps, time_first, observe)
        mean = read(outputs, self.readout)
        return self.read_out(mean) if head else mean

    @torch.no_grad()
    def weighed_on_events(self) -> set[str]:
        """Names of the values that the engine "event" can put on scales; none where it does not run the neurons."""
        engine = self._on_events(time_first=False)
        return set() if engine is None else engine.carried

    @torch.no_grad()
    @_undisturbed
    def predict(self, x: Tensor, until: Confidence | None = None) -> Prediction:
        """Classify images from rest, and stop at each when it is decided.

        x: ``[N, ...]``, the same at each step. until: when an image is decided; without it all steps are taken.
        An image leaves with the output that ``snn(x)`` has at that step, to the last bit where torch's sums do not
        depend on the number of images (its matrix products of few rows do). Memory does not grow with the steps. A
        network that is being stepped is put to rest; one that needs several steps at once cannot stop early.

        >>> import ftbc
        >>> ann, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.rand(64, 4)
        >>> prediction = ftbc.convert(ann, x, steps=8).predict(x, until=ftbc.Confidence(0.9))
        >>> prediction.classes.shape, prediction.steps.shape, prediction.outputs.shape
        (torch.Size([64]), torch.Size([64]), torch.Size([64, 3]))
        """
        self.reset()
        self._check(x, time_first=False)
        scores = self.graph.shape(self.graph.output)
        if len(scores) != 1 or scores[0] < 2:
            raise InputError(
                f"a prediction needs one score for each of two or more classes, but the network gives {list(scores)}: "
                "use snn(x)"
            )
        if until is not None:
            require_rule(until, "until")
        if until is None and together(self.graph) > 1:  # such a network cannot stop, but it can go to the end
            mean, steps = self(x, head=False)[-1], torch.full((len(x),), self.steps, device=x.device)
        else:
            mean, steps = run_until(until or _never, self.graph, x, self.steps, readout=self.readout)
        outputs = self.read_out(mean.unsqueeze(0))[0]
        return Prediction(outputs.argmax(1), steps, outputs)

    @torch.no_grad()
    @_undisturbed
    def step(self, x: Tensor) -> Tensor:
        """Take one step from where the network is, and return the mean output since the last `reset`.

        The first step of a network with extra steps takes these too, with the same input.
        """
        self._check(x, time_first=False)
        if self._stepper is None or self._reader is None:
            self._stepper, self._reader = Stepper(self.graph, constant=False), Reader(self.readout)
            self._images = len(x)
        if len(x) != self._images:
            raise InputError(f"{len(x)} images after {self._images}: call reset() before another batch")
        mean = None
        while mean is None:
            mean = self._reader.add(self._stepper.step(x))
        return self.read_out(mean.unsqueeze(0))[0]

    def reset(self) -> None:
        """Put every neuron to rest."""
        if self._stepper is not None:
            self._stepper.reset()
        self._stepper, self._reader = None, None

    @property
    def extra_steps(self) -> int:
        """How many steps the network takes before the first that it is read at."""
        return extra_steps(self.readout)

    def read_out(self, mean: Tensor) -> Tensor:
        """What the network's head (softmax, sigmoid ...), if it has one, makes of mean outputs ``[T, N, ...]``."""
        if self.head is None:
            return mean
        return self.head(mean.flatten(0, 1)).unflatten(0, mean.shape[:2])

    def layers(self) -> list[Layer]:
        """One row for each spiking layer, in order."""
        rows = []
        events = numbers_by_layer(self.graph, self._density())
        for node in self.graph.of_type(Spiking):
            theta = node.module.threshold
            rate, error = self.measured.get(node.name, (float("nan"), float("nan")))
            rows.append(Layer(node.name, node.shape, float(theta.mean()), rate, error, events[node.name]))  # type: ignore[arg-type, operator]
        return rows

    def _density(self) -> dict[str, float]:
        return {name: rate for name, (rate, _) in self.measured.items()}

    def save(self, path: str | Path) -> None:
        """Write one safetensors file that `ftbc.load` reads without the model's own code."""
        from ftbc.save import save

        save(self, path)

    def with_unit_thresholds(self) -> SpikingNetwork:
        """The same network with every threshold 1 and spikes of exactly 0 or 1: the form for chips."""
        graph = self.graph.copy()
        scale_thresholds_to_one(graph)
        return self._with(graph)

    @torch.no_grad()
    def rounded(self, images: Tensor) -> SpikingNetwork:
        """The same network in small whole numbers: thresholds of 1, weights and biases multiples of a power of two.

        images: ``[N, ...]``, a few, on which the scale of each layer is chosen. Every engine then gives the same
        spikes to the last bit, for any number of images at once, as long as images are not much larger than these; and
        the event engine computes with integers of 16 bits. So do outputs, but for those that mix what is no whole
        number, such as the image itself, with spikes: they may differ in the last digits.
        """
        from ftbc.simulate.event.rounded import rounded

        self._check(images, time_first=False)
        if not bool(torch.isfinite(images).all()):
            raise NotFiniteError("the images to round on hold NaN or infinity: check how they are read and normalised")
        return self._with(rounded(self.graph, images, self.extra_steps + self.steps)).eval()

    def __getstate__(self) -> dict[str, Any]:
        # A copy starts at rest: the running state belongs to the one who steps.
        kept = {name: value for name, value in self.__dict__.items() if name != "_lock"}
        return {**kept, "_stepper": None, "_reader": None, "_events": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.RLock()

    def _with(self, graph: Graph) -> SpikingNetwork:
        readout = None if self.readout is None else self.readout.clone()
        return SpikingNetwork(graph, self.steps, self.recipe, self.head, dict(self.measured), readout)

    def _on_events(self, time_first: bool) -> EventEngine | None:
        """The engine for events; None where it would run no neurons, or take each step of some that need not."""
        if needs(self.graph, time_first) is not None:
            return None
        engine = self._event_engine(time_first)
        return engine if engine.layers else None

    def _event_engine(self, time_first: bool) -> EventEngine:
        """The network made ready for events; made anew when its numbers have changed."""
        engine = event_engine(self.graph, self._density(), time_first, self._events.get(time_first))
        self._events[time_first] = engine
        return engine

    def _check(self, x: Tensor, time_first: bool) -> None:
        expected = self.graph.input_shape
        leading = 2 if time_first else 1
        if not isinstance(x, Tensor):
            raise InputError(f"the network takes a tensor, not {type(x).__name__}")
        if tuple(x.shape[leading:]) != expected or x.ndim != len(expected) + leading:
            wanted = ", ".join([*(["T"] if time_first else []), "N", *map(str, expected)])
            raise InputError(f"the network takes input of shape [{wanted}], not {list(x.shape)}")
        if not x.shape[leading - 1]:
            raise InputError("the input holds no images")
        first, last = 1 + self.extra_steps, self.extra_steps + self.steps
        if time_first and not first <= len(x) <= last:
            raise InputError(f"the input has {len(x)} steps, the network was converted for {first} to {last}")
        weight = next((p for p in self.graph.parameters()), None)
        if weight is not None and (x.dtype != weight.dtype or x.device != weight.device):
            raise InputError(
                f"the input is {x.dtype} on {x.device}, the network {weight.dtype} on {weight.device}: "
                "convert the input"
            )
        if x.dtype not in (torch.float32, torch.float64):
            raise InputError(f"in {x.dtype} membranes would lose small currents: use snn.float(), and input in float32")
        # A sum is cheap, and not finite if anything is not; it may be so by its size alone.
        if x.device.type != "meta" and not bool(torch.isfinite(x.sum())) and not bool(torch.isfinite(x).all()):
            raise NotFiniteError("the input holds NaN or infinity: check how it is read and normalised")


def _never(mean: Tensor, t: int) -> Tensor:
    """No image is decided."""
    return torch.zeros(len(mean), dtype=torch.bool, device=mean.device)


def _collect(outputs: Iterator[Tensor], steps: int) -> Tensor:
    """The outputs of all steps in one tensor made at the start: many small ones, kept, would fragment the memory."""
    first = next(outputs)
    collected = first.new_empty((steps, *first.shape))
    collected[0] = first
    for t, output in enumerate(outputs, 1):
        collected[t] = output
    return collected
