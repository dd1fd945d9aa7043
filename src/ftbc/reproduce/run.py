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


def reproduce(setting: Setting) -> Reproduction:
    """Measure an experiment, as far as its folder does not hold it yet."""
    experiment = setting.experiment
    made = origin(setting.command)
    if experiment.kind in _FIGURES:
        figure = _FIGURES[experiment.kind](setting)
        facts = {name: value for name, value in (("network", figure.network), ("images", figure.data)) if value}
        return Reproduction(
            experiment, setting.name, made, figure=figure, measured=setting.measured, kept=setting.kept, facts=facts
        )
    lines = measure_table(setting)
    seeds = ", ".join(map(str, setting.seeds))
    return Reproduction(
        experiment, setting.name, made, lines=lines, measured=setting.measured, kept=setting.kept,
        facts={"protocol": "per-t", "seeds": seeds, "engine": setting.engine},
    )  # fmt: skip
