"""The pipeline on one page: trace, canonical, fold, pool, threshold, initial, place, calibrate, settle."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.calibrate import calibrate
from ftbc.calibrate.base import Calibration
from ftbc.calibration_data import check_model, gather_images
from ftbc.check import require_activation
from ftbc.errors import InputError, RecipeError, TraceError
from ftbc.graph.bound import without_bounds
from ftbc.graph.canonical import Cleaned, canonical
from ftbc.graph.fold import fold
from ftbc.graph.ir import Graph
from ftbc.graph.layout import lay_out
from ftbc.graph.ops import MaxPool
from ftbc.graph.plain import plain_copy
from ftbc.graph.pool import POLICIES
from ftbc.graph.precision import synapses_in_bfloat16, without_autocast
from ftbc.graph.smooth import smooth_graph, smooth_model
from ftbc.graph.trace import trace
from ftbc.initial.charge import require_charge
from ftbc.measure.match import relative_error_and_rate
from ftbc.network import SpikingNetwork
from ftbc.neuron.place import place, settle
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress, silent
from ftbc.recipe import Recipe
from ftbc.recipes import recipe as recipe_by_name
from ftbc.settings import is_whole
from ftbc.simulate.readout import with_extra
from ftbc.threshold.activations import require_finite
from ftbc.threshold.base import require_thresholds

log = logging.getLogger(__name__)
MOST_STEPS = 100_000
"""Far more than anybody needs: each layer has a row of biases for each step."""
_BATCH = 128
_MEASURED = 32
_SAME = 1e-3
_LARGEST_SEED = 2**63 - 1


@torch.inference_mode(False)
@torch.no_grad()
@without_autocast()
def convert(
    model: nn.Module,
    calibration: Any,
    steps: int,
    recipe: str | Recipe = "ftbc",
    *,
    seed: int = 0,
    progress: Progress = silent,
    team: Team = ALONE,
) -> SpikingNetwork:
    """Turn a trained network into a spiking one for ``steps`` time steps.

    model: any traceable nn.Module; it is copied, never changed. calibration: a tensor ``[N, ...]``, or an iterable
    of tensors or of ``(tensor, label)`` pairs; labels are never used, and of more than 4,096 images the first so many
    are. recipe: a name or a `Recipe`. team: the processes that share the work (``with ftbc.team() as team``); each must
    be given the same model and images, and gets the same network back.

    >>> snn = convert(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.rand(64, 4), steps=4)
    >>> snn(torch.rand(5, 4)).shape
    torch.Size([4, 5, 2])
    """
    if not is_whole(steps, 1, MOST_STEPS):
        raise RecipeError(f"steps={steps!r}: give a whole number of time steps, at least 1 and at most {MOST_STEPS:,}")
    if not is_whole(seed, 0, _LARGEST_SEED):
        raise RecipeError(f"seed={seed!r}: give a whole number from 0 to {_LARGEST_SEED:,}")
    steps = int(steps)
    method = recipe_by_name(recipe) if isinstance(recipe, str) else recipe
    if not isinstance(method, Recipe):
        raise RecipeError(f"the recipe is a {type(recipe).__name__}: give a name (see: ftbc methods) or an ftbc.Recipe")
    if isinstance(model, SpikingNetwork):
        raise InputError("the network is a spiking one already: give the one that it was converted from")
    check_model(model)
    images = gather_images(calibration, model)

    cleaned = canonical(trace(model, images)).require()
    require_activation(cleaned)
    fold(cleaned.graph)
    _require_same(model, cleaned, images[:_BATCH])
    pooled = _apply_pool(cleaned.graph, method, images[:_BATCH])
    ann = lay_out(pooled if method.neuron.bounded else without_bounds(pooled))

    generator = torch.Generator().manual_seed(int(seed))
    thresholds = method.threshold.choose(ann, images, steps, generator, progress, team)
    require_thresholds(thresholds, ann, method.threshold)
    neurons, rows = {}, method.neuron.rows(steps)
    for name, theta in thresholds.items():
        theta = theta.to(images.dtype)
        charge = method.initial(theta, rows)
        require_charge(charge, theta, rows, method.initial)
        neurons[name] = method.neuron(rows, len(ann[name].shape)).set(theta, *charge)
    snn = place(ann, neurons, spiking_pools=method.pool == "spiking")

    state = Calibration(ann, snn, rows, images, generator, progress, team=team)
    calibrate(method.calibrate, state)
    settle(snn, method.neuron, steps)
    extra = method.neuron.extra_steps
    measured = relative_error_and_rate(ann, snn, images[:_MEASURED], steps, extra)
    readout = with_extra(state.readout, steps, extra, images)
    return SpikingNetwork(snn, steps, method, cleaned.head, measured, readout).eval()


def _require_same(model: nn.Module, cleaned: Cleaned, x: Tensor) -> None:
    """Compare the clean graph with the model itself: a conversion of something else is worse than none."""
    with synapses_in_bfloat16(False):
        found = smooth_graph(cleaned.graph)(x, require_finite)
    found = cleaned.head(found) if cleaned.head is not None else found
    wanted = smooth_model(plain_copy(model))(x.clone())  # a forward may write into its input
    wanted = wanted[0] if isinstance(wanted, tuple | list) else wanted
    gap = float((found - wanted).abs().max()) if found.shape == wanted.shape else float("inf")
    if not gap <= _SAME * float(wanted.abs().max() + 1e-6):
        raise TraceError(
            f"the traced network gives other outputs than the model (by {gap:.3g}): its forward depends on something "
            "that tracing cannot see, such as hooks, randomness or values; convert a submodule"
        )


def _apply_pool(ann: Graph, method: Recipe, x: Tensor) -> Graph:
    pools = ann.of_type(*MaxPool)
    if not pools:
        return ann
    before = ann(x)
    POLICIES[method.pool]()(ann)
    if method.pool == "average":
        change = float((ann(x) - before).pow(2).mean() / before.pow(2).mean().clamp(min=1e-12))
        log.warning(
            "%d max-pools became average pools: on the calibration images the ANN's own output changes by %.1f %% "
            "(mean square); retrain it with average pooling, or use pool='spiking'",
            len(pools), 100 * change,
        )  # fmt: skip
    return ann
