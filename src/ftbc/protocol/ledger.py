"""What a comparison knows: which measurements are there, in memory and in the results folder, and what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor, nn

from ftbc.calibration_data import gather_images
from ftbc.check import require_activation
from ftbc.errors import FileError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.measure import evaluate as evaluation
from ftbc.protocol.draws import Draw, Labelled, few_of, size_of
from ftbc.protocol.fingerprint import of_images, of_network
from ftbc.protocol.measured import Measured
from ftbc.protocol.plan import Conversion, Run
from ftbc.protocol.results_folder import ResultsFolder

FORMAT = 2
"""Raised when measurements come to mean something else; those that were kept before are then made anew."""


class Ledger:
    """Measurements of one network on one set of test images, by conversion and run.

    The key of each in the folder is everything that decides its figures: the content of network, calibration images and
    test images, the recipe's pieces, T, steps run, seed, engine and the version of ftbc. The protocol is not: both read
    the same measurements.
    """

    def __init__(
        self,
        model: nn.Module,
        draw: Draw,
        seeds: Sequence[int],
        test: Labelled,
        limit: int | None,
        engine: str,
        folder: ResultsFolder,
        made: dict[str, Any],
    ) -> None:
        self.model = model
        self.engine = engine
        self.folder = folder
        self.made = made
        self.tests = {False: test} if limit is None else {False: test, True: few_of(test, limit)}
        self.found: dict[tuple[str, int, Run, int], Measured] = {}
        self.anns: dict[bool, float] = {}
        self.refused: dict[tuple[str, int], str] = {}
        self.codes: set[str] = set()
        self.kept = self.new = 0
        self._drawn = {seed: draw(seed) for seed in seeds}
        cleaned = canonical(trace(model, self.images(seeds[0]))).require()
        require_activation(cleaned)
        version = made["machine"]["versions"]["ftbc"]
        self._common = {"format": FORMAT, "ftbc": version, "network": of_network(cleaned)}
        self._calibrations: dict[int, str] = {}
        self._counts: dict[int, int] = {}
        for seed in seeds:
            images = self.images(seed)
            self._calibrations[seed], self._counts[seed] = of_images(images), len(images)
        self._tests = {few: of_images(images) for few, images in self.tests.items()}

    def images(self, seed: int) -> Tensor:
        """The calibration images of a seed."""
        return gather_images(self._drawn[seed], self.model)

    def calibration_images(self, seed: int) -> int:
        """How many they are."""
        return self._counts[seed]

    def test_images(self, few: bool) -> int:
        """The number of test images."""
        return size_of(self.tests[few])

    # ---- the network itself ------------------------------------------------------------------------------

    def take_up_ann(self, few: bool) -> bool:
        """Whether the accuracy of the ANN is known, or kept."""
        kept = self.folder.read(self.ann_key(few)) if few not in self.anns else None
        if kept is not None:
            accuracy = kept["result"].get("accuracy")
            if type(accuracy) in (int, float) and 0 <= accuracy <= 100:
                self.anns[few] = accuracy
            else:
                self.folder.refuse(self.ann_key(few), "it has no accuracy")
        return few in self.anns

    def enter_ann(self, few: bool, accuracy: float) -> None:
        """Keep the accuracy of the ANN."""
        self.folder.write(self.ann_key(few), {"accuracy": accuracy, "images": self.test_images(few)}, self.made)
        self.anns[few] = accuracy

    # ---- conversions -------------------------------------------------------------------------------------

    def take_up(self, conversion: Conversion) -> bool:
        """Whether all runs of a conversion are known, or kept."""
        for run in self.missing(conversion):
            key = self.key(conversion, run)
            kept = self.folder.read(key)
            if kept is None:
                continue
            try:
                self.found[_place(conversion, run)] = Measured.from_dict(kept["result"], run.steps)
            except FileError as error:
                self.folder.refuse(key, str(error))
                continue
            self.kept += 1
            self.codes.add(str(kept["made"].get("code")))
        return not self.missing(conversion)

    def missing(self, conversion: Conversion) -> list[Run]:
        """The runs of a conversion that are not known."""
        return [run for run in conversion.runs if _place(conversion, run) not in self.found]

    def enter(self, conversion: Conversion, run: Run, figures: Measured) -> None:
        """Keep what was measured."""
        made = {**self.made, "recipe": conversion.recipe.name}
        self.folder.write(self.key(conversion, run), figures.to_dict(), made)
        self.found[_place(conversion, run)] = figures
        self.new += 1
        self.codes.add(self.made["code"])

    def refuse(self, conversion: Conversion, reason: str) -> None:
        """Note that a recipe does not apply at this T, whatever the seed."""
        self.refused[conversion.recipe.name, conversion.steps] = reason

    def reason(self, recipe: str, steps: int) -> str:
        """Why a recipe has no figures at this T, if it was refused."""
        return self.refused.get((recipe, steps), "")

    def claim(self, conversion: Conversion) -> AbstractContextManager[bool]:
        """Let no other run measure it, inside the block; false if one does already."""
        return self.folder.claim(self.key(conversion, conversion.runs[0]))

    # ---- keys --------------------------------------------------------------------------------------------

    def key(self, conversion: Conversion, run: Run) -> dict[str, Any]:
        """All that decides the figures of a run."""
        return {
            "what": f"t{conversion.steps}-seed{conversion.seed}",
            **self._common,
            "recipe": conversion.recipe.key(),
            "steps": conversion.steps,
            "run": run.steps,
            "seed": conversion.seed,
            "calibration": self._calibrations[conversion.seed],
            "test": self._tests[run.few],
            "engine": self.engine,
            "counted_images": evaluation.COUNTED_IMAGES,
        }

    def ann_key(self, few: bool) -> dict[str, Any]:
        """All that decides the accuracy of the network itself."""
        return {"what": "ann", **self._common, "test": self._tests[few]}


def _place(conversion: Conversion, run: Run) -> tuple[str, int, Run, int]:
    return conversion.recipe.name, conversion.steps, run, conversion.seed
