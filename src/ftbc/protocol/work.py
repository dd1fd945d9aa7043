"""The work of a comparison: convert and measure what is not known yet, cheap before dear, beside other runs."""

from __future__ import annotations

import time

from torch import nn

from ftbc.convert import convert
from ftbc.errors import FileError, FtbcError, InputError, ProcessError, first_line
from ftbc.measure.evaluate import evaluate, reference_accuracy
from ftbc.network import SpikingNetwork
from ftbc.processes import ALONE, Team
from ftbc.progress import Progress
from ftbc.protocol.ledger import Ledger
from ftbc.protocol.measured import Measured
from ftbc.protocol.plan import Conversion, Plan, Run
from ftbc.protocol.shards import WHOLE, Shard
from ftbc.simulate.schedule import together

_PAUSE = 0.5
_CALIBRATION = 20
"""A guess of how many times as long a calibration takes for an image and step as a test, for the time that is left."""


class Work:
    """Makes the measurements that are missing, and tells how far that is, in images times steps.

    team: the processes that make each of them together. The leading one alone knows the results folder and decides.
    shard: the part of the conversions that is made here; the first part also measures the network itself.
    """

    def __init__(
        self, model: nn.Module, plan: Plan, ledger: Ledger, progress: Progress, team: Team = ALONE,
        shard: Shard = WHOLE,
    ) -> None:  # fmt: skip
        self.model = model
        self.plan = plan
        self.ledger = ledger
        self.progress = progress
        self.team = team
        self.shard = shard
        self.total = self.done = 0

    def run(self, measure: bool) -> None:
        """Take up what is kept, then make the rest, cheap before dear."""
        ledger = self.ledger
        anns = self.team.told([few for few in self.plan.tests() if not ledger.take_up_ann(few)])
        anns = anns if self.shard.number == 1 else []
        conversions = self.shard.of_work(self.plan.conversions())
        known = self.team.told([ledger.take_up(conversion) for conversion in conversions])
        missing = [conversion for conversion, done in zip(conversions, known, strict=True) if not done]
        if not measure or not (missing or anns):
            return
        with self.team.agreed():
            ledger.folder.prepare()
        for few in anns:
            ledger.enter_ann(few, reference_accuracy(self.model, ledger.tests[few], self.team))
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
            if ours:
                self.ledger.take_up(conversion)  # another run may have ended it by now
            ours, runs = self.team.told((ours, self.ledger.missing(conversion)))
            if not ours:
                return False
            if runs and not self.ledger.reason(conversion.recipe.name, conversion.steps):
                self._measure(conversion, runs)
        self.done = before + size
        self._tell(self.done)
        return True

    def _measure(self, conversion: Conversion, runs: list[Run]) -> None:
        ledger, images = self.ledger, self.ledger.images(conversion.seed)
        begun = time.perf_counter()
        try:
            snn = convert(
                self.model, images, conversion.steps, conversion.recipe,
                seed=conversion.seed, progress=self.progress, team=self.team,
            )  # fmt: skip
            seconds = time.perf_counter() - begun
            if self.plan.steps != (conversion.steps,) and self.plan.protocol == "anytime":
                _require_answers(snn)
            self.done += self._effort(conversion)
            for run in runs:
                part, report = first_steps(snn, run.steps), self._report(run.steps)
                result = evaluate(part, ledger.tests[run.few], engine=ledger.engine, progress=report, team=self.team)
                ledger.enter(conversion, run, Measured.of(result, len(images), seconds))
                self.done += run.steps * result.images
        except (FileError, ProcessError):
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
