"""Methods side by side under one protocol: convert, measure, keep, and read the table off what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ftbc.calibration_data import check_model
from ftbc.comparison import Comparison
from ftbc.data import Images
from ftbc.errors import FileError, RecipeError
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress, silent
from ftbc.protocol.draws import draw_from, labelled
from ftbc.protocol.ledger import Ledger
from ftbc.protocol.origin import origin
from ftbc.protocol.plan import Plan, plan_of
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.protocol.rows import Row, averaged
from ftbc.protocol.shards import WHOLE, Shard, merge
from ftbc.protocol.work import Work
from ftbc.recipe import Recipe
from ftbc.simulate import require_engine


@torch.no_grad()
def compare(
    model: nn.Module,
    calibration: Any,
    test: Any,
    recipes: str | Recipe | Sequence[str | Recipe] = ("mean-square", "ftbc"),
    steps: int | Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    protocol: str = "per-t",
    seeds: int | Sequence[int] = 3,
    images: int | None = None,
    limit: int | None = None,
    full_up_to: int | None = None,
    engine: str = "layerwise",
    results: str | Path | ResultsFolder | None = None,
    measure: bool = True,
    name: str | None = None,
    command: str | None = None,
    progress: Progress = silent,
    team: Team = ALONE,
    shard: str | None = None,
    merged: Sequence[str | Path] = (),
) -> Comparison:
    """Measure several methods on one network, each at several T and with several draws of calibration images.

    calibration: images to draw from, as `ftbc.data.Images`, a tensor or batches; each seed draws ``images`` of them (by
    default 256) and seeds the recipe. A function of the seed gives the images itself. test: `Images`, a pair of tensors
    ``(images, labels)``, or batches of them; nothing is chosen on these. protocol: "per-t", a calibration for each T,
    or "anytime", one for the largest T, read at each t. seeds: how many, or which. limit, full_up_to: measure on
    ``limit`` test images above so many steps, balanced over the classes. results: a folder that keeps every
    measurement: a run that was killed goes on from there, and one that is repeated is over at once. measure: else only
    what the folder holds is shown. name, command: of the network and of what the user typed, for the record. team:
    processes that make each measurement together, as for `convert` and `evaluate`; the leading one keeps the folder.
    shard: measure a part of it, such as "1/3", for machines that share nothing; merged: the folders of all shards,
    whose measurements are put together in ``results`` after a check that nothing is missing or doubled.

    >>> ann, x, y = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.rand(64, 4), torch.arange(64) % 2
    >>> table = compare(ann, x, (x, y), ["maximum", "mean-square"], steps=[1, 4], seeds=2, images=32)
    >>> [(row.recipe, row.steps, row.test_images) for row in table.rows]
    [('maximum', 1, 64), ('maximum', 4, 64), ('mean-square', 1, 64), ('mean-square', 4, 64)]
    """
    plan = plan_of(recipes, steps, seeds, protocol, limit, full_up_to)
    require_engine(engine)
    own = WHOLE if shard is None else Shard.of(shard)
    check_model(model)
    tests = labelled(test)
    folder = results if isinstance(results, ResultsFolder) else ResultsFolder(results)
    folder = folder if team.leads else ResultsFolder(None)
    made = {
        **origin(command),
        "model": name or type(model).__name__,
        "data": tests.name if isinstance(tests, Images) else "tensors",
    }
    ledger = Ledger(model, draw_from(calibration, images, model), plan.seeds, tests, limit, engine, folder, made)
    try:
        with team.agreed():
            if merged and team.leads:
                merge(plan, ledger, merged)
        Work(model, plan, ledger, progress, team, own).run(measure and not merged)
        if shard is not None and measure:
            own.end(plan, ledger)
    finally:
        folder.close()
    table = team.told(_table(plan, ledger))
    if shard is None and measure and not any(row.seeds for row in table.rows):
        reasons = "; ".join(f"{recipe}: {reason}" for recipe, reason in table.refused().items())
        raise RecipeError(f"none of the recipes applies. {reasons}")
    if shard is None and not any(row.seeds for row in table.rows):
        raise FileError(f"'{folder.path}' holds none of these measurements: check the options, or let them be made")
    return table


def _table(plan: Plan, ledger: Ledger) -> Comparison:
    rows = [_row(plan, ledger, recipe, t) for recipe in plan.recipes for t in plan.steps]
    return Comparison(
        model=ledger.made["model"],
        data=ledger.made["data"],
        protocol=plan.protocol,
        engine=ledger.engine,
        steps=plan.steps,
        seeds=plan.seeds,
        rows=tuple(rows),
        recipes=tuple(recipe.to_dict() for recipe in plan.recipes),
        ann={t: ledger.anns.get(plan.few(t)) for t in plan.steps},
        kept=ledger.kept,
        measured=ledger.new,
        made={**ledger.made, "codes": sorted(ledger.codes)},
    )


def _row(plan: Plan, ledger: Ledger, recipe: Recipe, t: int) -> Row:
    steps, run = plan.at(recipe, t)
    found = {seed: ledger.found.get((recipe.name, steps, run, seed)) for seed in plan.seeds}
    known = {seed: figures for seed, figures in found.items() if figures is not None}
    reason = "" if len(known) == len(found) else ledger.reason(recipe.name, steps) or "not measured"
    ann, images = ledger.anns.get(run.few), ledger.test_images(run.few)
    return averaged(recipe.name, t, steps, known, ann, images, reason, **_facts(recipe))


def _facts(recipe: Recipe) -> dict[str, Any]:
    facts = recipe.facts
    needs = [word for word, needed in (("gradients", facts.gradients), ("training", facts.trained)) if needed]
    return {"levels": facts.spikes, "needs": ", ".join(needs), "steppable": facts.steppable}
