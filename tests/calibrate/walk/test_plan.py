"""Which synapses meet where."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ftbc.calibrate.walk.plan import Junction, factor, junctions, path
from ftbc.convert import convert
from ftbc.graph.canonical import canonical
from ftbc.graph.fold import fold
from ftbc.graph.ir import Graph
from ftbc.graph.trace import trace
from tests.networks import INPUT_SHAPE, NETWORKS


def graphs(network: nn.Module, x: Tensor) -> tuple[Graph, Graph]:
    """The clean ANN, and its spiking copy."""
    ann = canonical(trace(network, x)).graph
    fold(ann)
    return ann, convert(network, x, 3, "mean-square").graph


def _plan(network: nn.Module) -> list[Junction]:
    return junctions(*graphs(network, torch.rand(2, *INPUT_SHAPE, dtype=torch.float64)))


def test_residual_branches_meet_behind_their_sum() -> None:
    plan = {junction.synapses: junction for junction in _plan(NETWORKS["residual"]())}
    assert () in plan  # the stem reads the image alone
    assert ("conv1",) in plan and plan["conv1",].value == "conv1" and plan["conv1",].alone
    assert ("conv2",) in plan and plan["conv2",].value != "conv2"
    assert ("conv3", "down") in plan and plan["conv3", "down"].site is not None
    assert plan["head",].site is None and not plan["head",].alone
    assert [junction.synapses for junction in plan.values()][-1] == ("head",)


def test_a_value_with_other_readers_ends_the_way() -> None:
    plan = {junction.synapses: junction for junction in _plan(NETWORKS["depthwise"]())}
    assert set(plan) == {(), ("depthwise",), ("narrow",), ("head",)}

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1), nn.Conv2d(8, 2, 1)

        def forward(self, x: Tensor) -> Tensor:
            z = self.b(F.relu(self.a(x)))
            return self.c(torch.cat([F.relu(z), F.relu(z - 1)], 1))

    plan = _plan(Shared().double())
    assert [junction.synapses for junction in plan] == [(), ("b",), (), ("c",)]
    assert (not plan[1].alone and plan[1].site is None) or plan[1].value == "b"


def test_the_factor_of_a_way_is_what_its_output_counts() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1, bias=False)
            self.register_buffer("scale", torch.rand(4, 1, 1, dtype=torch.float64) + 0.5)

        def forward(self, x: Tensor) -> Tensor:
            x = F.relu(self.a(x))
            return F.relu((x - 2 * self.b(x)) * self.scale).sum((2, 3))

    network = Weighted().double()
    ann, _ = graphs(network, torch.rand(2, *INPUT_SHAPE, dtype=torch.float64))
    x = torch.rand(1, *INPUT_SHAPE, dtype=torch.float64)
    way = path(ann, ann["b"])
    seen: dict[str, Tensor] = {}
    ann(x, lambda node, value: seen.__setitem__(node.name, value))
    before, own = seen[way[-1].name], seen["b"]
    ann["b"].module.weight.data.mul_(3)
    ann(x, lambda node, value: seen.__setitem__(node.name, value))
    counted = torch.as_tensor(factor(way, 4), dtype=torch.float64).expand(4).view(4, 1, 1)
    torch.testing.assert_close(seen[way[-1].name] - before, 2 * own * counted)
