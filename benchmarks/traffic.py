"""What a large network asks of several machines, by count: python -m benchmarks.traffic [ARCHITECTURE] [--steps T].

Nothing is measured here. Operations and messages are counted on the network's graph; speeds are assumptions, and said.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from ftbc import zoo
from ftbc.graph.canonical import canonical
from ftbc.graph.ops import Activation
from ftbc.graph.trace import trace


@dataclass(frozen=True)
class Counts:
    """layers of neurons, their channels and neurons, and multiplications of the ANN for an image."""

    layers: int
    channels: int
    neurons: int
    macs: int

    @property
    def message(self) -> float:
        """Bytes that a process sends for one step of one batch: a sum per channel and a count per layer, in float64."""
        return 8 * (self.channels + self.layers)


def counts(architecture: str) -> Counts:
    """Of a network of the zoo."""
    model = zoo.build(architecture).eval()
    side = zoo.architectures()[architecture].side
    x = torch.zeros(1, 3, side, side)
    graph = canonical(trace(model, x)).graph
    sites = graph.of_type(Activation)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    neurons = sum(torch.Size(site.shape).numel() for site in sites)
    return Counts(len(sites), sum(site.shape[0] for site in sites), neurons, counter.get_total_flops() // 2)


def lines(
    found: Counts, steps: int, devices: int, images: int, batches: int, batch: int, given: argparse.Namespace
) -> str:
    """The estimate as text."""
    speed, latency = given.teraflops * 1e12 * devices, given.microseconds * 1e-6
    passes = batches * batch
    rounds = found.layers * steps * batches
    return "\n".join(
        [
            f"{found.layers} layers of neurons, {found.channels:,} channels, {found.neurons:,} neurons, "
            f"{found.macs / 1e9:.2f} G multiplications an image",
            f"a step of a batch: {found.layers} messages, {found.message / 1e3:.1f} kB in all from each process",
            f"calibration, {batches} batches of {batch}, T = {steps}: {rounds:,} messages, "
            f"{found.message * steps * batches / 1e9:.2f} GB from each process; "
            f"{rounds * latency:.0f} s of waiting at {given.microseconds:g} us a message; "
            f"{2 * found.macs * steps * passes / speed:.0f} s of synapses",
            f"evaluation, {images:,} images: {2 * found.macs * steps * images / speed:.0f} s of synapses, "
            f"{20 * found.neurons * steps * images / (given.terabytes * 1e12 * devices):.0f} s of neurons "
            f"(20 bytes a neuron and step)",
            f"assumed: {devices} devices of {given.teraflops:g} TFLOP/s and {given.terabytes:g} TB/s, as sustained",
        ]
    )


def main() -> None:
    """Print the estimate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traffic", description=__doc__)
    parser.add_argument("architecture", nargs="?", default="resnet34")
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--teraflops", type=float, default=20.0, help="sustained by a device in float32")
    parser.add_argument("--terabytes", type=float, default=1.0, help="sustained by a device's memory, a second")
    parser.add_argument("--microseconds", type=float, default=50.0, help="for one small all-reduce")
    given = parser.parse_args()
    found = counts(given.architecture)
    # The settings of the paper's table for ImageNet: 10 iterations of 10 batches of 128 images.
    print(lines(found, given.steps, given.devices, images=50_000, batches=100, batch=128, given=given))


if __name__ == "__main__":
    main()
