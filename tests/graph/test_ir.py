"""The clean graph: edits keep it runnable, in order, and its parameters in step with its nodes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ftbc.graph.ir import INPUT, Graph, Node
from ftbc.graph.ops import Activation, Sum


def graph() -> Graph:
    """first -> act -> last, and a sum of act and last."""
    made = Graph((3,))
    made.append(Node("block.first", nn.Linear(3, 3), (INPUT,), (3,)))
    made.append(Node("act", Activation(), ("block.first",), (3,)))
    made.append(Node("block.last", nn.Linear(3, 3), ("act",), (3,)))
    made.append(Node("sum", Sum((1, 2)), ("act", "block.last"), (3,)))
    made.output = "sum"
    return made


def _consistent(made: Graph) -> None:
    known = {INPUT}
    for node in made:
        assert set(node.inputs) <= known, f"{node.name} comes before its inputs"
        known.add(node.name)
    assert made.output in known
    ours = {f"{node.name}.{key}" for node in made for key in node.module.state_dict()}
    assert ours == set(made.state_dict())


def test_runs_and_observes_in_order() -> None:
    made, x, seen = graph(), torch.randn(4, 3), []
    result = made(x, lambda node, value: seen.append(node.name))
    act = made["block.first"].module(x).relu()
    torch.testing.assert_close(result, act + 2 * made["block.last"].module(act))
    assert seen == ["block.first", "act", "block.last", "sum"]


def test_values_are_released_after_their_last_reader() -> None:
    released = graph().released_after()
    assert released == {"block.first": [INPUT], "act": ["block.first"], "sum": ["act", "block.last"]}


def test_insert_and_rewire() -> None:
    made, x = graph(), torch.randn(4, 3)
    before = made(x)
    for place, wanted in (("act", 2), (INPUT, 0), ("sum", 6)):
        name = made.insert_after(place, Node("new", Sum((1,)), (place,), (3,)))
        assert list(made.nodes).index(name) == wanted
        made.rewire(place, name, [n for n in made.users(place) if n.name != name])
        if made.output == place:
            made.output = name
    _consistent(made)
    assert torch.equal(made(x), before)
    for name in ("new", "new_1", "new_2"):
        made.bypass(name)
    _consistent(made)
    assert made.output == "sum" and torch.equal(made(x), before)


def test_prune_removes_what_the_output_does_not_need() -> None:
    made = graph()
    made.output = "act"
    made.prune()
    _consistent(made)
    assert list(made.nodes) == ["block.first", "act"]


def test_copy_shares_nothing() -> None:
    made = graph()
    copied = made.copy()
    made["act"].inputs = (INPUT,)
    made["block.first"].module.weight.data.zero_()
    assert copied["act"].inputs == ("block.first",)
    assert copied["block.first"].module.weight.abs().sum() > 0
    assert copied.state_dict()["block.first.weight"].data_ptr() == copied["block.first"].module.weight.data_ptr()


def test_replaced_module_is_the_one_that_runs_and_is_saved() -> None:
    made = graph()
    layer = nn.Linear(3, 3)
    made.replace_module("block.last", layer)
    _consistent(made)
    assert made.state_dict()["block.last.weight"].data_ptr() == layer.weight.data_ptr()


@pytest.mark.parametrize(
    ("taken", "wanted", "given"),
    [
        (["a"], "a", "a_1"),
        (["a", "a_1"], "a", "a_2"),
        ([], "input", "input_1"),
        (["a.b"], "a", "a_1"),
        (["a"], "a.b", "a_1.b"),
        (["a", "a_1.b"], "a.b", "a_1.b_1"),
        (["ab.c"], "a", "a"),
        (["output"], "output.0", "output_1.0"),
    ],
)
def test_no_node_hides_another(taken: list[str], wanted: str, given: str) -> None:
    made = Graph((3,))
    for name in [*taken, wanted]:
        made.append(Node(name, nn.Linear(3, 3), (INPUT,), (3,)))
    assert list(made.nodes) == [*taken, given]
    made.output = given
    _consistent(made)
    made.prune()
    _consistent(made)
