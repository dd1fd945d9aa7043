"""Operations that change nothing in evaluation."""

from __future__ import annotations

from typing import Any

from torch import nn

from ftbc.graph.call import Call, Refused, Value
from ftbc.graph.rules.registry import rule


@rule("contiguous", "clone", "detach", "alias", "identity", "requires_grad_", "lift_fresh_copy", "positive", "float",
      "double", "to", "type", "type_as")  # fmt: skip
def _same(call: Call, x: Value, *_: Any, **__: Any) -> Value:
    if call.shape != x.shape:  # asking for the shape also refuses another precision
        raise Refused("it does more than to copy a tensor")
    return x


@rule("dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_", "alpha_dropout", "alpha_dropout_",
      "feature_alpha_dropout", "feature_dropout", "feature_dropout_")  # fmt: skip
def _dropout(call: Call, x: Value, p: float = 0.5, training: bool = True, inplace: bool = False,
             train: bool | None = None) -> Value:  # fmt: skip
    if p > 0 and (training if train is None else train):
        raise Refused("this dropout stays active in evaluation; pass training=self.training")
    return x


@rule("Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
def _module(call: Call, module: nn.Module, x: Value) -> Value:
    return x
