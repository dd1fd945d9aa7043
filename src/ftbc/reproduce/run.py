"""One experiment from its description to its files."""

from __future__ import annotations

from collections.abc import Callable

from ftbc.protocol.origin import origin
from ftbc.reproduce.bias_search import measure_bias_search
from ftbc.reproduce.membranes import measure_membranes
from ftbc.reproduce.overview import measure_overview
from ftbc.reproduce.result import Figure, Reproduction
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.stability import measure_stability
from ftbc.reproduce.table import measure_table

_FIGURES: dict[str, Callable[[Setting], Figure]] = {
    "stability": measure_stability,
    "membranes": measure_membranes,
    "overview": measure_overview,
    "bias-search": measure_bias_search,
}


def reproduce(setting: Setting) -> Reproduction | None:
    """Measure an experiment, as far as its folder does not hold it yet; None in processes that do not lead."""
    experiment, made = setting.experiment, origin(setting.command)
    if not setting.team.leads:
        if experiment.kind not in _FIGURES:  # these are too little work to be shared
            measure_table(setting)
        return None
    if experiment.kind in _FIGURES:
        figure, lines = _FIGURES[experiment.kind](setting), ()
        facts = {"network": figure.network, "images": figure.data}
    else:
        figure, lines = None, measure_table(setting)
        facts = {"protocol": "per-t", "seeds": ", ".join(map(str, setting.seeds)), "engine": setting.engine}
    measured, kept = setting.measured, setting.kept
    if measured or kept:
        # Those that were kept may come from other code than the commit of this page.
        facts["measurements"] = f"{measured} made by this run, {kept} kept from runs before"
    facts = {name: value for name, value in facts.items() if value}
    return Reproduction(experiment, setting.name, made, lines, figure, measured, kept, facts)
