"""The figures of docs/speed.md as Markdown, from what the benchmarks wrote into results/."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from ftbc.measure.timing import Spread

Row = Mapping[str, Any]
PLOT = "speed-density.png"
NAMES = {
    "layerwise": "layerwise",
    "stepwise": "stepwise",
    "event": "events, float32",
    "event-int16": "events, int16 (rounded)",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "|" + "|".join(line) + "|" if line[0] == "---" else "| " + " | ".join(line) + " |" for line in lines
    )


def block(name: str, folder: Path) -> str:
    """What stands in a block of the page: its tables and where they come from, or that there is nothing yet."""
    part, make = BLOCKS[name]
    content = results.read(folder, part)
    if content is None:
        return f"*Not measured yet: `make bench` writes `results/bench-{part}.json`, of which this is made.*"
    left_out = "".join(f"\n\n*{note}*" for note in content["notes"])
    made = make(content["rows"]) if content["rows"] else "*Nothing could be measured.*"
    return f"{made}{left_out}\n\n*`{content['command']}`, {_machine(content)}.*"


def _machine(content: Mapping[str, Any]) -> str:
    facts = content["machine"]
    versions = facts["versions"]
    rounds = {row["repeats"] for row in content["rows"] if "repeats" in row}
    return (
        f"{facts['cpu']}, {facts['cores']} cores, torch {versions['torch']}, numba {versions.get('numba', 'none')}; "
        f"median of {', '.join(map(str, sorted(rounds)))} interleaved rounds (smallest..largest)"
    )


def _cell(spread: Mapping[str, float] | None) -> str:
    return "-" if spread is None else str(Spread.from_dict(spread))


def _find(rows: Sequence[Row], **wanted: Any) -> Row | None:
    return next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), None)


def _distinct(rows: Iterable[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def engines(rows: Sequence[Row]) -> str:
    """A table a network: images a second at T over those of the ANN."""
    parts = []
    for network in _distinct(rows, "network"):
        own = [row for row in rows if row["network"] == network]
        batch, steps = max(row["batch"] for row in own), _distinct(own, "steps")
        densities = ", ".join(f"{_percent((_find(own, steps=t) or {})['density'])} at T = {t}" for t in steps)
        anns = {
            _threads(count): sorted(
                {
                    (row["ann"]["batch"], row["ann"]["layout"])
                    for row in own
                    if row["batch"] == batch and row["threads"] == count
                }
            )
            for count in _distinct(own, "threads")
        }
        best = "; ".join(
            f"{words}: batch {' or '.join(f'{size}, {layout}' for size, layout in found)}"
            for words, found in anns.items()
        )
        first = own[0]
        caption = (
            f"**{network}**, {first['weights']}; {first['pictures']}; recipe {first['recipe']}; {batch} images at "
            f"once. Spikes per neuron and step: {densities}. The ANN at its best, {best}."
        )
        header = ["engine", *(f"T = {t}" for t in steps), *(f"T = {t}, one image at a time" for t in steps)]
        lines = []
        for count in _distinct(own, "threads"):
            for engine in _distinct(own, "engine"):
                cells = [
                    _cell((_find(own, engine=engine, threads=count, steps=t, batch=size) or {}).get("over_ann"))
                    for size in (batch, 1)
                    for t in steps
                ]
                lines.append([f"{NAMES[engine]}, {_threads(count)}", *cells])
        parts.append(f"{caption}\n\n{table(header, lines)}")
    return "\n\n".join(parts)


def anns(rows: Sequence[Row]) -> str:
    """The ANN in several runtimes, and the event engine beside them."""
    columns = [(count, alone) for count in _distinct(rows, "threads") for alone in (False, True)]
    header = ["", *(f"{_threads(c)}, {'one image at a time' if a else 'best batch'}" for c, a in columns), "same class"]
    lines = []
    for what, steps in dict.fromkeys((row["what"], row["steps"]) for row in rows):
        found = [_find(rows, what=what, steps=steps, threads=c, one_image_at_a_time=a) or {} for c, a in columns]
        label = what if steps is None else f"{what}, T = {steps}"
        lines.append([label, *(_cell(row.get("over_ann")) for row in found), _percent(found[0]["same_class_as_ann"])])
    densities = {f"{_percent(row['density'])} at T = {row['steps']}": None for row in rows if row["steps"]}
    caption = (
        f"ResNet-20, images/s over the ANN in torch; {rows[0]['n']} images, recipe {rows[0]['recipe']}; spikes per "
        f"neuron and step: {', '.join(densities)}."
    )
    return f"{caption}\n\n{table(header, lines)}"


def peers(rows: Sequence[Row]) -> str:
    """How many times as fast as each peer each engine is."""
    theirs = [row for row in rows if row["ours_over_this"]]
    if not theirs:
        return "*No peer could be measured.*"
    header = ["ftbc over", "T", "threads", *theirs[0]["ours_over_this"], "same class as ftbc"]
    lines = [
        [
            row["program"],
            str(row["steps"]),
            str(row["threads"]),
            *(_cell(spread) for spread in row["ours_over_this"].values()),
            _percent(row["same_class"]),
        ]
        for row in theirs
    ]
    versions = ", ".join(f"{name} {version}" for name, version in theirs[0]["rival_versions"].items())
    first = theirs[0]
    caption = (
        f"ResNet-20, images/s over those of the peer, each at its best batch; {first['n']} images, recipe "
        f"{first['recipe']}, {_percent(first['density'])} spikes per neuron and step at "
        f"T = {first['steps']}. {versions}."
    )
    return f"{caption}\n\n{table(header, lines)}"


def growth(what: str, key: str, shown: Callable[[Any], str]) -> Callable[[Sequence[Row]], str]:
    """A table of image-steps a second over the ANN's images a second against one quantity."""

    def make(rows: Sequence[Row]) -> str:
        parts = []
        own = [row for row in rows if row["growth"] == what]
        if not own:
            return f"*Not measured: {what}.*"
        networks = [[row for row in own if row["network"] == name] for name in _distinct(own, "network")]
        for group in [own] if what == "width" else networks:
            values = _distinct(group, key)
            first = group[0]
            lines = [
                [
                    NAMES[engine],
                    *(_cell((_find(group, engine=engine, **{key: v}) or {}).get("steps_over_ann")) for v in values),
                ]
                for engine in _distinct(group, "engine")
            ]
            if what != "density":
                spikes = [_percent((_find(group, **{key: value}) or {})["density"]) for value in values]
                lines.append(["spikes per neuron and step", *spikes])
            fixed = "" if what == "T" else f", T = {first['steps']}"
            fixed += "" if what == "batch" else f", {first['batch']} images at once"
            caption = (
                f"**{first['network'] if what != 'width' else 'ResNet-20'}**, {first['weights']}{fixed}, 1 thread."
            )
            parts.append(f"{caption}\n\n{table([what, *map(shown, values)], lines)}")
        return "\n\n".join(parts)

    return make


