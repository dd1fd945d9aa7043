"""How many spikes carry a value, for each way in which neurons code, and what that makes of SynOps and energy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import ftbc
from ftbc.initial import Zero
from ftbc.measure.events import Events, image_is_sent_once
from ftbc.neuron import Burst, Differential, Kind, Signed, Spiking, Switch
from ftbc.threshold import Maximum
from tests.networks import INPUT_SHAPE, NETWORKS
from tests.neuron import naive
from tests.simulate.event.networks import STRUCTURES
from tests.simulate.event.support import images, spiking

STEPS = 6


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)


def counted(events: Events, values: Tensor, cuts: list[int]) -> list[float]:
    start, found = 0, []
    for part in values.split(cuts):
        found += events(part, start).flatten().tolist()
        start += len(part)
    return found


@pytest.mark.parametrize("cuts", [[6], [1] * 6, [2, 4]])
def test_each_way_to_code(cuts: list[int]) -> None:
    assert counted(Events("spikes"), column(0.7, 0, -0.7, 0, 0.7, 0.7), cuts) == [1, 0, 1, 0, 1, 1]
    bursts = Events("bursts", torch.tensor(0.7, dtype=torch.float64))
    assert counted(bursts, column(0.7, 0, 2.1, 1.4, 0.35, 0), cuts) == [1, 0, 3, 2, 1, 0]
    assert counted(Events("bursts"), column(0.7, 0, 2.1, 1.4, 0.35, 0), cuts) == [1, 0, 1, 1, 1, 0]
    assert counted(Events("switches"), column(0, 0.7, 0.7, 0.7, 0, 0.7), cuts) == [0, 1, 0, 0, 1, 1]
    changes = [0.5, 0.0, -0.25, 0.0, 0.0, 1.0]
    assert counted(Events("changes"), column(*naive.decoded(changes)), cuts) == [1, 0, 1, 0, 0, 1]


def test_a_new_run_begins_anew() -> None:
    events = Events("switches")
    for _ in range(2):
        assert counted(events, column(0.7, 0.7), [1, 1]) == [1, 0]


def test_rounding_is_no_change() -> None:
    """In single precision a mean of many values is not exact; a neuron that is silent sends nothing all the same."""
    changes = [0.3, 0.0, 0.15, *[0.0] * 200, 0.0375, *[0.0] * 50]
    values = torch.tensor(naive.decoded(changes), dtype=torch.float32).view(-1, 1, 1)
    assert Events("changes")(values, 0).flatten().tolist() == [float(change != 0) for change in changes]


def _network() -> tuple[nn.Sequential, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    return model, 2 * torch.rand(10, 4, dtype=torch.float64)


RULES: dict[str, tuple[Kind, naive.Rule]] = {
    "signed": (Signed(), naive.signed(1.0, False)),
    "burst": (Burst(3), naive.burst(3)),
    "switch": (Switch(), naive.plain),
    "differential": (Differential(3), naive.differential(3)),
}


@pytest.mark.parametrize("name", RULES)
def test_operations_of_a_network_are_those_of_its_spikes(name: str) -> None:
    """Each neuron's spikes are counted one by one; each adds as many weights as the next layer has neurons."""
    kind, rule = RULES[name]
    model, x = _network()
    # Small thresholds, so that bursts are long; currents that turn, so that signed neurons take back.
    snn = ftbc.convert(model, x, STEPS, ftbc.Recipe(threshold=Maximum(), initial=Zero(), neuron=kind))
    for node in snn.graph.of_type(Spiking):
        node.module.threshold *= 0.2 if name == "burst" else 0.4
        node.module.bias[1::2] -= 0.0 if name == "burst" else 0.5
    synops, fired = torch.zeros(STEPS).double(), {"1": 0.0, "3": 0.0}
    for image in x:
        value = model[0](image).detach().expand(STEPS, -1)
        for place, following in (("1", model[2]), ("3", model[4])):
            layer = snn.graph[place].module
            theta = layer.threshold.tolist()
            outputs = []
            for c in range(len(theta)):
                arguments = (value[:, c].tolist(), theta[c], 0.0, layer.bias[:, c].tolist())
                outputs.append(rule(*arguments))
                if name == "differential":
                    spikes = [float(change != 0) for change in naive.differential_changes(3)(*arguments)]
                elif name == "switch":
                    spikes = [float(s != before) for s, before in zip(outputs[-1], [0.0, *outputs[-1]], strict=False)]
                else:
                    spikes = [abs(round(s / theta[c])) for s in outputs[-1]]
                synops += len(following.weight) * torch.tensor(spikes, dtype=torch.float64)
                fired[place] += sum(spikes)
            value = following(torch.tensor(outputs, dtype=torch.float64).T).detach()
    found = ftbc.evaluate(snn, (x, torch.zeros(len(x), dtype=torch.long)))
    assert found.synops == pytest.approx((synops.cumsum(0) / len(x)).tolist(), rel=1e-12)
    sizes = {"1": 9, "3": 8}
    assert found.firing_rate == pytest.approx({key: fired[key] / sizes[key] / STEPS / len(x) for key in fired})
    if name == "burst":
        assert max(found.firing_rate.values()) > 1, "no bursts"
    macs = [36 * (1 if image_is_sent_once(snn.graph) else t) for t in range(1, STEPS + 1)]
    assert found.energy == pytest.approx([(4.6 * m + 0.9 * s) * 1e-6 for m, s in zip(macs, found.synops, strict=True)])


