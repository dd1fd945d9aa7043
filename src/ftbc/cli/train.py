"""`ftbc train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from safetensors.torch import save as to_bytes

from ftbc import zoo
from ftbc import data as datasets
from ftbc.atomic import replacing
from ftbc.cli.progress import progress_bar
from ftbc.train import Epoch, TrainSettings, accuracy, train_classifier


def train(
    architecture: Annotated[str, typer.Argument(help="A network of the zoo, such as resnet20")],
    data: Annotated[str, typer.Option(help="A folder with a training and a test split")],
    to: Annotated[Path, typer.Option(help="Write the weights here, as safetensors; checkpoints beside it")],
    epochs: Annotated[int, typer.Option(min=1)] = 40,
    batch: Annotated[int, typer.Option(min=1)] = 128,
    learning_rate: Annotated[float, typer.Option(help="The highest of the one-cycle schedule")] = 0.1,
    weight_decay: Annotated[float, typer.Option()] = 5e-4,
    seed: Annotated[int, typer.Option(help="Initial weights, order and augmentation")] = 0,
) -> None:
    """Train a network on images held in memory; run again after a kill, it goes on where it was.

    Example: `ftbc train resnet20 --data data/cifar10 --to resnet20.safetensors`
    """
    train_images, test = datasets.load(data)
    classes = int(train_images.labels.max()) + 1
    torch.manual_seed(seed)
    model = zoo.build(architecture, classes=classes)
    settings = TrainSettings(epochs, batch, learning_rate, weight_decay=weight_decay, seed=seed)

    def show(epoch: Epoch) -> None:
        typer.echo(
            f"epoch {epoch.epoch:3}/{epochs}  loss {epoch.loss:.4f}  training accuracy {epoch.accuracy:.2f}%  "
            f"{epoch.images_per_second:.0f} images/s"
        )

    train_classifier(
        model, train_images.images, train_images.labels, train_images.normalise, settings, to.with_suffix(".checkpoint"), show
    )
    with replacing(to) as file:
        file.write(to_bytes({name: tensor.contiguous() for name, tensor in model.state_dict().items()}))
    with progress_bar() as progress:
        typer.echo(f"test accuracy {accuracy(model, test, progress):.2f}% on {len(test)} images; weights in {to}")
