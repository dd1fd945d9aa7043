"""A network without its weights, as plain data: what settings files hold, and what weights files say of themselves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save as to_bytes
from torch import nn

from ftbc.activation import named
from ftbc.atomic import is_file, replacing
from ftbc.errors import FileError, ModelError, first_line
from ftbc.zoo.registry import build

_KEY = "ftbc-network"
_NETWORK = ("classes", "width", "batch_norm")
_ACTIVATION = ("levels", "slope", "threshold")


@dataclass(frozen=True)
class Blueprint:
    """An architecture of the zoo and its settings; None stands for what the architecture or activation does by itself.

    activation: a name of `ftbc.activation.NAMES`; levels, slope, threshold: its settings, as far as it has them.

    >>> Blueprint("resnet20", classes=10, width=0.5, activation="qcfs", levels=4).build().act1
    QCFS(threshold=8, levels=4)
    """

    architecture: str
    classes: int | None = None
    width: float | None = None
    batch_norm: bool | None = None
    activation: str | None = None
    levels: int | None = None
    slope: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name, fits, words in (
            ("architecture", isinstance(self.architecture, str), "a name"),
            ("classes", type(self.classes) is int and self.classes >= 1, "a whole number, at least 1"),
            ("width", type(self.width) in (int, float), "a number above 0"),
            ("batch_norm", type(self.batch_norm) is bool, "true or false"),
        ):
            value = getattr(self, name)
            if not fits and (value is not None or name == "architecture"):
                raise ModelError(f"{name}={value!r}: give {words}")

    def prototype(self) -> nn.Module | None:
        """The activation that is copied for each place; None for the architecture's own."""
        own = {name: getattr(self, name) for name in _ACTIVATION}
        if self.activation is None:
            for name, value in own.items():
                if value is not None:
                    raise ModelError(f"{name}={value!r} is a setting of an activation: name one, such as 'qcfs'")
            return None
        return named(self.activation, **own)

    def build(self) -> nn.Module:
        """The network, untrained."""
        settings = {name: getattr(self, name) for name in _NETWORK if getattr(self, name) is not None}
        prototype = self.prototype()
        return build(self.architecture, **settings, **({} if prototype is None else {"activation": prototype}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without what is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Blueprint:
        """The blueprint of `to_dict`."""
        try:
            return cls(**data)
        except TypeError as error:
            raise ModelError(f"a network has no setting {str(error).rpartition(' ')[2]}") from error


def save_weights(model: nn.Module, path: Path, blueprint: Blueprint, *, float16: bool = False) -> None:
    """Write the weights of a network as safetensors; the file says which network they belong to.

    float16: in half the bytes. Kernels and matrices lose digits by it; vectors, such as the statistics of BatchNorm,
    are few and stay as they are.
    """
    state = {name: tensor.cpu().contiguous() for name, tensor in model.state_dict().items()}
    if float16:
        state = {name: tensor.half() if tensor.ndim > 1 else tensor for name, tensor in state.items()}
    with replacing(path) as file:
        file.write(to_bytes(state, metadata={_KEY: json.dumps(blueprint.to_dict())}))


def blueprint_of(path: Path) -> Blueprint | None:
    """The network that a weights file says it belongs to; None if it does not say."""
    if path.suffix != ".safetensors" or not is_file(path):
        return None
    try:
        with safe_open(path, framework="pt") as file:  # type: ignore[no-untyped-call]
            text = (file.metadata() or {}).get(_KEY)
        return None if text is None else Blueprint.from_dict(json.loads(text))
    except Exception as error:  # of safetensors, or of what stands in the place of a description
        raise FileError(f"weights '{path}' are not a complete safetensors file ({first_line(error)})") from error
