"""A converted network as a plain module with the neurons of another library: SpikingJelly or snnTorch.

    SpikingJelly   IFNode(v_threshold=1, v_reset=None)                       soft reset, fires at the threshold
    snnTorch       Leaky(beta=1, threshold=1, reset_mechanism="subtract")    soft reset, written at the next step

Thresholds are scaled to 1, so that one number serves a layer. b[t] is added before the neurons, with v[0] in b[0].
The modules are `torch.fx.GraphModule`s: their layers have the names they had, and ``print(net.code)`` shows the wiring.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn

from ftbc.errors import FtbcError, InputError, RecipeError, UnsupportedError, first_line
from ftbc.export.rewrite import first_bias, in_units, require_plain
from ftbc.graph.ir import INPUT, Node
from ftbc.graph.ops import Concat, Sum
from ftbc.network import SpikingNetwork
from ftbc.neuron import IntegrateFire, SpikingMaxPool

Make = Callable[[Node, Tensor], nn.Module]
"""The other library's neurons for a layer with biases ``[T, ...]``, shaped to broadcast over one item."""


class Resettable(fx.GraphModule):
    """A network whose `reset` puts all of its neurons to rest: call it before each new input."""

    def reset(self) -> None:
        """Forget the past: the next call is step 0."""
        for module in self.modules():
            if isinstance(module, _Leaky):
                module.reset()


class _Leaky(nn.Module):
    """Neurons of snnTorch behind a temporal bias."""

    rows: Tensor

    def __init__(self, neuron: nn.Module, rows: Tensor) -> None:
        super().__init__()
        self.neuron = neuron
        self.register_buffer("rows", rows)
        self.membrane: Tensor | None = None
        self.t = 0

    def forward(self, x: Tensor) -> Tensor:
        _require_step(self.t, self.rows)
        before = torch.zeros_like(x) if self.membrane is None else self.membrane
        spikes, self.membrane = self.neuron(x + self.rows[self.t], before)
        self.t += 1
        return spikes

    def reset(self) -> None:
        self.membrane, self.t = None, 0


def to_spikingjelly(snn: SpikingNetwork, step_mode: str = "s") -> fx.GraphModule:
    """The network with SpikingJelly's `IFNode`: equal spikes, in exact arithmetic.

    step_mode: "s", one step at each call, ``[N, ...]`` to ``[N, ...]``; or "m", all steps, ``[T, N, ...]`` to ``[T, N,
    ...]``. The module gives the output of single steps: their mean is what ``snn(x)`` gives. Put it to rest with
    SpikingJelly's ``functional.reset_net``.
    """
    if step_mode not in ("s", "m"):
        raise RecipeError(f"step_mode={step_mode!r:.40}: SpikingJelly has 's' (single step) and 'm' (multi-step)")
    base, neuron, layer = (_library(f"spikingjelly.activation_based.{name}") for name in ("base", "neuron", "layer"))
    bias = _bias_of(base)

    def make(node: Node, rows: Tensor) -> nn.Module:
        fires = neuron.IFNode(v_threshold=1.0, v_reset=None, step_mode=step_mode)
        return nn.Sequential(bias(rows, step_mode), fires)

    def over_time(module: nn.Module) -> nn.Module:
        if isinstance(module, Sum):
            return module
        return Concat(module.dim + 1) if isinstance(module, Concat) else layer.SeqToANNContainer(module)

    return _module(snn, "SpikingJelly", make, over_time if step_mode == "m" else None, fx.GraphModule)


def to_snntorch(snn: SpikingNetwork) -> Resettable:
    """The network with snnTorch's `Leaky`: equal spikes, in exact arithmetic.

    One step at each call, ``[N, ...]`` to ``[N, ...]``; the mean of the outputs is what ``snn(x)`` gives. Call its
    `reset` before each new input.
    """
    library = _library("snntorch")

    def make(node: Node, rows: Tensor) -> nn.Module:
        # Its own step function fires above the threshold only. With reset_delay=False it would spare the reset of a
        # membrane that stays above the threshold.
        leaky = library.Leaky(
            beta=1.0, threshold=1.0, reset_mechanism="subtract", reset_delay=True, spike_grad=_at_the_threshold
        )
        return _Leaky(leaky.to(rows.dtype), rows)

    found = _module(snn, "snnTorch", make, None, Resettable)
    assert isinstance(found, Resettable)
    return found


def _at_the_threshold(excess: Tensor) -> Tensor:
    return (excess >= 0).to(excess.dtype)


def _module(
    snn: SpikingNetwork,
    library: str,
    make: Make,
    over_time: Callable[[nn.Module], nn.Module] | None,
    kind: type[fx.GraphModule],
) -> fx.GraphModule:
    if not isinstance(snn, SpikingNetwork):
        raise InputError(f"a {type(snn).__name__} cannot be exported: give the network that ftbc.convert gave back")
    require_plain(snn, library)
    _require_plain_readout(snn, library)
    graph = in_units(snn)
    owner, wiring = nn.Module(), fx.Graph()
    values = {INPUT: wiring.placeholder("x")}
    for node in graph:
        _attach(owner, node.name, _translated(node, make, over_time, library))
        values[node.name] = wiring.call_module(node.name, tuple(values[name] for name in node.inputs))
    wiring.output(values[graph.output])
    wiring.owning_module = owner
    return kind(owner, wiring).eval()


def _translated(node: Node, make: Make, over_time: Callable[[nn.Module], nn.Module] | None, library: str) -> nn.Module:
    if isinstance(node.module, IntegrateFire):
        rows = first_bias(node.module)
        return make(node, rows if rows.ndim > 2 else rows.view(*rows.shape, *[1] * (len(node.shape) - 1)))
    if isinstance(node.module, SpikingMaxPool):
        raise UnsupportedError(
            f"{node.place} remembers what it has sent, which no layer of {library} does: convert with pool='average', "
            "or write ONNX"
        )
    return node.module if over_time is None else over_time(node.module)


def _require_plain_readout(snn: SpikingNetwork, library: str) -> None:
    if snn.readout is not None:
        raise UnsupportedError(
            f"this network weighs its steps ({snn.recipe.name}), and a module of {library} gives single steps alone: "
            "write ONNX with all steps"
        )


def _attach(owner: nn.Module, name: str, module: nn.Module) -> None:
    *path, leaf = name.split(".")
    for part in path:
        owner = owner._modules.setdefault(part, nn.Module())  # type: ignore[assignment]
    owner._modules[leaf] = module


def _bias_of(base: Any) -> Callable[[Tensor, str], nn.Module]:
    """SpikingJelly's kind of module with memory, that adds b[t]."""

    class TemporalBias(base.MemoryModule):  # type: ignore[name-defined, misc]
        def __init__(self, rows: Tensor, step_mode: str) -> None:
            super().__init__()
            self.register_buffer("rows", rows)
            self.register_memory("t", 0)
            self.step_mode = step_mode

        def single_step_forward(self, x: Tensor) -> Tensor:
            _require_step(self.t, self.rows)
            self.t += 1
            return x + self.rows[self.t - 1]

        def multi_step_forward(self, x_seq: Tensor) -> Tensor:
            return torch.stack([self.single_step_forward(x) for x in x_seq])

    return TemporalBias


def _require_step(t: int, rows: Tensor) -> None:
    if t >= len(rows):
        raise InputError(
            f"step {t + 1} of a network converted for {len(rows)} steps: put it to rest before another input"
        )


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise FtbcError(
            f"a module of {package} needs the package '{package}' ({first_line(error)}): pip install {package}"
        ) from error
