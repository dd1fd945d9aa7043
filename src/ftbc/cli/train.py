"""`ftbc train`."""

from __future__ import annotations

import copy
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import typer
from safetensors.torch import save as to_bytes

from ftbc import data as datasets
from ftbc import zoo
from ftbc.atomic import make_folder, replacing, require_writable
from ftbc.cli.options import Json, write_json
from ftbc.cli.progress import progress_bar
from ftbc.errors import FileError, InputError
from ftbc.train import Epoch, TrainSettings, accuracy, average_weights, train_classifier


def train(
    architecture: Annotated[str, typer.Argument(help="A network of the zoo, such as resnet20")],
    data: Annotated[str, typer.Option(help="A folder with a training and a test split")],
    to: Annotated[Path, typer.Option(help="Write the weights here, as safetensors; checkpoints beside it")],
    epochs: Annotated[int, typer.Option(min=1)] = 40,
    batch: Annotated[int, typer.Option(min=1)] = 128,
    learning_rate: Annotated[float, typer.Option(help="The highest of the one-cycle schedule")] = 0.1,
    weight_decay: Annotated[float, typer.Option()] = 5e-4,
    start_from: Annotated[Path | None, typer.Option(help="Begin with these weights instead of random ones")] = None,
    average: Annotated[bool, typer.Option("--average", help="Average the result with --start-from")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Initial weights, order and augmentation")] = 0,
    json: Json = None,
) -> None:
    """Train a network on images held in memory; run again after a kill, it goes on where it was.

    Example: `ftbc train resnet20 --data data/cifar10 --to resnet20.safetensors`
    """
    checkpoint = to.with_suffix(".checkpoint")
    if checkpoint == to:
        raise FileError(f"cannot write the weights to '{to}', where the checkpoint goes: give another suffix")
    make_folder(to.parent)
    require_writable(to, json)
    train_images, test = datasets.load(data)
    classes = int(train_images.labels.max()) + 1
    torch.manual_seed(seed)
    model = zoo.build(architecture, classes=classes)
    if average and start_from is None:
        raise InputError("--average needs --start-from: it averages the result with the weights it began with")
    if start_from is not None:
        zoo.load_weights(model, start_from)
    beginning = copy.deepcopy(model)
    settings = TrainSettings(epochs, batch, learning_rate, weight_decay=weight_decay, seed=seed)

    def show(epoch: Epoch) -> None:
        typer.echo(
            f"epoch {epoch.epoch:3}/{epochs}  loss {epoch.loss:.4f}  training accuracy {epoch.accuracy:.2f}%  "
            f"{epoch.images_per_second:.0f} images/s"
        )

    train_classifier(
        model, train_images.images, train_images.labels, train_images.normalise, settings, checkpoint, show
    )
    if average:
        average_weights(model, beginning, train_images.images, train_images.normalise)
    with replacing(to) as file:
        file.write(to_bytes({name: tensor.contiguous() for name, tensor in model.state_dict().items()}))
    with progress_bar() as progress:
        right = accuracy(model, test, progress)
    typer.echo(f"test accuracy {right:.2f}% on {len(test)} images; weights in {to}")
    write_json(
        json, {"architecture": architecture, "settings": asdict(settings), "accuracy": right, "images": len(test)}
    )