@pytest.mark.parametrize("network", NETWORKS)
def test_bursts_are_counted_behind_pools_and_reshapes(network: str) -> None:
    """A burst of one counts as a spike does, whatever stands between the neurons and the weights."""
    x = torch.rand(8, *INPUT_SHAPE, dtype=torch.float64)
    labels = torch.zeros(8, dtype=torch.long)
    model = NETWORKS[network]()
    found = [
        ftbc.evaluate(ftbc.convert(model, x, STEPS, ftbc.Recipe(neuron=kind)), (x, labels))
        for kind in (ftbc.Recipe().neuron, Burst(1))
    ]
    assert found[0] == found[1]
    long = ftbc.convert(model, x, STEPS, ftbc.Recipe(neuron=Burst(4)))
    for node in long.graph.of_type(Spiking):
        node.module.threshold *= 0.3
    few = ftbc.evaluate(long, (x, labels))
    assert few.synops[-1] > found[0].synops[-1]


@pytest.mark.parametrize("recipe", ["mean-square", "snm", "tsc", "burst", "differential", "parallel-relu"])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_event_engine_counts_the_same(network: str, recipe: str) -> None:
    """Neurons that send one spike a value are counted on events, others by `layerwise`, as ever."""
    pytest.importorskip("numba")
    x = torch.rand(8, *INPUT_SHAPE, dtype=torch.float64)
    labels = torch.zeros(8, dtype=torch.long)
    snn = ftbc.convert(NETWORKS[network](), x, STEPS, recipe)
    for node in snn.graph.of_type(Spiking):
        node.module.threshold *= 0.97  # not the largest activation itself: engines differ in the last bit
    wanted, found = (ftbc.evaluate(snn, (x, labels), engine=engine) for engine in ("layerwise", "event"))
    assert found.synops == pytest.approx(wanted.synops, rel=1e-12)
    assert (found.spikes, found.firing_rate, found.energy) == (wanted.spikes, wanted.firing_rate, wanted.energy)


def test_a_factor_folded_into_weights_is_counted_all_the_same() -> None:
    """The value behind it is none of the event engine's, so that `layerwise` counts."""
    pytest.importorskip("numba")
    case = STRUCTURES["factor by pixel"]
    x = images(case.shape)
    snn = spiking(case.make(), x)
    labels = torch.zeros(len(x), dtype=torch.long)
    snn.head = nn.Flatten()
    wanted, found = (ftbc.evaluate(snn, (x, labels), engine=engine) for engine in ("layerwise", "event"))
    assert found.synops == pytest.approx(wanted.synops, rel=1e-12) and wanted.synops[-1] > 0


def test_counting_on_events_runs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    x = torch.rand(8, *INPUT_SHAPE, dtype=torch.float64)
    snn = ftbc.convert(NETWORKS["residual"](), x, STEPS, "mean-square")
    monkeypatch.setattr("ftbc.network.layerwise", lambda *_: pytest.fail("images ran on layerwise"))
    assert ftbc.evaluate(snn, (x, torch.zeros(8, dtype=torch.long)), engine="event").synops[-1] > 0
