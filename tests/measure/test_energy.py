"""Energy and its operations, each counted by hand or by loops over every connection."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.errors import InputError
from ftbc.graph.ir import Graph, Node
from ftbc.graph.ops import Sum, Synapses
from ftbc.measure import energy
from ftbc.measure.energy import CMOS_45NM, EnergyModel, Operations, energy_models, quantised_ann_energy
from ftbc.measure.evaluate import reference_accuracy
from ftbc.measure.operations import fan_out, shortcuts
from ftbc.measure.quantised import bits_for, quantised
from tests.conftest import Refused
from tests.networks import INPUT_SHAPE, NETWORKS, residual


def _naive_fan_out(conv: nn.Conv2d, height: int, width: int) -> Tensor:
    """Visit every output, channel and place of the kernel, and count whom it reads."""
    reached = torch.zeros(conv.in_channels, height, width, dtype=torch.float64)
    (kh, kw), (sh, sw), (dh, dw) = conv.kernel_size, conv.stride, conv.dilation
    ph, pw = (int(p) for p in conv.padding)
    per_group = conv.in_channels // conv.groups
    rows = (height + 2 * ph - dh * (kh - 1) - 1) // sh + 1
    columns = (width + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    for out in range(conv.out_channels):
        group = out // (conv.out_channels // conv.groups)
        for row in range(rows):
            for column in range(columns):
                for channel in range(group * per_group, (group + 1) * per_group):
                    for i in range(kh):
                        for j in range(kw):
                            y, x = row * sh - ph + i * dh, column * sw - pw + j * dw
                            if 0 <= y < height and 0 <= x < width:
                                reached[channel, y, x] += 1
    return reached


@pytest.mark.parametrize(
    "conv",
    [
        nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(2, 4, 3, stride=2), nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Conv2d(4, 8, (1, 3), stride=(2, 1), padding=(0, 2), groups=2), nn.Conv2d(1, 2, 3, dilation=2, padding=2),
    ],
    ids=str,
)  # fmt: skip
def test_fan_out_is_what_a_visit_of_every_connection_counts(conv: nn.Conv2d) -> None:
    found = fan_out(Node("conv", conv, ("input",), ()), (conv.in_channels, 6, 5))
    assert torch.equal(found, _naive_fan_out(conv, 6, 5))


class _Shortcut(nn.Module):
    """One channel; the first neuron copies the image, the second adds the first one's spikes to twice these."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.inner = nn.Conv2d(1, 1, 1, bias=False), nn.Conv2d(1, 1, 1, bias=False)
        self.head = nn.Linear(4, 3)
        self.first.weight.data.fill_(1.0)
        self.inner.weight.data.fill_(0.0)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        return self.head(F.relu(self.inner(x) + x).flatten(1))


def test_a_network_with_a_shortcut_counted_by_hand() -> None:
    net = _Shortcut().double().eval()
    x = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64).view(1, 1, 2, 2)
    # theta = 1, v[0] = 1/2: the two bright pixels fire at each of 3 steps, in both layers; the others never.
    snn = ftbc.convert(net, x, 3, "maximum")
    result = ftbc.evaluate(snn, (x, torch.zeros(1, dtype=torch.long)), net)
    # Each spike of the first layer: 1 synapse and 1 shortcut; of the second: 3 synapses.
    assert result.synops == pytest.approx([2 * (1 + 1 + 3) * t for t in (1, 2, 3)])
    assert result.spikes == pytest.approx([4.0 * t for t in (1, 2, 3)]) and result.neurons == 8
    assert result.image_macs == 4 and not result.sent_once
    assert result.operations(2) == Operations(macs=8, acs=20, updates=16, spikes=8)
    assert result.operations(2, cached=True) == Operations(macs=4, acs=20, updates=16, spikes=8)
    # The ANN: 4 + 4 + 12 multiplications, 4 additions at the shortcut.
    assert result.reference_operations == Operations(macs=20, acs=4)
    assert result.reference_energy == pytest.approx((20 * 4.6 + 4 * 0.9) * 1e-6)
    by_model = result.energies()
    assert by_model[CMOS_45NM.name] == pytest.approx(result.energy)
    assert by_model["45 nm, 32-bit float, with memory"][1] == pytest.approx(
        (8 * (4.6 + 10) + 20 * (0.9 + 15) + 16 * (0.9 + 10)) * 1e-6
    )
    assert by_model["Loihi"][1] == pytest.approx((8 * 4.6 + 20 * 23.6 + 16 * 81 + 8 * 1.7) * 1e-6)
    assert result.energies(cached=True)[CMOS_45NM.name][2] == pytest.approx((4 * 4.6 + 30 * 0.9) * 1e-6)
    assert result.reference_energies() == pytest.approx(
        {
            CMOS_45NM.name: result.reference_energy,
            "45 nm, 32-bit float, with memory": (20 * (4.6 + 10) + 4 * (0.9 + 15)) * 1e-6,
        }
    )


def test_the_image_costs_once_where_neurons_send_changes() -> None:
    x = torch.rand(6, *INPUT_SHAPE, dtype=torch.float64)
    name = next(name for name, recipe in ftbc.recipes().items() if type(recipe.neuron).__name__ == "Differential")
    result = ftbc.evaluate(ftbc.convert(residual(), x, 2, name), (x, torch.zeros(6, dtype=torch.long)))
    assert result.sent_once and result.operations(2).macs == result.operations(1).macs == result.image_macs > 0


