"""A search: propose settings, measure them on held-out training images, keep the best.

The sampler is seeded anew for each trial by how many there were before, and a trial that a killed worker has left is
given up: so a search that is killed and continued, by one worker, makes the proposals of an unbroken one. What had been
measured is kept as in a comparison, and not measured again.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ftbc.atomic import replacing
from ftbc.compare import compare
from ftbc.errors import FileError, FtbcError, InputError, first_line
from ftbc.progress import Progress, silent
from ftbc.protocol.fingerprint import of_images, of_settings
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.recipe import Recipe
from ftbc.search.held_out import HeldOut
from ftbc.search.journal import import_optuna, open_storage, writing
from ftbc.search.space import Range, Space

_PAUSE = 0.2
_FEW = 5
"""Trials that are never given up early: there is nothing to compare them with."""


@dataclass(frozen=True)
class Trial:
    """A proposal; value: the mean accuracy in percent, None if it was given up early or does not apply, as said."""

    number: int
    settings: dict[str, Any]
    value: float | None
    reason: str = ""


@dataclass
class Search:
    """A search over one space, for one network; several of them, in as many processes, share the work of one folder.

    seeds: how many draws of ``images`` calibration images a proposal is measured with; storage: an address of Optuna's
    in the place of a journal in the folder.
    """

    model: nn.Module
    space: Space
    images: HeldOut
    folder: ResultsFolder
    seeds: int = 1
    seed: int = 0
    engine: str = "layerwise"
    storage: str | None = None
    progress: Progress = silent
    _study: Any = field(init=False, repr=False)
    _workers: ResultsFolder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        optuna = import_optuna()
        if self.folder.path is None:
            raise InputError("a search is kept in a folder: name one")
        self.folder.prepare()
        # Beside the measurements: a process that closes a locked file lets go of all its locks on it.
        self._workers = ResultsFolder(self.folder.path / "workers")
        self._workers.prepare()
        about = self._about()
        storage = open_storage(self.storage, self.folder.path / "journal.log")
        pruner = optuna.pruners.MedianPruner(n_startup_trials=_FEW)
        with self._turn(), writing(self.folder.path / "journal.log"):
            self._study = optuna.create_study(
                storage=storage,
                study_name=f"ftbc-{about[:16]}",
                direction="maximize",
                load_if_exists=True,
                pruner=pruner,
            )

    def run(self, trials: int) -> None:
        """Go on until there are so many trials, of all workers together."""
        assert self.folder.path is not None
        with writing(self.folder.path / "journal.log"):
            self._run(trials)

    def _run(self, trials: int) -> None:
        states = import_optuna().trial.TrialState
        while True:
            with self._turn():
                self._give_up_dead()
                everything = self._study.get_trials(deepcopy=False)
                done = sum(trial.state in (states.COMPLETE, states.PRUNED) for trial in everything)
                running = sum(trial.state == states.RUNNING for trial in everything)
                self.progress("searching", done, max(trials, done))
                if done + running >= trials:
                    if not running or self.storage is not None:
                        return
                    trial = None  # other workers are at the last ones
                else:
                    trial = self._ask(done + running)
                    trial.set_user_attr("worker", self._worker())
                    claim = self._workers.claim(_key(trial.number))
                    claim.__enter__()
            if trial is None:
                time.sleep(_PAUSE)
                continue
            try:
                self._measure(trial)
            finally:
                claim.__exit__(None, None, None)

    def trials(self) -> list[Trial]:
        """All that have ended, in the order in which they began."""
        states = import_optuna().trial.TrialState
        return [
            Trial(
                trial.number,
                {name: self.space.places[name].chosen(value) for name, value in trial.params.items()},
                trial.value if trial.state == states.COMPLETE else None,
                trial.user_attrs.get("reason", ""),
            )
            for trial in self._study.get_trials(deepcopy=False)
            if trial.state in (states.COMPLETE, states.PRUNED)
        ]

    def best(self) -> tuple[Recipe, float]:
        """The recipe with the best settings, and its mean accuracy on the held-out images; the first of equals."""
        ended = [trial for trial in self.trials() if trial.value is not None]
        if not ended:
            reasons = [trial.reason for trial in self.trials() if trial.reason] or ["no trial has ended"]
            raise InputError(f"the search has found nothing: {reasons[0]}")
        top = max(ended, key=lambda trial: (trial.value, -trial.number))
        params = self._study.get_trials(deepcopy=False)[top.number].params
        assert top.value is not None
        return self.space.recipe(params), top.value

    def importance(self) -> dict[str, float]:
        """How much of the difference between good and bad trials each setting explains; empty with too few trials."""
        optuna = import_optuna()
        values = {trial.value for trial in self.trials() if trial.value is not None}
        if len(values) < 2:
            return {}
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        try:
            return dict(optuna.importance.get_param_importances(self._study, evaluator=evaluator))
        except (ValueError, RuntimeError):  # too few that differ
            return {}

    def write_best(self, recipe: Recipe) -> None:
        """Write the recipe as TOML, which ``ftbc convert --recipe`` takes."""
        assert self.folder.path is not None
        with replacing(self.folder.path / "best.toml") as file:
            file.write(recipe.to_toml().encode())

    def _about(self) -> str:
        """A name for all that decides what a proposal is worth."""
        pool, held_out = self.images.pool, self.images.held_out
        parts = [self.space.to_dict(), self.seeds, self.seed, self.images.count, of_images(pool), of_images(held_out)]
        weights = {name: of_images(tensor) for name, tensor in self.model.state_dict().items()}
        return of_settings([*parts, self.engine, weights])

    def _ask(self, before: int) -> Any:
        sampler = import_optuna().samplers.TPESampler
        self._study.sampler = sampler(seed=(self.seed * 1_000_003 + before) % 2**31)
        return self._study.ask()

    def _measure(self, trial: Any) -> None:
        states = import_optuna().trial.TrialState
        proposal = {}
        for name, place in self.space.places.items():
            if not isinstance(place, Range):
                proposal[name] = trial.suggest_categorical(name, place.texts)
            elif place.whole:
                proposal[name] = trial.suggest_int(name, place.low, place.high, log=place.log)
            else:
                proposal[name] = trial.suggest_float(name, float(place.low), float(place.high), log=place.log)
        sums, count = 0.0, 0
        try:
            for accuracy in self._accuracies(self.space.recipe(proposal)):
                sums, count = sums + accuracy, count + 1
                trial.report(sums / count, count)
                if count < self.seeds * len(self.space.steps) and trial.should_prune():
                    trial.set_user_attr("reason", "worse than most after its first measurements")
                    self._study.tell(trial, state=states.PRUNED)
                    return
        except FileError:
            raise
        except FtbcError as error:  # settings that do not go together, or not with this network
            trial.set_user_attr("reason", first_line(error))
            self._study.tell(trial, state=states.PRUNED)
            return
        self._study.tell(trial, sums / count)

    def _accuracies(self, recipe: Recipe) -> Iterator[float]:
        for seed in range(self.seed, self.seed + self.seeds):
            for t in self.space.steps:
                table = compare(
                    self.model, self.images.draw, self.images.held_out, recipe, t,
                    seeds=[seed], engine=self.engine, results=self.folder, progress=self.progress,
                )  # fmt: skip
                accuracy = table.rows[0].accuracy
                assert accuracy is not None
                yield accuracy

    def _give_up_dead(self) -> None:
        """Close trials whose worker is gone; nobody holds their claim any more."""
        states = import_optuna().trial.TrialState
        for trial in self._study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            if trial.user_attrs.get("worker", self._worker()) != self._worker():
                continue  # its claim is in another folder, which cannot be seen from here
            with self._workers.claim(_key(trial.number)) as dead:
                if dead:
                    self._study.tell(trial.number, state=states.FAIL)

    def _worker(self) -> str:
        """Where the claims of this worker are; those of a journal lie beside it, wherever it is seen from."""
        assert self.folder.path is not None
        return "" if self.storage is None else f"{socket.gethostname()}:{self.folder.path.resolve()}"

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Only one worker at a time looks at what there is and takes a trial."""
        while True:
            with self._workers.claim({"what": "turn"}) as ours:
                if ours:
                    yield
                    return
            time.sleep(_PAUSE)


def _key(number: int) -> dict[str, Any]:
    return {"what": "trial", "number": number}