def plot(rows: Sequence[Row]) -> str:
    """The picture that `benchmarks.pictures` draws of the same rows."""
    if not any(row["growth"] == "density" for row in rows):
        return "*Not measured: density.*"
    words = (
        "Image-steps per second of each engine over the ANN's images per second, against the share of neurons that fire"
    )
    return f"![{words}]({PLOT})"


def calibration(rows: Sequence[Row]) -> str:
    """What a calibration costs."""
    header = ["ratio of time, ResNet-20", "T", "images", *(_threads(count) for count in _distinct(rows, "threads"))]
    lines = []
    for what in _distinct(rows, "what"):
        own = [row for row in rows if row["what"] == what]
        lines.append([what, str(own[0]["steps"]), str(own[0]["n"]), *(_cell(row["ratio"]) for row in own)])
    return table(header, lines)


def kinds(rows: Sequence[Row]) -> str:
    """Neurons of other kinds than the usual one."""
    ways = {"over": "several passes of torch", "over_usual": "plain neurons"}
    counts = _distinct(rows, "threads")
    header = ["neurons", *(f"over {words}, {_threads(count)}" for words in ways.values() for count in counts)]
    lines = []
    for kind in _distinct(rows, "kind"):
        own = {row["threads"]: row for row in rows if row["kind"] == kind}
        lines.append([kind, *(_cell(own[count][way]) for way in ways for count in counts)])
    return f"ResNet-20, `layerwise`, T = {rows[0]['steps']}, {rows[0]['n']} images.\n\n" + table(header, lines)


def sparing(rows: Sequence[Row]) -> str:
    """Neurons of other kinds on events or whole sums."""
    sizes = {row["steps"]: row["n"] for row in rows}
    lines = []
    for kind in _distinct(rows, "kind"):
        own = {row["steps"]: row for row in rows if row["kind"] == kind}
        lines.append([kind, *(_cell(own[t]["over"]) for t in sizes)])
    header = ["images/s over `layerwise` at every step", *(f"T = {t}, {n} images" for t, n in sizes.items())]
    return f"{rows[0]['network']}, {_threads(rows[0]['threads'])}.\n\n" + table(header, lines)


