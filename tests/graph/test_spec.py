"""Modules as plain data: what is described and rebuilt computes the same, and nothing unknown is built."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from ftbc.errors import FileError
from ftbc.graph import ops, spec
from tests.graph.support import clean, images, settled
from tests.graph.table import TABLE


def test_every_operation_of_the_table_survives_json() -> None:
    seen = set()
    for entry in TABLE.values():
        x = images(entry.shape, 2)
        graph = clean(settled(entry.make()), x).graph
        values = {"input": x}
        for node in graph:
            inputs = [values[name] for name in node.inputs]
            values[node.name] = node.module(*inputs)
            text = json.loads(json.dumps(spec.describe(node.module)))
            rebuilt = spec.rebuild(text, node.module.state_dict())
            assert torch.equal(rebuilt(*inputs), values[node.name]), node.place
            seen.add(type(node.module))
    assert {*ops.Synapses, *ops.AveragePool, *ops.MaxPool, *ops.Rearrangement, ops.Activation, ops.Staircase, ops.Sum,
            ops.Affine, ops.Concat, ops.Reshape, ops.Permute, ops.Reduce, ops.Slice, ops.Pad} <= seen  # fmt: skip


def test_clone_has_its_own_tensors_and_no_hooks() -> None:
    layer = nn.Conv2d(3, 4, 3)
    layer.register_forward_hook(lambda *_: pytest.fail("a hook of the user's layer ran"))
    copied = spec.clone(layer)
    assert torch.equal(copied.weight, layer.weight) and copied.weight.data_ptr() != layer.weight.data_ptr()
    assert not copied.training and not copied.weight.requires_grad
    copied(torch.rand(1, 3, 5, 5))


def test_known() -> None:
    assert spec.known(nn.Linear(1, 1)) and not spec.known(nn.GELU())
    assert not spec.known(type("Linear", (nn.Linear,), {})(1, 1)), "a subclass may compute something else"


LINEAR = {"type": "Linear", "in_features": 2, "out_features": 3, "bias": False}


@pytest.mark.parametrize(
    ("text", "tensors"),
    [
        ({"type": "GELU"}, {}),
        ({}, {}),
        ({"type": "os.system"}, {}),
        ({**LINEAR, "device": "cpu"}, {"weight": torch.zeros(3, 2)}),
        ({"type": "Linear", "in_features": 2}, {"weight": torch.zeros(3, 2)}),
        (LINEAR, {}),
        (LINEAR, {"weight": torch.zeros(3, 2), "bias": torch.zeros(3)}),
        (LINEAR, {"weight": torch.zeros(2, 3)}),
        ({**LINEAR, "in_features": "many"}, {"weight": torch.zeros(3, 2)}),
        ({**LINEAR, "in_features": -2}, {"weight": torch.zeros(3, 2)}),
        ({"type": "Activation", "upper": 1.0}, {"weight": torch.zeros(1)}),
    ],
)
def test_foreign_descriptions_are_refused(text: dict, tensors: dict[str, torch.Tensor]) -> None:
    with pytest.raises(FileError):
        spec.rebuild(text, tensors)
