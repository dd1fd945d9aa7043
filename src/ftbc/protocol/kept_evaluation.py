"""One conversion and its evaluation, kept in a results folder: after a kill the same command goes on.

The network is kept as soon as it is converted, beside a note with its checksum; the counts of its evaluation now and
then, and at the end. Both are found by all that decides them, as measurements of a comparison are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from ftbc.data import Images
from ftbc.errors import FileError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.network import SpikingNetwork
from ftbc.processes import Team
from ftbc.protocol.fingerprint import of_bytes, of_images, of_network
from ftbc.protocol.origin import origin
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.recipe import Recipe
from ftbc.save import load, save

EVERY = 20.0
"""Seconds between two times that counts are kept."""


class KeptCounts:
    """The counts of an evaluation that is under way; see `measure.evaluate.Kept`."""

    def __init__(self, folder: ResultsFolder, key: dict[str, Any], made: dict[str, Any]) -> None:
        self.folder, self.key, self.made = folder, key, made
        self.images = 0
        self._written = time.monotonic()

    def read(self) -> tuple[int, list[float]] | None:
        """What another run has left; a damaged file is named in the log, and counted again."""
        kept = self.folder.read(self.key)
        if kept is None:
            return None
        images, counts = kept["result"].get("images"), kept["result"].get("counts")
        numbers = isinstance(counts, list) and all(type(c) is float and math.isfinite(c) for c in counts)
        if type(images) is not int or images < 1 or not numbers:
            self.folder.refuse(self.key, "it has no counts")
            return None
        self.images = images
        return images, counts

    def due(self) -> bool:
        """Whether enough time has passed."""
        return time.monotonic() - self._written >= EVERY

    def write(self, images: int, counts: list[float]) -> None:
        """Keep the counts after so many images."""
        if images != self.images:
            self.folder.write(self.key, {"images": images, "counts": counts}, self.made)
        self.images, self._written = images, time.monotonic()


class KeptEvaluations:
    """Conversions of one network and their evaluations on one set of images; without a folder nothing is kept."""

    def __init__(self, path: Path | None, model: nn.Module, test: Images, command: str, team: Team) -> None:
        self.folder = ResultsFolder(path if team.leads else None)
        self.kept = path is not None
        self.team = team
        if self.kept:
            with team.agreed():
                self.folder.prepare()
            self.made = origin(command)
            cleaned = canonical(trace(model, test.take(1).tensor().to(team.device))).require()
            version = self.made["machine"]["versions"]["ftbc"]
            self.common = {"ftbc": version, "network": of_network(cleaned)}
            self.test = {"test": of_images(test), "batch": test.batch}

    def network(
        self, images: Images, recipe: Recipe, steps: int, rounded: bool, seed: int, make: Callable[[], SpikingNetwork]
    ) -> tuple[SpikingNetwork, float, dict[str, Any]]:
        """The network that was kept, or else what ``make`` gives; the seconds it took; and all that decides it."""
        begun = time.perf_counter()
        if not self.kept:
            return make(), time.perf_counter() - begun, {}
        facts = {
            "recipe": recipe.key(),
            "steps": steps,
            "rounded": rounded,
            "seed": seed,
            "calibration": of_images(images),
        }
        key = {"what": "network", **self.common, **facts}
        found = self.team.told(self._load(key))
        if found is None:
            found = make(), time.perf_counter() - begun
            if self.team.leads:
                self._save(key, *found)
        found[0].recipe = recipe  # which may have another name now
        return *found, key

    def counts(self, snn: dict[str, Any], **settings: Any) -> KeptCounts | None:
        """Where the counts of a network are kept; settings: of the evaluation."""
        if not self.kept:
            return None
        return KeptCounts(self.folder, {**snn, "what": "evaluation", **self.test, **settings}, self.made)

    def _load(self, key: dict[str, Any]) -> tuple[SpikingNetwork, float] | None:
        note = self.folder.read(key)
        if note is None:
            return None
        path = self.folder.place(key).with_suffix(".snn")
        try:
            if of_bytes(path.read_bytes()) != note["result"].get("sha256"):
                raise FileError(f"'{path.name}' does not fit its checksum")
            return load(path), float(note["result"].get("seconds", 0.0))
        except (OSError, FileError, TypeError, ValueError) as error:
            self.folder.refuse(key, str(error))
            return None

    def _save(self, key: dict[str, Any], snn: SpikingNetwork, seconds: float) -> None:
        path = self.folder.place(key).with_suffix(".snn")
        save(snn, path)
        checksum = of_bytes(path.read_bytes())
        self.folder.write(key, {"sha256": checksum, "seconds": seconds}, self.made)
