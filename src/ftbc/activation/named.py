"""Activations by name, for command lines and files."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from torch import nn

from ftbc.activation.qcfs import QCFS
from ftbc.activation.rate_norm import RateNorm
from ftbc.activation.slip_relu import SlipReLU
from ftbc.activation.threshold_relu import ThresholdReLU
from ftbc.errors import ModelError

NAMES: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "threshold-relu": ThresholdReLU,
    "qcfs": QCFS,
    "slip-relu": SlipReLU,
    "rate-norm": RateNorm,
}


def named(name: str, **settings: Any) -> nn.Module:
    """The activation of that name, made with the settings that are not None.

    >>> named("qcfs", levels=8, threshold=None)
    QCFS(threshold=8, levels=8)
    """
    if name not in NAMES:
        nearest = difflib.get_close_matches(str(name), NAMES, 1, 0.0)[0]
        raise ModelError(f"there is no activation {name!r}; did you mean '{nearest}'? All: {', '.join(NAMES)}")
    given = {key: value for key, value in settings.items() if value is not None}
    known = [key for key in inspect.signature(NAMES[name]).parameters if key != "inplace"]
    for key in given:
        if key not in known:
            raise ModelError(f"activation '{name}' has no setting '{key}': it takes {', '.join(known) or 'none'}")
    return NAMES[name](**given)