@pytest.mark.parametrize("name", NETWORKS)
def test_synops_of_whole_networks_are_counted_over_every_connection(name: str) -> None:
    """Layers of ones over what is not zero, and what shortcuts carry: those without weights on the way."""
    x = torch.rand(4, *INPUT_SHAPE, dtype=torch.float64)
    snn = ftbc.convert(NETWORKS[name](), x, 3, "mean-square")
    result = ftbc.evaluate(snn, (x, torch.zeros(4, dtype=torch.long)))
    bare = {"residual": 1}.get(name, 0)
    assert sum(map(len, shortcuts(snn.graph).values())) == bare
    total, first = torch.zeros(3, dtype=torch.float64), snn.graph.of_type(*Synapses)[0].name

    def count(node: Node, inputs: list[Tensor], output: Tensor, start: int) -> None:
        if isinstance(node.module, nn.Conv2d | nn.Linear) and node.name != first:
            events = (inputs[0] != 0).double().flatten(0, 1)
            ones = torch.ones_like(node.module.weight)
            if isinstance(node.module, nn.Linear):
                reached = F.linear(events, ones)
            else:
                conv = node.module
                reached = F.conv2d(events, ones, None, conv.stride, conv.padding, conv.dilation, conv.groups)  # type: ignore
            total.add_(reached.reshape(3, -1).sum(1))
        if isinstance(node.module, Sum) and node.name in shortcuts(snn.graph):
            (place,) = shortcuts(snn.graph)[node.name]
            total.add_((inputs[place] != 0).reshape(3, -1).sum(1))

    snn(x, observe=count)
    assert result.synops == pytest.approx((total.cumsum(0) / 4).tolist())


def test_shortcuts_stop_at_weights_and_pass_what_rearranges() -> None:
    x = torch.rand(2, *INPUT_SHAPE, dtype=torch.float64)
    graph: Graph = ftbc.convert(residual(), x, 2, "mean-square").graph
    (name,) = shortcuts(graph)
    assert isinstance(graph[name].module, Sum) and len(graph.of_type(Sum)) == 2


# ---- models ----------------------------------------------------------------------------------------------


def test_every_model_has_a_source_and_the_usual_one_comes_first() -> None:
    models = energy_models()
    assert next(iter(models.values())).microjoules(2, 3) == CMOS_45NM.microjoules(2, 3) == pytest.approx(11.9e-6)
    assert all(model.source and model.ac > 0 and model.mac > 0 for model in models.values())
    written = tomllib.loads((Path(energy.__file__).parent / "energy_models.toml").read_text(encoding="utf-8"))["model"]
    assert [entry["name"] for entry in written] == list(models)
    for entry in written:
        model = models[entry["name"]]
        assert model.runs_ann == ("mac" in entry) and model.mac == entry.get("mac", CMOS_45NM.mac)


def test_an_energy_model_adds_each_kind_of_operation() -> None:
    model = EnergyModel("x", mac=1.0, ac=10.0, update=100.0, spike=1000.0)
    assert model.of(Operations(1, 2, 3, 4)) == pytest.approx(4321e-6)
    assert EnergyModel("x", 0, 0, access=1.0).of(Operations(1, 10, 100, 1000)) == pytest.approx((2 + 30 + 200) * 1e-6)


def test_integers_between_the_published_widths() -> None:
    assert quantised_ann_energy(1e6, 0, 0, 8) == pytest.approx(0.2 + 0.1)
    assert quantised_ann_energy(3e6, 1e6, 5e5, 1) == pytest.approx(0.2 + 2 * 0.025 + 3.5 * 0.1)
    integers = next(model for model in energy_models().values() if model.bits)
    assert quantised_ann_energy(7.0, 3.0, 2.0, 8) == pytest.approx(integers.microjoules(7.0, 2.0))


# ---- the quantised ANN -----------------------------------------------------------------------------------


def test_quantised_values_lie_on_their_grid() -> None:
    x = torch.rand(16, *INPUT_SHAPE, dtype=torch.float64)
    network = residual()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    graph = quantised(network, x, bits=2)
    assert isinstance(graph, Graph)
    seen = {}
    graph(x, lambda node, value: seen.__setitem__(node.name, value))
    sites = [node for node in graph if type(node.module).__name__ == "Levels"]
    assert len(sites) == 4
    for node in sites:
        values = seen[node.name] / (node.module.theta / 3)
        assert torch.allclose(values, values.round()) and values.min() >= 0 and values.max() == 3
    for node in graph.of_type(*Synapses):
        weight = node.module.weight.flatten(1)
        whole = weight / (weight.abs().amax(1, keepdim=True) / 127)
        assert torch.allclose(whole, whole.round(), atol=1e-6)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_many_bits_are_the_network_itself_and_one_is_not() -> None:
    x = torch.rand(64, *INPUT_SHAPE, dtype=torch.float64)
    network = residual()
    labels = network(x).argmax(1)
    wanted = network(x).detach()
    gaps = [float((quantised(network, x, bits)(x).detach() - wanted).pow(2).mean()) for bits in (1, 3, 10)]
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-3 * float(wanted.pow(2).mean())
    assert reference_accuracy(quantised(network, x, 10), (x, labels)) > 95


def test_bits_tell_every_count_of_spikes() -> None:
    assert all(2 ** (bits_for(t) - 1) < t + 1 <= 2 ** bits_for(t) for t in range(1, 200))


def test_no_bits(refused: Refused) -> None:
    refused(InputError, "bits=0", quantised, residual(), torch.rand(2, *INPUT_SHAPE, dtype=torch.float64), 0)
