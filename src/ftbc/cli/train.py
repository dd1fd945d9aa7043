"""`ftbc train`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ftbc.activation import NAMES
from ftbc.cli.options import Json, write_json
from ftbc.cli.outputs import require_outputs
from ftbc.cli.progress import progress_bar
from ftbc.errors import FileError, MissingExtraError
from ftbc.report.plot import training_curves
from ftbc.train import Epoch, team
from ftbc.train.log import read_log
from ftbc.train.plan import Plan, merged, plan_of, read_plan
from ftbc.train.run import Outputs, run
from ftbc.train.settings import POLICIES


def train(
    context: typer.Context,
    to: Annotated[Path, typer.Option(help="Write the weights here, as safetensors; settings, log, picture beside it")],
    architecture: Annotated[str | None, typer.Argument(help="A network of the zoo, such as resnet20")] = None,
    data: Annotated[str | None, typer.Option(help="A folder with a training and a test split")] = None,
    settings: Annotated[Path | None, typer.Option(help="A TOML file with any of these; options override it")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped; there must be one")
    ] = False,
    epochs: Annotated[int | None, typer.Option(min=1, help="Default: 40; 10 with --finetune-from")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Else 128, over all processes")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="The highest (default: 0.1; 0.01 without BatchNorm)")
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Else 5e-4; 1e-4 for MobileNets and no BatchNorm")] = None,
    warm_up: Annotated[float | None, typer.Option(help="Share of steps to rise in; 0: plain cosine. Else 0.15")] = None,
    label_smoothing: Annotated[float | None, typer.Option(help="Else 0")] = None,
    cutout: Annotated[
        int | None, typer.Option(min=0, help="Side of the square that Cutout blanks (default: none)")
    ] = None,
    auto_augment: Annotated[str | None, typer.Option(help=f"AutoAugment: {', '.join(POLICIES)}")] = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="By torch.compile: a minute later, then faster; needs a C++ compiler")
    ] = False,
    width: Annotated[float | None, typer.Option(help="How many times as wide as usual")] = None,
    batch_norm: Annotated[
        bool | None,
        typer.Option("--batch-norm/--no-batch-norm", help="Variant of the network (default: its usual one)"),
    ] = None,
    activation: Annotated[str | None, typer.Option(help=f"In the place of ReLU: {', '.join(NAMES)}")] = None,
    levels: Annotated[int | None, typer.Option(min=1, help="Of qcfs and slip-relu")] = None,
    slope: Annotated[float | None, typer.Option(help="Of slip-relu")] = None,
    threshold: Annotated[float | None, typer.Option(help="Of the activations, at first")] = None,
    side: Annotated[
        int | None, typer.Option(min=1, help="Side of the crops of an image folder (default: the network's)")
    ] = None,
    start_from: Annotated[Path | None, typer.Option(help="Begin with these weights instead of random ones")] = None,
    average: Annotated[bool, typer.Option("--average", help="Average the result with --start-from")] = False,
    finetune_from: Annotated[
        Path | None, typer.Option(help="Weights of the ReLU network; swap its activations")
    ] = None,
    fit_steps: Annotated[
        int | None, typer.Option(min=1, help="Fit the swapped thresholds to so many steps: fewer, smaller")
    ] = None,
    teacher: Annotated[
        list[str] | None, typer.Option(help="Learn from this trained network, too: of the zoo, or a file; repeatable")
    ] = None,
    teacher_weight: Annotated[
        float | None, typer.Option(help="Weight of the teachers' answers against labels (default: 0.9)")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Smooths the teachers' answers (default: 4)")] = None,
    float16: Annotated[bool, typer.Option("--float16", help="Store kernels and matrices in half the bytes")] = False,
    seed: Annotated[int | None, typer.Option(min=0, max=2**31 - 1, help="Initial weights, order, augmentation")] = None,
    json: Json = None,
) -> None:
    """Train a network; run again after a kill, it goes on where it was.

    In several processes: `torchrun --nproc-per-node 2 -m ftbc train ...`

    Example: `ftbc train resnet20 --data data/cifar10 --activation qcfs --levels 4 --to resnet20.safetensors`
    """
    require_outputs(context, "json")
    outputs = Outputs(to)
    if resume and not outputs.checkpoint.is_file():
        raise FileError(f"there is no '{outputs.checkpoint}' to resume: leave --resume out to begin")
    options = {
        "data": data, "side": side, "average": average or None, "float16": float16 or None,
        "start_from": None if start_from is None else str(start_from),
        "finetune_from": None if finetune_from is None else str(finetune_from),
        "fit_steps": fit_steps, "teachers": teacher or None,
        "network": {
            "architecture": architecture, "width": width, "batch_norm": batch_norm, "activation": activation,
            "levels": levels, "slope": slope, "threshold": threshold,
        },
        "train": {
            "epochs": epochs, "batch": batch, "learning_rate": learning_rate, "weight_decay": weight_decay,
            "warm_up": warm_up, "label_smoothing": label_smoothing, "cutout": cutout, "auto_augment": auto_augment,
            "compile": compile or None, "seed": seed, "teacher_weight": teacher_weight, "temperature": temperature,
        },
    }  # fmt: skip
    known = [outputs.plan] if resume and outputs.plan.is_file() else []
    files = [read_plan(path) for path in (*known, *([] if settings is None else [settings]))]
    plan = plan_of(merged(*files, options))
    with team(device=None) as own, progress_bar(shown=own.leads) as progress:
        ended = run(plan, outputs, own, lambda epoch: _show(epoch, plan), progress)
    if ended is None:
        return
    epochs_done = read_log(outputs.log)
    picture = _draw(outputs.curve, epochs_done, plan)
    result = {
        "architecture": plan.network.architecture, "network": ended.plan.network.to_dict(),
        "settings": asdict(plan.train), "teachers": list(plan.teachers), "accuracy": ended.accuracy,
        "images": ended.images, "epochs": [asdict(epoch) for epoch in epochs_done],
    }  # fmt: skip
    write_json(json, result)
    typer.echo(f"test accuracy {ended.accuracy:.2f}% on {ended.images} images; weights in {to}{picture}")


def _show(epoch: Epoch, plan: Plan) -> None:
    typer.echo(
        f"epoch {epoch.epoch:3}/{plan.train.epochs}  loss {epoch.loss:.4f}  training accuracy {epoch.accuracy:.2f}%  "
        f"{epoch.images_per_second:.0f} images/s  {_time(epoch.seconds_left)} left"
    )


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _draw(path: Path, epochs: list[Epoch], plan: Plan) -> str:
    """Draw the curve if it can be drawn; weights that took days must not be lost to a missing package."""
    try:
        training_curves(path, epochs, f"{plan.network.architecture}, {plan.train.epochs} epochs")
    except MissingExtraError as error:
        return f" (no picture: {error})"
    return f", the curve in {path}"
