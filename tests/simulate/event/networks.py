"""Networks with every structure between neurons that the event engine follows, or must leave to torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.graph.support import Net

relu = F.relu


@dataclass(frozen=True)
class Case:
    """A network, the shape of its input, and what becomes of max-pools."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...] = (3, 6, 6)
    pool: str = "spiking"


def net(run: Callable[[Any, Tensor], Tensor], shape: tuple[int, ...] = (3, 6, 6), **layers: nn.Module | Tensor) -> Case:
    """A network by its forward and its layers."""
    return Case(lambda: Net(run, **layers), shape)


def chain(*layers: nn.Module, shape: tuple[int, ...] = (3, 6, 6)) -> Case:
    """A network of one layer after another."""
    return Case(lambda: nn.Sequential(*layers), shape)


def conv(into: int, out: int, kernel: int = 3, **more: Any) -> nn.Conv2d:
    return nn.Conv2d(into, out, kernel, **{"padding": kernel // 2, **more})


def sandwich(
    *between: nn.Module,
    spikes: int = 5,
    out: int = 6,
    shape: tuple[int, ...] = (2, 6, 6),
    kind: type[nn.Conv1d | nn.Conv2d] = nn.Conv2d,
    pool: str = "spiking",
) -> Case:
    """Spikes of ``spikes`` channels, the layers in question, neurons of ``out`` channels, and an output."""
    layers = kind(2, spikes, 1), nn.ReLU(), *between, nn.ReLU(), kind(out, 3, 1)
    return Case(lambda: nn.Sequential(*layers), shape, pool)


def window(kernel: int, stride: int, padding: int, size: tuple[int, int] = (7, 9)) -> Case:
    return sandwich(nn.Conv2d(5, 6, kernel, stride, padding), shape=(2, *size))


def padded(sides: tuple[int, int, int, int], kernel: int, stride: int, size: tuple[int, int]) -> Case:
    return net(
        lambda m, x: m.c(relu(m.b(F.pad(relu(m.a(x)), sides)))), (2, *size),
        a=conv(2, 5, 1), b=nn.Conv2d(5, 6, kernel, stride), c=conv(6, 3, 1),
    )  # fmt: skip


def grouped(into: int, out: int, groups: int, stride: int = 1, kernel: int = 3) -> Case:
    return sandwich(conv(into, out, kernel, groups=groups, stride=stride), spikes=into, out=out, shape=(2, 7, 6))


def wide(into: int, out: int) -> Case:
    return sandwich(conv(into, out), spikes=into, out=out, shape=(2, 4, 5))


def option_a() -> nn.Module:
    """The shortcut of the first ResNets: every second pixel, and channels of zeros."""

    def run(m: Net, x: Tensor) -> Tensor:
        x = relu(m.a(x))
        return m.c(relu(m.b(x) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2))))

    return Net(run, a=conv(3, 4), b=conv(4, 8, stride=2), c=conv(8, 3, 1))


def dense_block() -> nn.Module:
    """Neurons joined to all that came before them."""

    def run(m: Net, x: Tensor) -> Tensor:
        x = relu(m.a(x))
        x = torch.cat([x, relu(m.b(x))], 1)
        x = torch.cat([x, relu(m.c(x))], 1)
        return m.d(relu(m.e(F.avg_pool2d(x, 2))))

    return Net(run, a=conv(3, 4), b=conv(4, 5), c=conv(9, 6), e=conv(15, 7, 1), d=conv(7, 3, 1))


def dense_net() -> nn.Module:
    """As DenseNet has it: convolutions are joined, and each reader has a BatchNorm and neurons of its own."""

    def run(m: Net, x: Tensor) -> Tensor:
        x = m.a(x)
        x = torch.cat([x, m.b(relu(m.bn1(x)))], 1)
        x = torch.cat([x, m.c(relu(m.bn2(x)))], 1)
        return m.d(relu(m.bn3(x)))

    return Net(
        run, a=conv(3, 4), b=conv(4, 5), c=conv(9, 6), d=conv(15, 3, 1),
        bn1=nn.BatchNorm2d(4), bn2=nn.BatchNorm2d(9), bn3=nn.BatchNorm2d(15),
    )  # fmt: skip


