"""The trained networks that ship with the package: what each is, how good, and the command that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A trained network of the package.

    network: its `Blueprint` as plain data; accuracy: percent of the test images, of the weights as they are stored;
    epochs: of training, without those of the network that it began with. The epoch was never chosen: the last is taken.
    """

    name: str
    network: dict[str, Any]
    normalisation: str
    accuracy: float
    measured_on: str
    epochs: int
    command: str
    sha256: str


def entries() -> dict[str, Entry]:
    """The trained networks that `load` takes, by name."""
    return {entry.name: entry for entry in _ENTRIES}


_CIFAR10 = "the 10,000 test images of CIFAR-10"
_CIFAR100 = "the 10,000 test images of CIFAR-100"

_ENTRIES = (
    Entry(
        name="resnet20-cifar10",
        network={"architecture": "resnet20", "classes": 10},
        normalisation="cifar10",
        accuracy=91.34,
        measured_on=_CIFAR10,
        epochs=50,
        command="ftbc train resnet20 --data data/cifar10 --epochs 40 --to first.safetensors && "
        "ftbc train resnet20 --data data/cifar10 --start-from first.safetensors --average --epochs 10 "
        "--learning-rate 0.05 --seed 1 --to resnet20-cifar10.safetensors",
        sha256="2d38f84dc88b867687f7f6e462bb033e5165b72f56aa1aea0cf73c94264e9b01",
    ),
    Entry(
        name="resnet20-qcfs4-cifar10",
        network={"architecture": "resnet20", "classes": 10, "activation": "qcfs", "levels": 4},
        normalisation="cifar10",
        accuracy=89.83,
        measured_on=_CIFAR10,
        epochs=82,
        command="ftbc train resnet20 --data data/cifar10 --float16 --finetune-from resnet20-cifar10.safetensors "
        "--activation qcfs --levels 4 --epochs 12 --learning-rate 0.04 --to first.safetensors && "
        "ftbc train resnet20 --data data/cifar10 --float16 --compile --activation qcfs --levels 4 "
        "--start-from first.safetensors --epochs 44 --learning-rate 0.1 --seed 1 --to second.safetensors && "
        "ftbc train resnet20 --data data/cifar10 --float16 --compile --activation qcfs --levels 4 "
        "--start-from second.safetensors --teacher resnet20-cifar10 --teacher vgg16-cifar10 --cutout 8 "
        "--epochs 26 --learning-rate 0.06 --seed 2 --to resnet20-qcfs4-cifar10.safetensors",
        sha256="11cd67ee625d8ed85d6d8e67640a28bf33b2ec0ae9e8adf5a9ce70af0f4b6f29",
    ),
    Entry(
        name="resnet20-sliprelu-cifar10",
        network={"architecture": "resnet20", "classes": 10, "activation": "slip-relu"},
        normalisation="cifar10",
        accuracy=89.86,
        measured_on=_CIFAR10,
        epochs=6,
        command="ftbc train resnet20 --data data/cifar10 --float16 --finetune-from resnet20-cifar10.safetensors "
        "--activation slip-relu --fit-steps 4 --epochs 6 --learning-rate 0.03 --to "
        "resnet20-sliprelu-cifar10.safetensors",
        sha256="fb92e4248bd25b3fad405b7604189007eb1fd6a0574e0b739f8b9ef651bd23a7",
    ),
    Entry(
        name="resnet20-qcfs8-cifar10",
        network={"architecture": "resnet20", "classes": 10, "activation": "qcfs", "levels": 8},
        normalisation="cifar10",
        accuracy=89.92,
        measured_on=_CIFAR10,
        epochs=5,
        command="ftbc train resnet20 --data data/cifar10 --float16 --finetune-from resnet20-cifar10.safetensors "
        "--activation qcfs --levels 8 --fit-steps 8 --epochs 5 --learning-rate 0.02 --to "
        "resnet20-qcfs8-cifar10.safetensors",
        sha256="21ac7e6cdb6d50c6a744251446439c043a890b0e524b74a7052e988f4d62d93f",
    ),
    Entry(
        name="resnet20-trelu-cifar10",
        network={"architecture": "resnet20", "classes": 10, "activation": "threshold-relu"},
        normalisation="cifar10",
        accuracy=90.99,
        measured_on=_CIFAR10,
        epochs=3,
        command="ftbc train resnet20 --data data/cifar10 --float16 --finetune-from resnet20-cifar10.safetensors "
        "--activation threshold-relu --epochs 3 --to resnet20-trelu-cifar10.safetensors",
        sha256="7f3aa8d1854272d29f642812ca47e06333186f4243c32daba78c9df4679f4e12",
    ),
    Entry(
        name="vgg16-cifar10",
        network={"architecture": "vgg16-cifar", "classes": 10, "width": 0.375},
        normalisation="cifar10",
        accuracy=92.17,
        measured_on=_CIFAR10,
        epochs=102,
        command="ftbc train vgg16-cifar --data data/cifar10 --float16 --width 0.375 --epochs 30 --to "
        "first.safetensors && ftbc train vgg16-cifar --data data/cifar10 --float16 --width 0.375 "
        "--start-from first.safetensors --average --cutout 8 --epochs 24 --learning-rate 0.05 --to "
        "second.safetensors && ftbc train vgg16-cifar --data data/cifar10 --float16 --width 0.375 "
        "--start-from second.safetensors --average --cutout 8 --epochs 12 --learning-rate 0.05 "
        "--label-smoothing 0.1 --seed 1 --to third.safetensors && ftbc train vgg16-cifar --data data/cifar10 --float16 "
        "--width 0.375 --start-from third.safetensors --average --cutout 8 --epochs 20 --learning-rate 0.08 "
        "--label-smoothing 0.1 --seed 2 --to fourth.safetensors && ftbc train vgg16-cifar --data data/cifar10 "
        "--float16 --width 0.375 --start-from fourth.safetensors --average --cutout 8 --epochs 16 --learning-rate 0.08 "
        "--label-smoothing 0.1 --seed 3 --to vgg16-cifar10.safetensors",
        sha256="2e20d0755227e10efa99ef46c0d8693027ed2ee26e33c99885531491be90a844",
    ),
    Entry(
        name="vgg16-qcfs4-cifar10",
        network={"architecture": "vgg16-cifar", "classes": 10, "width": 0.375, "activation": "qcfs", "levels": 4},
        normalisation="cifar10",
        accuracy=88.63,
        measured_on=_CIFAR10,
        epochs=4,
        command="ftbc train vgg16-cifar --data data/cifar10 --float16 --width 0.375 --epochs 30 "
        "--to first.safetensors && "
        "ftbc train vgg16-cifar --data data/cifar10 --float16 --width 0.375 --start-from first.safetensors "
        "--cutout 8 --epochs 24 --learning-rate 0.05 --to second.safetensors && "
        "ftbc train vgg16-cifar --data data/cifar10 --float16 --width 0.375 --finetune-from second.safetensors "
        "--activation qcfs --levels 4 --fit-steps 4 --epochs 4 --learning-rate 0.02 "
        "--to vgg16-qcfs4-cifar10.safetensors",
        sha256="17abfbf333192d0ed1613e9a163ba76dc5dd9b8448e6afd494f93c12a766a3f5",
    ),
    Entry(
        name="resnet20-cifar100",
        network={"architecture": "resnet20", "classes": 100},
        normalisation="cifar100",
        accuracy=64.40,
        measured_on=_CIFAR100,
        epochs=26,
        command="ftbc train resnet20 --data data/cifar100 --float16 --epochs 12 --to first.safetensors && ftbc "
        "train resnet20 --data data/cifar100 --float16 --start-from first.safetensors --epochs 14 "
        "--learning-rate 0.1 --to resnet20-cifar100.safetensors",
        sha256="8fcb42d6a85f39be99340752c56f1fe93edcb3dc65a933791ad45049a3fb77ca",
    ),
    Entry(
        name="resnet20-qcfs8-cifar100",
        network={"architecture": "resnet20", "classes": 100, "activation": "qcfs", "levels": 8},
        normalisation="cifar100",
        accuracy=62.16,
        measured_on=_CIFAR100,
        epochs=5,
        command="ftbc train resnet20 --data data/cifar100 --float16 --finetune-from "
        "resnet20-cifar100.safetensors --activation qcfs --levels 8 --epochs 5 --learning-rate 0.02 --to"
        " resnet20-qcfs8-cifar100.safetensors",
        sha256="6bbe6781247753d4d496ec267cbf7b1db72de59e4748c8a63b86579376edaee7",
    ),
    Entry(
        name="resnet20-ratenorm-cifar10",
        network={"architecture": "resnet20", "classes": 10, "activation": "rate-norm"},
        normalisation="cifar10",
        accuracy=89.46,
        measured_on=_CIFAR10,
        epochs=8,
        command="ftbc train resnet20 --data data/cifar10 --float16 --finetune-from resnet20-cifar10.safetensors "
        "--activation rate-norm --epochs 3 --to first.safetensors && ftbc train resnet20 --data "
        "data/cifar10 --float16 --activation rate-norm --start-from first.safetensors --epochs 5 "
        "--learning-rate 0.05 --seed 1 --to resnet20-ratenorm-cifar10.safetensors",
        sha256="d904df412454b5f4c3fcf9e1765c2efe821ff6ac53274ab2f1b62552b644a2ef",
    ),
    Entry(
        name="mobilenet-cifar10",
        network={"architecture": "mobilenet-v1-cifar", "classes": 10, "width": 0.5},
        normalisation="cifar10",
        accuracy=81.81,
        measured_on=_CIFAR10,
        epochs=19,
        command="ftbc train mobilenet-v1-cifar --data data/cifar10 --float16 --width 0.5 --epochs 12 --to "
        "first.safetensors && ftbc train mobilenet-v1-cifar --data data/cifar10 --float16 --width 0.5 "
        "--start-from first.safetensors --epochs 7 --learning-rate 0.1 --seed 1 --to "
        "mobilenet-cifar10.safetensors",
        sha256="2650f094dc82b07f0323c401a0d2e59ae8823fa4e38b4904d91929dec16e6ef0",
    ),
)