def memory(rows: Sequence[Row]) -> str:
    """How much the peak grows."""
    steps = _distinct(rows, "steps")
    lines = []
    for engine in _distinct(rows, "engine"):
        own = [row for row in rows if row["engine"] == engine]
        ratio = own[-1]["grown_mb"]["median"] / own[0]["grown_mb"]["median"]
        lines.append([NAMES[engine], *(_cell(row["grown_mb"]) for row in own), f"{ratio:.2f}"])
    header = ["growth of peak memory, MB", *(f"T = {t}" for t in steps), f"T = {steps[-1]} over T = {steps[0]}"]
    first = rows[0]
    return f"{first['network']}, {first['n']} images, {_threads(first['threads'])}.\n\n{table(header, lines)}"


def calibration_memory(rows: Sequence[Row]) -> str:
    """How much the peak grows in a calibration."""
    steps, images = _distinct(rows, "steps"), _distinct(rows, "n")
    grown = {(row["n"], row["steps"]): _cell(row["grown_mb"]) for row in rows}
    lines = [[f"{n:,} images", *(grown.get((n, t), "-") for t in steps)] for n in images]
    first = rows[0]
    header = ["growth of peak memory, MB", *(f"T = {t}" for t in steps)]
    return f"{first['network']}, `{first['recipe']}`, {_threads(first['threads'])}.\n\n{table(header, lines)}"


def profiles(rows: Sequence[Row]) -> str:
    """The share of each kind of work, an engine a table row."""
    lines = []
    for engine in _distinct(rows, "engine"):
        own = [row for row in rows if row["engine"] == engine]
        for index, row in enumerate(own):
            name = NAMES.get(engine, "before: every layer at every step, neurons in torch")
            about = [name, _cell(row["time_over_layerwise"])] if index == 0 else ["", ""]
            lines.append([*about, row["work"], _cell(row["percent"])])
    first = rows[0]
    caption = (
        f"{first['network']}, T = {first['steps']}, {first['n']} images, 1 thread, "
        f"{_percent(first['density'])} spikes per neuron and step."
    )
    return f"{caption}\n\n{table(['engine', 'time over that of layerwise', 'work', 'share of the time, %'], lines)}"


def headline(folder: Path) -> str:
    """What README says of ResNet-20, one thread: medians of events over dense, over other libraries and the ANN."""
    engines_, peers_ = results.read(folder, "engines"), results.read(folder, "peers")
    if engines_ is None or peers_ is None:
        return "*Not measured yet: `make bench`.*"
    many = [
        row for row in engines_["rows"] if row["network"] == "ResNet-20" and row["threads"] == 1 and row["batch"] > 1
    ]
    steps = _distinct(many, "steps")

    def median(engine: str, t: int, of: str = "over_ann") -> float:
        return (_find(many, engine=engine, steps=t) or {})[of]["median"]

    def over_peer(program: str, t: int) -> str:
        row = _find(peers_["rows"], program=program, steps=t, threads=1)
        return "" if row is None else f"{row['ours_over_this']['ftbc, events, int16']['median']:.1f}"

    rows = [
        [
            NAMES[engine],
            "`layerwise`, the dense engine",
            *(f"{median(engine, t) / median('layerwise', t):.1f}" for t in steps),
        ]
        for engine in ("event-int16", "event")
    ]
    for program in _distinct([row for row in peers_["rows"] if "same network" in row["program"]], "program"):
        rows.append([NAMES["event-int16"], program, *(over_peer(program, t) for t in steps)])
    rows.append(
        [
            NAMES["event-int16"],
            "its own ANN in float32, torch, best batch",
            *(f"{median('event-int16', t):.2f}" for t in steps),
        ]
    )
    rows.append(
        ["`layerwise`, times T", "the same ANN: at 1, a step costs as much as a pass of it"]
        + [f"{median('layerwise', t, 'steps_over_ann'):.2f}" for t in steps]
    )
    return table(["images/s of", "over", *(f"T = {t}" for t in steps)], rows)


BLOCKS: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "engines": ("engines", engines),
    "anns": ("anns", anns),
    "peers": ("peers", peers),
    "growth-steps": ("growth", growth("T", "steps", str)),
    "growth-batch": ("growth", growth("batch", "batch", str)),
    "growth-width": ("growth", growth("width", "width", lambda width: f"x {width}")),
    "growth-density": ("growth", growth("density", "wanted_density", lambda share: f"{100 * share:.0f} %")),
    "plot": ("growth", plot),
    "kinds": ("kinds", kinds),
    "sparing": ("sparing", sparing),
    "calibration": ("calibration", calibration),
    "memory": ("memory", memory),
    "calibration-memory": ("calibration-memory", calibration_memory),
    "profiles": ("profiles", profiles),
}
"""The blocks of the page: the part of the benchmarks that each is made of, and how."""