def before_activation() -> nn.Module:
    """A residual network whose shortcut carries currents, not spikes."""

    def run(m: Net, x: Tensor) -> Tensor:
        x = m.a(x)
        x = x + m.b(relu(m.bn1(x)))
        x = x + m.c(relu(m.bn2(x)))
        return m.d(relu(m.bn3(x)))

    return Net(
        run,
        a=conv(3, 4),
        b=conv(4, 4),
        c=conv(4, 4),
        d=conv(4, 3, 1),
        **{f"bn{i}": nn.BatchNorm2d(4) for i in (1, 2, 3)},
    )


def many_branches(count: int) -> nn.Module:
    def run(m: Net, x: Tensor) -> Tensor:
        x = relu(m.a(x))
        total = m.b0(x)
        for index in range(1, count):
            total = total + getattr(m, f"b{index}")(x)
        return m.c(relu(total))

    return Net(run, a=conv(3, 4), c=conv(5, 3, 1), **{f"b{index}": conv(4, 5, 1) for index in range(count)})


def shuffled(m: Net, x: Tensor) -> Tensor:
    x = relu(m.a(x))
    x = x.view(-1, 2, 4, 6, 6).transpose(1, 2).flatten(1, 2)
    return m.c(relu(m.b(x)))


WINDOWS = {
    f"kernel {kernel}, stride {stride}, padding {padding}": window(kernel, stride, padding)
    for kernel in (1, 2, 3, 5, 7)
    for stride in (1, 2, 3)
    for padding in range(min(4, kernel + 1))
}
SIZES = {
    f"{height} x {width}, stride {stride}": window(3, stride, 1, (height, width))
    for height, width in ((1, 1), (1, 9), (8, 1), (2, 3), (8, 8), (9, 10))
    for stride in (1, 2)
}
PADS = {
    "right and bottom, stride 2, even": padded((0, 1, 0, 1), 3, 2, (8, 8)),
    "right and bottom, stride 2, odd": padded((0, 1, 0, 1), 3, 2, (7, 9)),
    "left and top": padded((2, 0, 3, 0), 3, 1, (5, 6)),
    "all different": padded((3, 1, 0, 2), 5, 3, (6, 7)),
    "more than the kernel": padded((4, 4, 4, 4), 3, 1, (3, 3)),
}
GROUPS = {
    "2 groups": grouped(8, 6, 2),
    "4 groups, stride 2": grouped(8, 12, 4, stride=2),
    "depthwise": grouped(8, 8, 8),
    "depthwise, stride 2": grouped(8, 8, 8, stride=2),
    "depthwise, 40 channels": grouped(40, 40, 40),
    "depthwise, 5 x 5": grouped(20, 20, 20, kernel=5),
    "depthwise, 100 channels, stride 2": grouped(100, 100, 100, stride=2),
    "depthwise, times 2": grouped(8, 16, 8),
}
WIDTHS = {
    f"{into} to {out} channels": wide(into, out)
    for into, out in (
        (1, 1), (3, 8), (8, 16), (16, 17), (17, 31), (31, 32), (32, 33), (33, 48), (48, 64), (64, 65), (65, 100),
        (100, 130), (130, 16), (130, 3), (16, 16), (64, 64),
    )
}  # fmt: skip

