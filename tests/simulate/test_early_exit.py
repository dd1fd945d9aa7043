"""Images that stop when they are decided: the rule against its formula, the run against the outputs at all steps."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ftbc
from ftbc.errors import InputError, RecipeError
from ftbc.neuron import IntegrateFire, SpikingMaxPool, Temporal
from ftbc.simulate import Stepper, layerwise, run_until, steps_until
from tests.conftest import Refused
from tests.graph.support import Net, settled
from tests.networks import INPUT_SHAPE, NETWORKS

STEPS, IMAGES = 8, 14
POOLS = ("spiking", "before", "average")


def body() -> nn.Module:
    """Shortcuts from a layer and from the image itself, a constant branch, a max-pool; nothing but convolutions, whose
    sums in double precision do not depend on the number of images."""

    def run(m: Any, x: Tensor) -> Tensor:
        y = F.max_pool2d(F.relu(m.stem(x)), 2)
        y = F.relu(m.second(F.relu(m.first(y))) + y)
        y = F.relu(m.third(y) + m.image(x) + F.avg_pool2d(x, 2).mean(1, keepdim=True))
        return 6 * m.scores(y).mean((2, 3))

    return settled(
        Net(
            run, stem=nn.Conv2d(3, 6, 3, padding=1), first=nn.Conv2d(6, 6, 3, padding=1), second=nn.Conv2d(6, 6, 1),
            third=nn.Conv2d(6, 6, 1), image=nn.Conv2d(3, 6, 2, 2), scores=nn.Conv2d(6, 5, 1),
        )
    )  # fmt: skip


def images(count: int = IMAGES) -> Tensor:
    return torch.randn(count, *INPUT_SHAPE, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@functools.cache
def converted(pool: str = "spiking") -> ftbc.SpikingNetwork:
    return ftbc.convert(body(), images(), STEPS, ftbc.recipe("mean-square", pool=pool))


def probability(scores: list[float]) -> float:
    """The largest of exp(y_k) / sum of all exp(y_j)."""
    return max(math.exp(score) / sum(math.exp(other) for other in scores) for score in scores)


def naive_steps(means: Tensor, level: float, first: int) -> list[int]:
    """For each image the first step, not before ``first``, at which it is decided; else the last step."""
    taken = []
    for n in range(means.shape[1]):
        t = 1
        while t < len(means) and (t < first or probability(means[t - 1, n].tolist()) < level):
            t += 1
        taken.append(t)
    return taken


def at_exit(outputs: Tensor, steps: list[int]) -> Tensor:
    return torch.stack([outputs[t - 1, n] for n, t in enumerate(steps)])


def middle_level(means: Tensor, first: int = 1) -> float:
    """A level at which the images leave at as many different steps as can be."""
    confidence = means.softmax(2).amax(2)
    levels = [float(confidence.quantile(part / 100 + 0.003)) for part in range(20, 100, 5)]
    return max(levels, key=lambda level: len(set(naive_steps(means, level, first))))


# ---- the rule --------------------------------------------------------------------------------------------


def test_rule_is_the_largest_softmax_probability() -> None:
    scores = 3 * torch.randn(200, 4, dtype=torch.float64)
    for level in (0.4, 0.5, 0.9, 0.999):
        wanted = [probability(row) >= level for row in scores.tolist()]
        assert 0 < sum(wanted) < 200 and ftbc.Confidence(level)(scores, 1).tolist() == wanted


def test_rule_includes_its_level_and_waits_for_its_first_step() -> None:
    even = torch.zeros(1, 2)  # two classes of one half
    assert ftbc.Confidence(0.5)(even, 1).item() and not ftbc.Confidence(0.5001)(even, 1).item()
    assert [ftbc.Confidence(0.5, first=3)(even, t).item() for t in (1, 2, 3, 4)] == [False, False, True, True]


def test_huge_scores_are_decided_and_undefined_ones_never() -> None:
    scores = torch.tensor([[1e30, 0.0], [-1e30, -2e30], [math.nan, 0.0]])
    assert ftbc.Confidence(0.99)(scores, 1).tolist() == [True, True, False]


@pytest.mark.parametrize(
    "settings",
    [{"level": 0}, {"level": 1}, {"level": -0.5}, {"level": 99}, {"level": math.nan}, {"level": "0.9"}, {"level": None},
     {"level": True}, {"level": 0.9, "first": 0}, {"level": 0.9, "first": -1}, {"level": 0.9, "first": 1.5}],
    ids=str,
)  # fmt: skip
def test_wrong_settings(settings: dict[str, Any], refused: Refused) -> None:
    refused(RecipeError, ("Confidence", list(settings)[-1]), lambda: ftbc.Confidence(**settings))


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 5, 2)], ids=str)
def test_scores_that_are_not_of_classes(shape: tuple[int, ...], refused: Refused) -> None:
    refused(InputError, "classes", ftbc.Confidence(0.9), torch.zeros(shape), 1)


def test_steps_read_from_all_outputs() -> None:
    means = 2 * torch.randn(STEPS, 50, 3, dtype=torch.float64)
    for level, first in ((0.5, 1), (0.9, 1), (0.9, 4), (0.99, STEPS + 1)):
        assert steps_until(ftbc.Confidence(level, first), means).tolist() == naive_steps(means, level, first)


# ---- narrowing the state ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("constant", [True, False])
def test_whichever_images_go_on_their_outputs_are_the_same(pool: str, constant: bool) -> None:
    graph, x = converted(pool).graph, images()
    wanted = layerwise(graph, x, STEPS)
    stepper = Stepper(graph, constant)
    going = torch.arange(IMAGES)
    for t in range(STEPS):
        assert torch.equal(stepper.step(x[going]), wanted[t, going])
        chosen = torch.randperm(len(going))[: max(1, len(going) - 2)]  # in another order, too
        stepper.select(chosen)
        going = going[chosen]
    assert len(going) == 1
    stepper.reset()


# ---- the run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("first", [1, 3])
def test_each_image_leaves_as_the_outputs_at_all_steps_say(pool: str, first: int) -> None:
    snn, x = converted(pool), images()
    outputs = snn(x)
    level = middle_level(outputs, first)
    steps = naive_steps(outputs, level, first)
    assert len(set(steps)) > 2 and first in steps and STEPS in steps, "the images should leave at different steps"
    found = snn.predict(x, until=ftbc.Confidence(level, first))
    assert found.steps.tolist() == steps
    assert torch.equal(found.outputs, at_exit(outputs, steps))
    assert found.classes.tolist() == [max(range(5), key=row.__getitem__) for row in found.outputs.tolist()]


@pytest.mark.parametrize("count", [1, 2, 5, IMAGES])
def test_any_number_of_images(count: int) -> None:
    snn, x = converted(), images()
    outputs = snn(x)
    level = middle_level(outputs)
    steps = naive_steps(outputs, level, 1)[:count]
    found = snn.predict(x[:count], until=ftbc.Confidence(level))
    assert found.steps.tolist() == steps and torch.equal(found.outputs, at_exit(outputs, steps))


@pytest.mark.parametrize("together", [1, 3, 13, 100])
def test_portions_of_images_do_not_change_the_result(together: int) -> None:
    snn, x = converted(), images()
    largest = 4 * 6 * 8 * 8
    outputs = snn(x)
    level = middle_level(outputs)
    seen = sizes_of(snn, lambda: run_until(ftbc.Confidence(level), snn.graph, x, STEPS, room=together * largest))
    assert max(seen) == min(together, IMAGES)
    means, steps = run_until(ftbc.Confidence(level), snn.graph, x, STEPS, room=together * largest)
    assert steps.tolist() == naive_steps(outputs, level, 1)
    assert torch.equal(means, at_exit(outputs, steps.tolist()))


def sizes_of(snn: ftbc.SpikingNetwork, run: Any) -> list[int]:
    """How many images the last layer sees, each time it is run."""
    seen: list[int] = []
    hook = snn.graph["scores"].module.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    run()
    hook.remove()
    return seen


def test_decided_images_are_not_computed() -> None:
    snn, x = converted(), images()
    until = ftbc.Confidence(middle_level(snn(x)))
    steps = snn.predict(x, until).steps
    undecided = [int((steps >= t).sum()) for t in range(1, int(steps.max()) + 1)]
    assert undecided[0] == IMAGES and undecided[-1] < IMAGES / 2
    assert sizes_of(snn, lambda: snn.predict(x, until)) == undecided
    assert sizes_of(snn, lambda: snn.predict(x, ftbc.Confidence(0.01, first=2))) == [IMAGES] * 2


@pytest.mark.parametrize("until", [None, ftbc.Confidence(1 - 1e-16), ftbc.Confidence(0.01, first=STEPS + 5)], ids=str)
def test_nobody_stops(until: ftbc.Confidence | None) -> None:
    snn, x = converted(), images()
    found = snn.predict(x, until)
    assert found.steps.tolist() == [STEPS] * IMAGES
    assert torch.equal(found.outputs, snn(x)[-1]) and torch.equal(found.classes, snn(x)[-1].argmax(1))


@pytest.mark.parametrize("first", [1, 2, STEPS])
def test_everybody_stops_at_the_first_step_allowed(first: int) -> None:
    snn, x = converted(), images()
    found = snn.predict(x, until=ftbc.Confidence(0.01, first))
    assert found.steps.tolist() == [first] * IMAGES
    assert torch.equal(found.outputs, snn(x)[first - 1])


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_with_linear_layers_and_temporal_biases(name: str) -> None:
    """Products of few rows are summed in another order, hence the tolerance."""
    x = images()
    snn = ftbc.convert(NETWORKS[name](), x, STEPS, ftbc.recipe("ftbc", calibrate=(ftbc.FTBC(iterations=2),)))
    outputs = snn(x)
    level = middle_level(outputs)
    steps = naive_steps(outputs, level, 1)
    found = snn.predict(x, until=ftbc.Confidence(level))
    assert len(set(steps)) > 1 and found.steps.tolist() == steps
    torch.testing.assert_close(found.outputs, at_exit(outputs, steps), rtol=0, atol=1e-13)


def test_single_precision() -> None:
    x = images().float()
    snn = ftbc.convert(body().float(), x, STEPS, "mean-square")
    found = snn.predict(x, until=ftbc.Confidence(0.9))
    assert found.outputs.dtype == torch.float32 and found.steps.dtype == found.classes.dtype == torch.int64
    torch.testing.assert_close(found.outputs, at_exit(snn(x), found.steps.tolist()), rtol=0, atol=1e-5)


# ---- heads -----------------------------------------------------------------------------------------------


def given_one_class(p: list[float]) -> list[float]:
    """Probability of each class, if classes occur independently of each other and exactly one did."""
    alone = [p[k] * math.prod(1 - p[j] for j in range(len(p)) if j != k) for k in range(len(p))]
    return [value / sum(alone) for value in alone]


HEADS = {
    "softmax": (nn.Softmax(1), lambda row: row),
    "log-softmax": (nn.LogSoftmax(1), lambda row: [math.exp(value) for value in row]),
    "sigmoid": (nn.Sigmoid(), given_one_class),
}


@pytest.mark.parametrize("name", HEADS)
def test_confidence_is_the_probability_that_the_head_gives(name: str) -> None:
    head, probabilities = HEADS[name]
    x = images()
    snn = ftbc.convert(nn.Sequential(body(), head), x, STEPS, "mean-square")
    outputs = snn(x)
    level = middle_level(snn(x, head=False))
    found = snn.predict(x, until=ftbc.Confidence(level))
    confidence = torch.tensor([[max(probabilities(row)) for row in step] for step in outputs.tolist()])
    steps = [next((t for t in range(1, STEPS) if confidence[t - 1, n] >= level), STEPS) for n in range(IMAGES)]
    assert len(set(steps)) > 2 and found.steps.tolist() == steps
    torch.testing.assert_close(found.outputs, at_exit(outputs, steps), rtol=0, atol=1e-14)
    assert torch.equal(found.classes, found.outputs.argmax(1))


def test_outputs_before_the_head() -> None:
    x = images()
    snn = ftbc.convert(nn.Sequential(body(), nn.Tanh()), x, 3, "mean-square")
    assert torch.equal(snn(x, head=False), ftbc.convert(body(), x, 3, "mean-square")(x))
    assert torch.equal(snn(x), torch.tanh(snn(x, head=False)))


# ---- what is left behind ---------------------------------------------------------------------------------


def test_network_is_at_rest_afterwards() -> None:
    snn, x = converted(), images()
    for until in (None, ftbc.Confidence(middle_level(snn(x))), ftbc.Confidence(0.01)):
        snn.predict(x, until)
        neurons = [node.module for node in snn.graph.of_type(Temporal)]
        assert {type(neuron) for neuron in neurons} == {IntegrateFire, SpikingMaxPool}
        for neuron in neurons:
            assert neuron.t == 0 if isinstance(neuron, IntegrateFire) else neuron.sent is None
            assert all(value is None for name, value in neuron._buffers.items() if name in ("v", "total", "sent"))


def test_a_network_that_is_stepped_is_put_to_rest() -> None:
    snn, x = converted(), images()
    steps = [snn.step(x) for _ in range(3)]
    wanted = snn(x)
    snn.step(x)
    assert torch.equal(snn.predict(x).outputs, wanted[-1])
    assert torch.equal(snn(x), wanted)
    snn.step(x[:2])
    snn.predict(x, until=ftbc.Confidence(0.5))
    assert all(torch.equal(snn.step(x), step) for step in steps)
    snn.reset()


def test_a_saved_network_predicts_the_same(tmp_path: Any) -> None:
    snn, x = converted(), images()
    until = ftbc.Confidence(middle_level(snn(x)))
    snn.save(tmp_path / "net.snn")
    before, after = snn.predict(x, until), ftbc.load(tmp_path / "net.snn").predict(x, until)
    assert torch.equal(before.outputs, after.outputs) and torch.equal(before.steps, after.steps)


# ---- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "wrong"),
    [("list", [[1.0]]), ("[N, 3, 8, 8]", torch.rand(3, 8, 8)), ("[N, 3, 8, 8]", torch.rand(2, 1, 8, 8)),
     ("torch.float32", torch.rand(2, 3, 8, 8)), ("no images", torch.rand(0, 3, 8, 8, dtype=torch.float64))],
    ids=["not a tensor", "no batch", "wrong channels", "single precision", "no images"],
)  # fmt: skip
def test_wrong_images(words: str, wrong: Any, refused: Refused) -> None:
    refused(InputError, words, converted().predict, wrong, until=ftbc.Confidence(0.9))


@pytest.mark.parametrize("until", [0.99, "0.99", True, 0, torch.ones(2, 2), ftbc.Confidence], ids=str)
def test_not_a_rule(until: Any, refused: Refused) -> None:
    refused(InputError, ("until", type(until).__name__, "ftbc.Confidence(0.99)"), converted().predict, images(), until)


@pytest.mark.parametrize("classes", [1, None])
def test_outputs_that_are_no_scores(classes: int | None, refused: Refused) -> None:
    scores = [nn.Conv2d(4, 2, 1)] if classes is None else [nn.Flatten(), nn.Linear(4 * 36, classes)]
    x = images().float()
    snn = ftbc.convert(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), *scores), x, 2, "mean-square")
    for until in (None, ftbc.Confidence(0.9)):
        refused(InputError, ("classes", "[1]" if classes else "[2, 6, 6]", "snn(x)"), snn.predict, x, until)
