"""The work of a comparison: convert and measure what is not known yet, cheap before dear, beside other runs."""

from __future__ import annotations

import time

from torch import nn

from ftbc.calibrate.base import Progress
from ftbc.convert import convert
from ftbc.errors import FileError, FtbcError, InputError, first_line
from ftbc.measure.evaluate import evaluate, reference_accuracy
from ftbc.network import SpikingNetwork
from ftbc.protocol.ledger import Ledger
from ftbc.protocol.measured import Measured
from ftbc.protocol.plan import Conversion, Plan
from ftbc.simulate.schedule import together

_PAUSE = 0.5
_CALIBRATION = 20
"""A guess of how many times as long a calibration takes for an image and step as a test, for the time that is left."""


class Work:
    """Makes the measurements that are missing, and tells how far that is, in images times steps."""

    def __init__(self, model: nn.Module, plan: Plan, ledger: Ledger, progress: Progress) -> None:
        self.model = model
        self.plan = plan
        self.ledger = ledger
        self.progress = progress
        self.total = self.done = 0

    def run(self, measure: bool) -> None:
        """Take up what is kept, then make the rest, cheap before dear."""
        ledger = self.ledger
        wanted = {self.plan.at(t)[1].few for t in self.plan.steps}
        anns = [few for few in sorted(wanted) if not ledger.take_up_ann(few)]
        missing = [conversion for conversion in self.plan.conversions() if not ledger.take_up(conversion)]
        if not measure or not (missing or anns):
            return
        ledger.folder.prepare()
        for few in anns:
            ledger.enter_ann(few, reference_accuracy(self.model, ledger.tests[few]))
        waiting = [(conversion, self._size(conversion)) for conversion in missing]
        self.total = sum(size for _, size in waiting)
        while waiting:
            later = [entry for entry in waiting if not self._try(*entry)]
            if len(later) == len(waiting):
                time.sleep(_PAUSE)  # other runs are at work on all that is left
            waiting = later

    def _try(self, conversion: Conversion, size: int) -> bool:
        """Whether a conversion is dealt with: not if another run is at work on it."""
        before = self.done
        self._tell(before)
        with self.ledger.claim(conversion) as ours:
            if not ours:
                return False
            known = self.ledger.take_up(conversion)  # another run may have ended it by now
            if not known and not self.ledger.reason(conversion.recipe.name, conversion.steps):
                self._measure(conversion)
        self.done = before + size
        self._tell(self.done)
        return True

    def _measure(self, conversion: Conversion) -> None:
        ledger, images = self.ledger, self.ledger.images(conversion.seed)
        begun = time.perf_counter()
        try:
            snn = convert(
                self.model, images, conversion.steps, conversion.recipe, seed=conversion.seed, progress=self.progress
            )
            seconds = time.perf_counter() - begun
            if self.plan.steps != (conversion.steps,) and self.plan.protocol == "anytime":
                _require_answers(snn)
            self.done += self._effort(conversion)
            for run in ledger.missing(conversion):
                part, report = first_steps(snn, run.steps), self._report(run.steps)
                result = evaluate(part, ledger.tests[run.few], engine=ledger.engine, progress=report)
                ledger.enter(conversion, run, Measured.of(result, len(images), seconds))
                self.done += run.steps * result.images
        except FileError:
            raise
        except FtbcError as error:
            ledger.refuse(conversion, first_line(error))

    def _report(self, steps: int) -> Progress:
        begun = self.done

        def report(what: str, done: int, total: int) -> None:
            self.progress(what, done, total)
            self._tell(begun + steps * done)

        return report

    def _tell(self, done: int) -> None:
        self.progress("comparing", done, self.total)

    def _effort(self, conversion: Conversion) -> int:
        factor = 1 + _CALIBRATION * len(conversion.recipe.calibrate)
        return conversion.steps * factor * self.ledger.calibration_images(conversion.seed)

    def _size(self, conversion: Conversion) -> int:
        runs = self.ledger.missing(conversion)
        return self._effort(conversion) + sum(run.steps * self.ledger.test_images(run.few) for run in runs)


def _require_answers(snn: SpikingNetwork) -> None:
    """Refuse to read a network before its last step if its layers look at all steps before they fire."""
    seen = together(snn.graph)
    if seen > snn.extra_steps + 1:
        raise InputError(
            f"its layers see {seen} steps at once, so that it has no answer before the last: choose protocol per-t"
        )


def first_steps(snn: SpikingNetwork, steps: int) -> SpikingNetwork:
    """The same network for its first steps alone: what follows a step does not change it. Its numbers are shared."""
    if steps == snn.steps:
        return snn
    readout = None if snn.readout is None else snn.readout[:steps, : snn.extra_steps + steps]
    return SpikingNetwork(snn.graph, steps, snn.recipe, snn.head, snn.measured, readout).eval()