STRUCTURES = {
    "linear": chain(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 70), nn.ReLU(), nn.Linear(70, 4), shape=(7,)),
    "sequence": sandwich(nn.Conv1d(5, 6, 3, 2, 1), kind=nn.Conv1d, shape=(2, 9)),
    "sequence, kernel 4": sandwich(nn.Conv1d(5, 6, 4), kind=nn.Conv1d, shape=(2, 9)),
    "sequence, flattened": chain(
        nn.Conv1d(2, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(35, 6), nn.ReLU(), nn.Linear(6, 3), shape=(2, 9)
    ),
    "flattened image": chain(
        nn.Conv2d(3, 18, 3), nn.ReLU(), nn.Flatten(), nn.Linear(216, 70), nn.ReLU(), nn.Linear(70, 3), shape=(3, 5, 6)
    ),
    "flattened pixel": chain(
        nn.Conv2d(3, 70, 3), nn.ReLU(), nn.Flatten(), nn.Linear(70, 6), nn.ReLU(), nn.Linear(6, 3), shape=(3, 3, 3)
    ),
    "two flattened images": net(
        lambda m, x: m.d(relu(m.c((relu(m.a(x)) + relu(m.b(x))).flatten(1)))),
        a=conv(3, 4), b=conv(3, 4), c=nn.Linear(144, 9), d=nn.Linear(9, 3),
    ),
    "average of 2": sandwich(nn.AvgPool2d(2), conv(5, 6), shape=(2, 7, 8)),
    "average of 3, stride 2 behind": sandwich(nn.AvgPool2d(3), conv(5, 6, stride=2), shape=(2, 11, 9)),
    "average of 2 x 3": sandwich(nn.AvgPool2d((2, 3)), conv(5, 6), shape=(2, 8, 9)),
    "average of averages": sandwich(nn.AvgPool2d(2), nn.AvgPool2d(2), conv(5, 6), shape=(2, 11, 9)),
    "average, then neurons": sandwich(nn.AvgPool2d(2), out=5),
    "average, then depthwise": sandwich(nn.AvgPool2d(2), conv(5, 5, groups=5), out=5, shape=(2, 8, 6)),
    "average that overlaps": sandwich(nn.AvgPool2d(3, 1, 1), conv(5, 6)),
    "average with padding": sandwich(nn.AvgPool2d(2, 2, 1), conv(5, 6)),
    "average to 1": sandwich(nn.AdaptiveAvgPool2d(1), conv(5, 6, 1), shape=(2, 6, 5)),
    "average to 2": sandwich(nn.AdaptiveAvgPool2d(2), conv(5, 6), shape=(2, 6, 8)),
    "average to 2 of 5": sandwich(nn.AdaptiveAvgPool2d(2), conv(5, 6), shape=(2, 5, 5)),
    "average of a sequence": sandwich(nn.AvgPool1d(2), nn.Conv1d(5, 6, 3), kind=nn.Conv1d, shape=(2, 9)),
    "mean over pixels": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)).mean((2, 3))))), a=conv(3, 5), b=nn.Linear(5, 6), c=nn.Linear(6, 3)
    ),
    "mean over rows alone": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)).mean(2).flatten(1)))),
        a=conv(3, 5), b=nn.Linear(30, 6), c=nn.Linear(6, 3),
    ),
    "sum over pixels": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)).sum((2, 3))))), a=conv(3, 5), b=nn.Linear(5, 6), c=nn.Linear(6, 3)
    ),
    "identity shortcut": net(
        lambda m, x: m.c(relu(m.b(y := relu(m.a(x))) + y)), a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1)
    ),
    "projection": net(
        lambda m, x: m.d(relu(m.b(y := relu(m.a(x))) + m.c(y))),
        a=conv(3, 5), b=conv(5, 8, stride=2), c=conv(5, 8, 1, stride=2), d=conv(8, 3, 1),
    ),
    "option A": Case(option_a),
    "option A, odd": Case(option_a, (3, 7, 5)),
    "difference": net(
        lambda m, x: m.c(relu(m.b(y := relu(m.a(x))) - y)), a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1)
    ),
    "half of one": net(
        lambda m, x: m.c(relu(m.b(y := relu(m.a(x))) * 0.5 + y)), a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1)
    ),
    "a third of one": net(
        lambda m, x: m.c(relu(torch.add(m.b(y := relu(m.a(x))), y, alpha=0.3))),
        a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1),
    ),
    "twice itself": net(
        lambda m, x: m.c(relu((y := m.b(relu(m.a(x)))) + y)), a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1)
    ),
    "less a third of itself": net(
        lambda m, x: m.c(relu(torch.sub(y := m.b(relu(m.a(x))), y, alpha=0.3))),
        a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1),
    ),
    "join": Case(dense_block),
    "join of joins": net(
        lambda m, x: m.d(relu(m.c(torch.cat([torch.cat([y := relu(m.a(x)), relu(m.b(y))], 1), y], 1)))),
        a=conv(3, 4), b=conv(4, 5), c=conv(13, 6), d=conv(6, 3, 1),
    ),
    "join of currents": Case(dense_net),
    "join along rows": net(
        lambda m, x: m.c(relu(m.b(torch.cat([y := relu(m.a(x)), y], 2)))), a=conv(3, 4), b=conv(4, 5), c=conv(5, 3, 1)
    ),
    "join with the image": net(
        lambda m, x: m.c(relu(m.b(torch.cat([relu(m.a(x)), x], 1)))), a=conv(3, 4), b=conv(7, 5), c=conv(5, 3, 1)
    ),
    "shortcut from the image": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x))) + x)), a=conv(3, 5), b=conv(5, 3), c=conv(3, 3, 1)
    ),
    "shortcut from a layer of the image": net(
        lambda m, x: m.c(relu(m.b(relu(y := m.a(x))) + y)), a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1)
    ),
    "neurons first": net(lambda m, x: m.b(relu(m.a(relu(x)))), a=conv(3, 5), b=conv(5, 3, 1)),
    "layer upon layer": net(
        lambda m, x: m.d(relu(m.c(m.b(relu(m.a(x)))))), a=conv(3, 5), b=conv(5, 4), c=conv(4, 5), d=conv(5, 3, 1)
    ),
    "shortcut of currents": Case(before_activation),
    "factor by channel": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x))) * m.f)),
        a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1), f=torch.zeros(1, 5, 1, 1),
    ),
    "factor by column, as many as channels": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)) * m.f))),
        a=conv(3, 6), b=conv(6, 5), c=conv(5, 3, 1), f=torch.zeros(1, 1, 1, 6),
    ),
    "factor by pixel": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)) * m.f))),
        a=conv(3, 6), b=conv(6, 5), c=conv(5, 3, 1), f=torch.zeros(1, 1, 6, 6),
    ),
    "shift before a padded layer": net(
        lambda m, x: m.c(relu(m.b(m.bn(relu(m.a(x)))))),
        a=conv(3, 6), b=conv(6, 5), c=conv(5, 3, 1), bn=nn.BatchNorm2d(6),
    ),
    "6 branches": Case(lambda: many_branches(6)),
    "7 branches": Case(lambda: many_branches(7)),
    "slice of channels": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x))[:, 1:8:2]))), a=conv(3, 9), b=conv(4, 5), c=conv(5, 3, 1)
    ),
    "slice of a layer's channels": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)))[:, 2:])), a=conv(3, 4), b=conv(4, 7), c=conv(5, 3, 1)
    ),
    "slice of pixels": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x))[:, :, 1:5, ::2]))), a=conv(3, 4), b=conv(4, 5), c=conv(5, 3, 1)
    ),
    "every third column": net(
        lambda m, x: m.c(relu(relu(m.a(x))[:, :, :, ::3])), (3, 4, 8), a=conv(3, 5), c=conv(5, 3, 1)
    ),
    "chunks": net(
        lambda m, x: m.c(relu(m.b((y := relu(m.a(x)).chunk(2, 1))[0]) - y[1])),
        a=conv(3, 8), b=conv(4, 4), c=conv(4, 3, 1),
    ),
    "channel shuffle": net(shuffled, a=conv(3, 8), b=conv(8, 6, 1, groups=2), c=conv(6, 3, 1)),
    "pad before neurons": net(
        lambda m, x: m.c(relu(F.pad(relu(m.a(x)), (1, 2, 0, 1)))), a=conv(3, 5), c=conv(5, 3, 1)
    ),
    "pad with ones": net(
        lambda m, x: m.c(relu(m.b(F.pad(relu(m.a(x)), (1, 1, 1, 1), value=1.0)))),
        a=conv(3, 5), b=conv(5, 4, padding=0), c=conv(4, 3, 1),
    ),
    "pad by reflection": sandwich(conv(5, 6, padding_mode="reflect")),
    "padding by name": sandwich(nn.Conv2d(5, 6, 3, padding="same")),
    "max-pool": sandwich(nn.MaxPool2d(2), conv(5, 6), shape=(2, 7, 8)),
    "max-pool that overlaps": sandwich(nn.MaxPool2d(3, 2, 1), conv(5, 6), shape=(2, 7, 8)),
    "max-pool before": sandwich(nn.MaxPool2d(2), conv(5, 6), shape=(2, 7, 8), pool="before"),
    "max-pool as average": sandwich(nn.MaxPool2d(2), conv(5, 6), shape=(2, 7, 8), pool="average"),
    "max-pool of a join": net(
        lambda m, x: m.d(relu(m.c(F.max_pool2d(torch.cat([y := relu(m.a(x)), relu(m.b(y))], 1), 2)))),
        a=conv(3, 4), b=conv(4, 5), c=conv(9, 6), d=conv(6, 3, 1),
    ),
    "dilated": sandwich(conv(5, 6, padding=2, dilation=2)),
    "transposed": sandwich(nn.ConvTranspose2d(5, 6, 2, 2), shape=(2, 4, 4)),
    "upsampled": sandwich(nn.Upsample(scale_factor=2), conv(5, 6), shape=(2, 4, 4)),
    "volume": chain(
        nn.Conv3d(2, 4, 3), nn.ReLU(), nn.Conv3d(4, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(40, 3), shape=(2, 5, 5, 5)
    ),
    "volume in between": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x)).unflatten(1, (2, 3))).flatten(1, 2))),
        a=conv(3, 6), b=nn.Conv3d(2, 2, 3, padding=1), c=conv(6, 3, 1),
    ),
    "linear over columns": net(
        lambda m, x: m.c(relu(m.b(relu(m.a(x))))), a=conv(3, 5), b=nn.Linear(6, 6), c=conv(5, 3, 1)
    ),
    "spikes are the output": chain(conv(3, 5), nn.ReLU(), conv(5, 20), nn.ReLU()),
    "spikes are the output at once": chain(conv(3, 5), nn.ReLU()),
    "several readers": net(
        lambda m, x: m.d(relu(m.b(y := relu(m.a(x))))) + m.e(relu(m.c(y))) + m.f(y),
        a=conv(3, 5), b=conv(5, 20), c=conv(5, 6, 1), d=conv(20, 3, 1), e=conv(6, 3, 1), f=conv(5, 3, 1),
    ),
    "one layer, two sorts of neurons": net(
        lambda m, x: m.c(relu(y := m.b(z := relu(m.a(x)))) + F.relu6(y + z)),
        a=conv(3, 5), b=conv(5, 5), c=conv(5, 3, 1),
    ),
    "two readers of a sum": net(
        lambda m, x: m.c(relu(y := m.b(relu(m.a(x))) + x) + F.relu(m.d(y))),
        a=conv(3, 5), b=conv(5, 3), c=conv(3, 3, 1), d=conv(3, 3, 1),
    ),
    "neurons upon neurons": chain(conv(3, 5), nn.ReLU(), nn.ReLU6(), conv(5, 3, 1)),
    "a head": chain(
        conv(3, 5), nn.ReLU(), conv(5, 6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 4), nn.Softmax(1)
    ),
}  # fmt: skip
