"""The table of rules, and what several of them ask of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ftbc.graph.call import Refused

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function for operations of these names (functions, methods, module types)."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def dimension(dim: int, ndim: int, why: str) -> int:
    """A dimension counted from the front; the batch, dimension 0, is refused."""
    if dim % ndim == 0:
        raise Refused(f"{why}; keep to the other dimensions")
    return dim % ndim


def whole(setting: Any) -> Any:
    """A number, or a tuple of numbers: exported programs write lists."""
    return tuple(setting) if isinstance(setting, list | tuple) else setting
