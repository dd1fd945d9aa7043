"""AutoAugment by kornia: repeatable, without a trace in torch's own generator, and named when it is missing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.conftest import RunPython
from tests.test_import import blocking


@pytest.fixture
def images() -> Tensor:
    pytest.importorskip("kornia")
    return torch.randint(0, 256, (40, 3, 16, 16), dtype=torch.uint8)


@pytest.mark.parametrize("policy", ["cifar10", "imagenet", "svhn"])
def test_the_seed_decides(images: Tensor, policy: str) -> None:
    from ftbc.train.auto_augment import auto_augment

    kept, state = images.clone(), torch.get_rng_state()
    first, second, other = (auto_augment(images, policy, seed) for seed in (3, 3, 4))
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert torch.equal(images, kept) and torch.equal(torch.get_rng_state(), state)
    assert first.shape == images.shape and first.dtype == torch.float32
    assert first.min() >= 0 and first.max() <= 255 and not torch.equal(first, images.float())


def test_a_batch_gets_several_pairs_of_operations(images: Tensor) -> None:
    """Black images show it: most operations leave black alone, inversion and brightness do not."""
    from ftbc.train.auto_augment import TOGETHER, auto_augment

    black = torch.zeros(20 * TOGETHER, 3, 8, 8, dtype=torch.uint8)
    changed = auto_augment(black, "svhn", 0).flatten(1).any(1).view(20, TOGETHER).any(1)
    assert changed.any() and not changed.all()


def test_its_absence_is_told_before_the_work(run_python: RunPython) -> None:
    code = """
    import torch
    from ftbc.data import Images, NORMALISATIONS
    from ftbc.errors import MissingExtraError
    from ftbc.train import TrainSettings
    from ftbc.train.source import source_of
    images = Images(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.arange(4), NORMALISATIONS["unit"], "black")
    source_of(images, TrainSettings())
    try:
        source_of(images, TrainSettings(auto_augment="cifar10"))
    except MissingExtraError as error:
        print(error)
    """
    result = run_python(blocking("kornia") + code)
    assert "'kornia'" in result.stdout and "pip install 'ftbc[train]'" in result.stdout, result.stderr
