"""Every method by name: the table that `ftbc methods` prints. docs/methods.md has a card for each."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any

from ftbc.calibrate import (
    FTBC,
    BiasCorrection,
    CorrelationSearch,
    DelayedReadout,
    DistributionAware,
    Gain,
    PotentialCorrection,
    QuantileBias,
    ReadOut,
    Refit,
    ReleasedFTBC,
    Sharpen,
    ThresholdBalance,
    WeightCorrection,
)
from ftbc.errors import RecipeError
from ftbc.initial import SpreadHalf, Zero
from ftbc.neuron import Burst, Differential, Offset, Parallel, Residual, Signed, Switch
from ftbc.recipe import Recipe
from ftbc.threshold import Gaussian, LocalBalance, Maximum, MeanSquare, MeanSquareUpTo, Percentile, Trained


def recipes() -> dict[str, Recipe]:
    """Every method by name."""
    return {entry.name: entry for entry in _RECIPES}


def recipe(name: str, /, **overrides: Any) -> Recipe:
    """The method of that name, with some of its fields replaced.

    >>> recipe("ftbc", calibrate=(FTBC(alpha=0.2),)).calibrate[0].alpha
    0.2
    """
    known = recipes()
    if not isinstance(name, str):
        raise RecipeError(f"{name!r} is no name of a recipe (see: ftbc methods)")
    if name not in known:
        nearest = difflib.get_close_matches(name, known, 1, 0.0)
        raise RecipeError(
            f"there is no recipe '{name}'; did you mean '{nearest[0]}'? All: {', '.join(known)} (see: ftbc methods)"
        )
    try:
        return dataclasses.replace(known[name], **overrides)
    except TypeError as error:
        raise RecipeError(f"recipe '{name}' has no setting {str(error).rpartition(' ')[2]}") from error


_LIKE_THE_PAPER: dict[str, Any] = {"threshold": MeanSquare("floor"), "initial": SpreadHalf()}
"""What SNN Calibration and FTBC start from in the released code."""

_BASE = (
    Recipe(
        name="maximum",
        summary="thresholds at the largest activation of each channel, membranes half charged; no calibration",
        threshold=Maximum(),
    ),
    Recipe(
        name="percentile",
        summary="thresholds at the 99.9th percentile of each channel, membranes half charged; no calibration",
        threshold=Percentile(99.9),
    ),
    Recipe(
        name="mean-square",
        summary="thresholds of least square error per channel, membranes half charged; no calibration",
    ),
)

_TRAINED = (
    Recipe(
        name="rnl",
        summary="for networks trained with rate-norm layers: the trained thresholds, membranes empty",
        threshold=Trained(),
        initial=Zero(),
    ),
    Recipe(
        name="rts",
        summary="for networks trained with a clipped ReLU: the trained thresholds, theta/2T at each step",
        threshold=Trained(),
        initial=SpreadHalf(),
    ),
    Recipe(
        name="opi",
        summary="for networks trained with a clipped ReLU: the trained thresholds, membranes half charged",
        threshold=Trained(),
    ),
    Recipe(
        name="qcfs",
        summary="for networks trained with QCFS: the trained thresholds, membranes half charged; no calibration",
        threshold=Trained(),
    ),
    Recipe(
        name="slip-relu",
        summary="for networks trained with SlipReLU: the trained thresholds, membranes half charged",
        threshold=Trained(),
    ),
)

_CALIBRATED = (
    Recipe(
        name="rmp",
        summary="thresholds balanced on the spiking network itself: 0.8 times the largest current; membranes empty",
        threshold=Maximum("layer"),
        initial=Zero(),
        calibrate=(ThresholdBalance(0.8),),
    ),
    Recipe(
        name="snnc-lp",
        summary="SNN Calibration, light: mean-square thresholds, then one bias per channel",
        calibrate=(BiasCorrection(),),
        **_LIKE_THE_PAPER,
    ),
    Recipe(
        name="snnc-ap",
        summary="SNN Calibration, advanced: weights trained layer by layer, then initial potentials per neuron",
        calibrate=(WeightCorrection(), PotentialCorrection()),
        **_LIKE_THE_PAPER,
    ),
    Recipe(
        name="snnc-potential",
        summary="SNN Calibration, advanced without its weights, as its released code for CIFAR: initial potentials",
        calibrate=(PotentialCorrection(),),
        **_LIKE_THE_PAPER,
    ),
    Recipe(
        name="ltb",
        summary="local threshold balancing, the same thresholds for every T, and a delayed read-out",
        threshold=LocalBalance(),
        calibrate=(DelayedReadout(),),
    ),
)

_FTBC = (
    Recipe(
        name="ftbc",
        summary="mean-square thresholds, then temporal biases b[t] per channel by FTBC",
        calibrate=(FTBC(),),
    ),
    Recipe(
        name="ftbc-unclipped",
        summary="as ftbc, but towards the activations as they are, as in the paper, not clipped at the threshold",
        calibrate=(FTBC(clip=False),),
    ),
    Recipe(
        name="ftbc-layer",
        summary="FTBC with one b[t] for a whole layer: the paper's ablation",
        calibrate=(FTBC(grain="layer"),),
    ),
    Recipe(
        name="ftbc-neuron",
        summary="FTBC with a b[t] for each neuron: the paper's ablation",
        calibrate=(FTBC(grain="neuron"),),
    ),
    Recipe(
        name="ftbc-cifar",
        summary="FTBC with the settings of the paper's table for CIFAR: alpha 0.2, 10 iterations of 2 x 128 images",
        calibrate=(FTBC(alpha=0.2, iterations=10, clip=False),),
        **_LIKE_THE_PAPER,
    ),
    Recipe(
        name="ftbc-imagenet",
        summary="FTBC with the settings of the paper's table for ImageNet: alpha 0.5, 10 iterations of 10 x 128 images",
        calibrate=(FTBC(alpha=0.5, iterations=10, batches=10, clip=False),),
        **_LIKE_THE_PAPER,
    ),
    Recipe(
        name="ftbc-qcfs",
        summary="for networks trained with QCFS: their thresholds, then FTBC with settings between the paper's",
        threshold=Trained(),
        calibrate=(FTBC(alpha=0.5, iterations=10, batch=32, batches=1, clip=False),),
    ),
    Recipe(
        name="ftbc-qcfs-released",
        summary="for networks trained with QCFS: the rule of FTBC's released code, which is not that of the paper",
        threshold=Trained(),
        calibrate=(ReleasedFTBC(),),
    ),
    Recipe(
        name="ftbc-rts",
        summary="for networks trained with a clipped ReLU: RTS, then FTBC with the paper's alpha for it",
        threshold=Trained(),
        initial=SpreadHalf(),
        calibrate=(FTBC(alpha=0.005, iterations=10, batch=32, batches=3, clip=False),),
    ),
    Recipe(
        name="ftbc-ltb",
        summary="local threshold balancing, then FTBC: one calibration for every T",
        threshold=LocalBalance(),
        calibrate=(FTBC(),),
    ),
    Recipe(
        name="snnc-lp-ftbc",
        summary="SNN Calibration, light, then FTBC",
        calibrate=(BiasCorrection(), FTBC()),
        **_LIKE_THE_PAPER,
    ),
    Recipe(
        name="snnc-ap-ftbc",
        summary="SNN Calibration, advanced, then FTBC",
        calibrate=(WeightCorrection(), PotentialCorrection(), FTBC()),
        **_LIKE_THE_PAPER,
    ),
)

_NEURONS = (
    Recipe(
        name="tsc",
        summary="as RMP, but synapses are told when a current begins and when it ends",
        threshold=Maximum("layer"),
        initial=Zero(),
        neuron=Switch(),
        calibrate=(ThresholdBalance(0.8),),
    ),
    Recipe(
        name="snm",
        summary="signed neurons with memory, which take back what they sent too early; a threshold for each neuron",
        threshold=Maximum("neuron"),
        initial=Zero(),
        neuron=Signed(),
    ),
    Recipe(
        name="ftbc-signed",
        summary="FTBC with signed neurons, which take a spike back as soon as the membrane is negative",
        neuron=Signed(lower=0.0),
        calibrate=(FTBC(),),
    ),
    Recipe(
        name="burst",
        summary="up to 5 spikes of a neuron at each step; thresholds at the 99.9th percentile of each channel",
        threshold=Percentile(99.9),
        initial=Zero(),
        neuron=Burst(5),
    ),
    Recipe(
        name="differential",
        summary="spikes of 4 sizes, positive and negative, tell changes of the mean; thresholds from mean and variance",
        threshold=Gaussian(parts=16),
        initial=Zero(),
        neuron=Differential(4),
    ),
    Recipe(
        name="srp",
        summary="for networks trained with QCFS: neurons that owe after 4 extra steps are silent in those that count",
        threshold=Trained(),
        neuron=Residual(4),
    ),
    Recipe(
        name="cos",
        summary="for networks trained with QCFS: each layer looks at 4 steps before it decides where neurons begin",
        threshold=Trained(),
        neuron=Offset(4),
    ),
    Recipe(
        name="parallel",
        summary="for networks trained with QCFS: each layer sees all steps at once; exact where T is their levels",
        threshold=Trained(),
        neuron=Parallel(),
        calibrate=(DistributionAware(),),
    ),
    Recipe(
        name="parallel-relu",
        summary="each layer sees all steps at once; currents and spikes are corrected in the mean of each channel",
        threshold=Maximum(),
        neuron=Parallel(),
        calibrate=(DistributionAware(),),
    ),
    Recipe(
        name="parallel-refit",
        summary="each layer sees all steps at once; weights are refitted to the spikes, layer by layer",
        neuron=Parallel(),
        calibrate=(Refit(partial=0.0, rounds=0),),
    ),
)

_BEST = (
    Recipe(
        name="best",
        summary="layer by layer: weights refitted to the spikes, thresholds and b[t] by correlation, spike gains",
        calibrate=(
            Refit(last=False),
            QuantileBias(),
            CorrelationSearch(most_steps=16),
            Sharpen(most_steps=2, on_trial=True),
            Gain(most_steps=4),
            ReadOut(),
        ),
    ),
    Recipe(
        name="best-sharpened",
        summary="as best, but up to two steps always with the refit for the neurons behind, which best tries first",
        calibrate=(
            Refit(last=False),
            QuantileBias(),
            CorrelationSearch(most_steps=16),
            Sharpen(most_steps=2),
            Gain(most_steps=4),
            ReadOut(),
        ),
    ),
    Recipe(
        name="best-anytime",
        summary="as best, for a network that is read at any of its steps, from the fourth on",
        threshold=MeanSquareUpTo(most=4),
        calibrate=(
            Refit(last=False, partial=3.0, anytime=True),
            QuantileBias(),
            CorrelationSearch(first=4),
            Gain(first=4),
            ReadOut(anytime=True),
        ),
    ),
)

_RECIPES = (*_BASE, *_TRAINED, *_CALIBRATED, *_FTBC, *_NEURONS, *_BEST)
