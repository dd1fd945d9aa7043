"""A comparison in parts, on machines that share neither a network nor a folder, and the parts put together.

Each shard measures an n-th of the conversions of the plan into a folder of its own, and writes at its end that it is
whole and what it refused. To merge, all shards of one n must be there, each once, and so must every measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftbc.errors import FileError, InputError
from ftbc.protocol.ledger import Ledger
from ftbc.protocol.plan import Conversion, Plan
from ftbc.protocol.results_folder import ResultsFolder

_NAME = re.compile(r"shard(\d+)of(\d+)-[0-9a-f]+\.json")


@dataclass(frozen=True)
class Shard:
    """Part ``number`` of ``count``, from 1 on.

    >>> Shard.of("2/3").of_work(list("abcdef"))
    ['b', 'd']
    """

    number: int
    count: int

    @classmethod
    def of(cls, text: str) -> Shard:
        """What a user writes: ``2/3``."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        shard = cls(*map(int, found.groups())) if found else cls(0, 0)
        if not 1 <= shard.number <= shard.count:
            raise InputError(f"shard {text!r:.40}: give a part and how many there are, such as 1/4 to 4/4")
        return shard

    def of_work(self, work: Sequence[Any]) -> list[Any]:
        """Its part of a list of work: one of each ``count`` in a row, and each time the next one.

        Neighbours are recipes side by side: a shard that always took the same one would have the dearest.
        """
        own = self.number - 1
        return [entry for place, entry in enumerate(work) if (place + place // self.count) % self.count == own]

    def key(self, plan: Plan, ledger: Ledger) -> dict[str, Any]:
        """The key of the note that it is whole: all that is measured, and which part of it this is."""
        wanted = [ledger.key(conversion, run) for conversion in plan.conversions() for run in conversion.runs]
        return {"what": f"shard{self.number}of{self.count}", "wanted": wanted}

    def end(self, plan: Plan, ledger: Ledger) -> None:
        """Write that it is whole."""
        refused = [[recipe, steps, reason] for (recipe, steps), reason in ledger.refused.items()]
        ledger.folder.write(self.key(plan, ledger), {"refused": refused}, ledger.made)


WHOLE = Shard(1, 1)


def merge(plan: Plan, ledger: Ledger, folders: Iterable[str | Path]) -> None:
    """Put the measurements of all shards into the ledger's own folder, if each of them is there, and there once."""
    sources = [ResultsFolder(folder) for folder in folders]
    for source in sources:
        if source.path is None or not source.path.is_dir():
            raise FileError(f"'{source.path}' is not a folder: name the results folders of the shards")
    for recipe, steps, reason in _refusals(plan, ledger, sources):
        ledger.refused[str(recipe), int(steps)] = str(reason)
    ledger.folder.prepare()
    anns = [(f"the network itself on {ledger.test_images(few)} images", ledger.ann_key(few)) for few in plan.tests()]
    cells = [
        (_named(conversion), ledger.key(conversion, run))
        for conversion in plan.conversions()
        if not ledger.reason(conversion.recipe.name, conversion.steps)
        for run in conversion.runs
    ]
    for name, key in (*anns, *cells):
        found = [(source, content) for source in sources if (content := source.read(key)) is not None]
        if not found:
            raise FileError(f"none of the shards holds {name}: run the shard that lacks it again")
        if len(found) > 1:
            both = " and ".join(f"'{source.path}'" for source, _ in found[:2])
            raise FileError(f"{name} is measured twice, in {both}: give the folder of each shard once")
        ledger.folder.write(key, found[0][1]["result"], found[0][1]["made"])


def _refusals(plan: Plan, ledger: Ledger, sources: list[ResultsFolder]) -> list[Any]:
    """What the shards refused; they must be all of one division, each there once."""
    notes: dict[Shard, tuple[ResultsFolder, list[Any]]] = {}
    for source in sources:
        assert source.path is not None
        for path in sorted(source.path.iterdir()):
            numbers = _NAME.fullmatch(path.name)
            shard = Shard(*map(int, numbers.groups())) if numbers else None
            kept = source.read(shard.key(plan, ledger)) if shard is not None else None
            if shard is None or kept is None:
                continue
            if shard in notes:
                both = f"'{notes[shard][0].path}' and in '{source.path}'"
                raise FileError(f"shard {shard.number}/{shard.count} is in {both}: give one of them")
            notes[shard] = (source, kept["result"].get("refused", []))
    counts = sorted({shard.count for shard in notes})
    if len(counts) != 1:
        said = " and ".join(f"1/{count}" for count in counts) or "none that ended with these options"
        raise FileError(f"the folders hold shards of {said}: give all shards of one division, and the same options")
    for number in range(1, counts[0] + 1):
        if Shard(number, counts[0]) not in notes:
            raise FileError(f"shard {number}/{counts[0]} is missing or not at its end: run it, and give its folder too")
    return [refusal for _, refused in notes.values() for refusal in refused]


def _named(conversion: Conversion) -> str:
    return f"'{conversion.recipe.name}' at T = {conversion.steps} with seed {conversion.seed}"
