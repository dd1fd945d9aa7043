"""Figure `fig:dist`: accuracy at each step against the batches that FTBC has seen, for several alpha.

One network, converted for the largest T and read at each t, is corrected batch by batch, and measured after each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ftbc.calibrate import FTBC
from ftbc.calibrate.base import Calibration
from ftbc.calibrate.widen import widen_bias
from ftbc.convert import convert
from ftbc.measure.evaluate import evaluate
from ftbc.measure.speed import folded
from ftbc.network import SpikingNetwork
from ftbc.recipe import Recipe
from ftbc.recipes import recipe
from ftbc.report.paper_plots import stability_curves
from ftbc.reproduce.result import Figure
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.subject import Kept, Subject, find_subject
from ftbc.reproduce.toml_table import TomlTable


def measure_stability(setting: Setting) -> Figure:
    """Accuracy for each alpha, after each batch, at each of the steps of the scale."""
    table = TomlTable(dict(setting.experiment.figure), f"{setting.experiment.name}, figure")
    alphas = [float(alpha) for alpha in table.get("alphas", list)]
    batches, batch, base = table.get("batches", int), table.get("batch", int), table.get("recipe", str)
    table.close()
    subject, steps = find_subject(setting), setting.scale.steps
    kept = Kept(
        setting, {**subject.key(), "base": base, "batch": batch, "seed": setting.seed, "engine": setting.engine}
    )
    curves: dict[float, list[list[float]]] = {}
    for number, alpha in enumerate(alphas):
        piece = replace(_ftbc(recipe(base)), alpha=alpha, batch=batch, batches=1, iterations=1)
        curves[alpha] = _course(subject, kept, recipe(base), piece, batches, (number, len(alphas)))
    rows = [
        {"alpha": alpha, "batches": done, "steps": t, "accuracy": round(accuracies[t - 1], 4)}
        for alpha, course in curves.items()
        for done, accuracies in enumerate(course)
        for t in steps
    ]
    shown = {alpha: {t: [row[t - 1] for row in course] for t in steps} for alpha, course in curves.items()}
    title = f"{subject.name} on {subject.test.name}, {len(subject.test):,} test images"
    return Figure(
        rows, _said(shown, batches), lambda path: stability_curves(path, shown, title), subject.name, _images(subject)
    )


@torch.no_grad()
def calibration_course(
    model: nn.Module, images: Tensor, steps: int, base: Recipe, piece: FTBC, batches: int, seed: int
) -> Iterator[SpikingNetwork]:
    """The network before calibration and after each batch; it is the same one, and changes with the next.

    After k batches its biases are those of ``FTBC(iterations=k, batches=1)`` with the same draws.
    """
    snn = convert(model, images, steps, replace(base, calibrate=()), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    state = Calibration(folded(model, images[:1]), snn.graph, steps, images, generator)
    for node in state.stepped_neurons("FTBC"):
        widen_bias(node, piece.grain)
    for number in range(batches + 1):
        if number:
            piece.correct(state, images[next(state.draw(piece.batch))])
        yield SpikingNetwork(snn.graph, steps, base, snn.head, readout=snn.readout).eval()


def _course(
    subject: Subject, kept: Kept, base: Recipe, piece: FTBC, batches: int, part: tuple[int, int]
) -> list[list[float]]:
    """Accuracy after 0, 1, 2 ... batches, each at t = 1, 2 ... T; batches that are kept are not measured again."""
    setting, steps = subject.setting, max(subject.setting.scale.steps)
    keys: list[dict[str, Any]] = [
        {"what": f"stability-alpha{piece.alpha}-batch{done}", "alpha": piece.alpha, "done": done, "steps": steps}
        for done in range(batches + 1)
    ]
    found = [kept.find(key) for key in keys]
    if any(each is None for each in found):
        course = calibration_course(subject.model, subject.images, steps, base, piece, batches, setting.seed)
        for done, snn in enumerate(course):
            if found[done] is None:
                accuracy = evaluate(snn, subject.test, engine=setting.engine, counted_images=1).accuracy
                found[done] = kept.enter(keys[done], {"accuracy": accuracy})
            number, total = part
            setting.progress("batches", number * (batches + 1) + done + 1, total * (batches + 1))
    return [each["accuracy"] for each in found if each is not None]


def _ftbc(base: Recipe) -> FTBC:
    return next(piece for piece in base.calibrate if isinstance(piece, FTBC))


def _said(shown: dict[float, dict[int, list[float]]], batches: int) -> list[str]:
    half = (batches + 1) // 2
    said = []
    for alpha, curves in shown.items():
        parts = [
            f"t = {t}: {curve[0]:.1f} to {curve[-1]:.1f} %, within {max(curve[half:]) - min(curve[half:]):.1f} points"
            for t, curve in curves.items()
        ]
        said.append(
            f"alpha = {alpha:g}, before and after {batches} batches, and the range over the second half of them: "
            f"{'; '.join(parts)}."
        )
    return said


def _images(subject: Subject) -> str:
    return f"{len(subject.test):,} of {subject.test.name}, calibrated on {len(subject.images):,}"
