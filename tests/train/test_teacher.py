"""Learning from teachers: the loss written out, what it leads to, and teachers that do not fit."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ftbc import zoo
from ftbc.data import NORMALISATIONS, Images
from ftbc.errors import FileError, InputError
from ftbc.train import TrainSettings, fit
from ftbc.train.plan import merged, plan_of, read_plan
from ftbc.train.teacher import Objective, teacher
from tests.conftest import Refused
from tests.train.test_classifier import NORMALISE, images, network


def constant(*logits: float) -> nn.Module:
    """A network that gives the same answer to all images."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, len(logits)))
    nn.init.zeros_(model[1].weight)
    model[1].bias.data = torch.tensor(logits)
    return model


def test_the_loss_written_out() -> None:
    answers, z, y = [(1.0, -2.0, 0.5), (0.0, 3.0, 1.0)], torch.tensor([[0.3, -1.0, 2.0], [1.0, 0.0, 0.0]]), [2, 0]
    weight, tau, smoothing = 0.7, 3.0, 0.1
    settings = TrainSettings(teacher_weight=weight, temperature=tau, label_smoothing=smoothing)
    found = Objective(settings, [constant(*logits) for logits in answers])(torch.rand(2, 1, 2, 2), z, torch.tensor(y))

    def softmax(values, scale):  # type: ignore[no-untyped-def]
        powers = [math.exp(value / scale) for value in values]
        return [power / sum(powers) for power in powers]

    told = [sum(column) / 2 for column in zip(*(softmax(logits, tau) for logits in answers), strict=True)]
    wanted = 0.0
    for row, label in zip(z.tolist(), y, strict=True):
        right = [(1 - smoothing) * (k == label) + smoothing / 3 for k in range(3)]
        labels = -sum(p * math.log(q) for p, q in zip(right, softmax(row, 1), strict=True))
        teachers = sum(p * math.log(p / q) for p, q in zip(told, softmax(row, tau), strict=True))
        wanted += ((1 - weight) * labels + weight * tau**2 * teachers) / 2
    assert float(found) == pytest.approx(wanted, rel=1e-5)


def test_without_teachers_and_without_weight_the_labels_alone_count() -> None:
    z, y, x = torch.rand(4, 3), torch.tensor([0, 1, 2, 0]), torch.rand(4, 1, 2, 2)
    wanted = F.cross_entropy(z, y)
    assert torch.equal(Objective(TrainSettings())(x, z, y), wanted)
    assert torch.equal(Objective(TrainSettings(teacher_weight=0.0), [constant(1.0, 2.0, 3.0)])(x, z, y), wanted)


def test_a_network_learns_what_its_teacher_says_against_the_labels(tmp_path: Path) -> None:
    pixels, labels = images()
    teacher_model = fit(network(), Images(pixels, labels, NORMALISE, "right"), TrainSettings(epochs=3, batch=8),
                        tmp_path / "teacher.checkpoint")  # fmt: skip
    before = {name: value.clone() for name, value in teacher_model.state_dict().items()}
    wrong = Images(pixels, 1 - labels, NORMALISE, "wrong")
    settings = TrainSettings(epochs=3, batch=8, teacher_weight=1.0)
    pupil = fit(network(), wrong, settings, tmp_path / "pupil.checkpoint", teachers=[teacher_model])
    with torch.no_grad():
        x = NORMALISE(pixels)
        assert (pupil(x).argmax(1) == labels).float().mean() > 0.95
    assert all(torch.equal(value, before[name]) for name, value in teacher_model.state_dict().items())


def test_teachers_by_name_and_file(tmp_path: Path, refused: Refused) -> None:
    cifar10 = NORMALISATIONS["cifar10"]
    assert not teacher("resnet20-qcfs4-cifar10", 10, cifar10).training
    blueprint = zoo.Blueprint("resnet20", classes=4, width=0.25)
    model, file = blueprint.build().eval(), tmp_path / "own.safetensors"
    zoo.save_weights(model, file, blueprint)
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(teacher(str(file), 4, cifar10).eval()(x), model(x))
    refused(InputError, ("knows 4 classes", "have 10"), teacher, str(file), 10, cifar10)
    refused(InputError, "normalised for cifar10", teacher, "resnet20-cifar10", 10, NORMALISATIONS["imagenet"])
    refused(FileError, "is no trained network of the zoo", teacher, "resnet20", 10, cifar10)
    refused(FileError, "is no trained network of the zoo", teacher, str(tmp_path / "none.safetensors"), 10, cifar10)


def test_plans_hold_their_teachers(tmp_path: Path, refused: Refused) -> None:
    content = {"network": {"architecture": "resnet20"}, "data": "here"}
    plan = plan_of(merged(content, {"teachers": ["a", "b"], "train": {"temperature": 2.0}}))
    plan.write(tmp_path / "net.toml")
    assert plan.teachers == ("a", "b") and plan_of(merged(read_plan(tmp_path / "net.toml"))) == plan
    assert plan_of(merged(content)).teachers == ()
    refused(InputError, "give a list", plan_of, merged(content, {"teachers": "resnet20-cifar10"}))
    refused(InputError, "above 0", plan_of, merged(content, {"train": {"temperature": 0.0}}))
    refused(InputError, "from 0 to 1", plan_of, merged(content, {"train": {"teacher_weight": 1.5}}))
