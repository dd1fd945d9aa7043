"""The learning rate of each step, from the number of the step alone: there is no state to lose.

With a warm-up of w steps it rises from a tenth of the peak to the peak and falls to nearly nothing, each by half a
cosine: the one-cycle rule (Smith and Topin 2018) as torch.optim.lr_scheduler.OneCycleLR computes it. Without it is the
plain cosine from the peak to zero (Loshchilov and Hutter 2017), as FTBC, QCFS and SNN Calibration train.
"""

from __future__ import annotations

import math

from ftbc.train.settings import TrainSettings

_FIRST = 1 / 10
_LAST = 1e-5


def learning_rate(settings: TrainSettings, step: int, total: int) -> float:
    """The learning rate of step ``step`` of ``total``, counted from 0."""
    peak = settings.learning_rate
    if settings.warm_up == 0:
        return _between(peak, 0.0, step / total)
    top = settings.warm_up * total - 1
    if step <= top:
        return _between(peak * _FIRST, peak, step / top if top else 1.0)
    return _between(peak, peak * _LAST, (step - top) / (total - 1 - top))


def _between(first: float, last: float, share: float) -> float:
    """Half a cosine from one value to another."""
    return last + (first - last) / 2 * (1 + math.cos(math.pi * share))
