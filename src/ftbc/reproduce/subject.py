"""The network that a figure is about, its images, and the folder that keeps what was measured on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ftbc import __version__
from ftbc.calibration_data import gather_images
from ftbc.data import Images
from ftbc.errors import FileError, InputError
from ftbc.graph.canonical import canonical
from ftbc.graph.trace import trace
from ftbc.protocol.fingerprint import of_images, of_network
from ftbc.protocol.origin import origin
from ftbc.protocol.results_folder import ResultsFolder
from ftbc.reproduce.material import in_few_words
from ftbc.reproduce.setting import Setting
from ftbc.reproduce.table import lacks

FORMAT = 1
"""Raised when what is kept comes to mean something else."""


@dataclass(frozen=True)
class Subject:
    """A network, calibration images ``[N, ...]`` and test images."""

    setting: Setting
    model: nn.Module
    name: str
    images: Tensor
    test: Images

    def key(self) -> dict[str, Any]:
        """What decides all that is measured on it."""
        return {
            "format": FORMAT,
            "ftbc": __version__,
            "network": of_network(canonical(trace(self.model, self.images)).require()),
            "calibration": of_images(self.images),
            "test": of_images(self.test),
        }


def find_subject(setting: Setting) -> Subject:
    """What ``[networks.subject]`` and the data of the scale name, if it is there."""
    experiment, material, scale = setting.experiment, setting.material, setting.scale
    source = experiment.networks.get("subject", {}).get(setting.name)
    if scale.data is None or source is None:
        raise FileError(
            f"'{experiment.name}' has no network or data at scale {setting.name}: describe both in its file"
        )
    missing = lacks(setting, scale.data, source)
    if missing:
        raise InputError(f"'{experiment.name}' cannot be measured: it lacks {'; '.join(in_few_words(missing))}")
    model = material.network(source)
    images = gather_images(material.draws(scale.data, source, scale.images)(setting.seed), model)
    return Subject(setting, model, str(source), images, material.test(scale.data, source, scale.test_images))


class Kept:
    """What a figure has measured already, by key, in the folder of a setting."""

    def __init__(self, setting: Setting, common: dict[str, Any]) -> None:
        self.setting = setting
        self.common = common
        self.folder = ResultsFolder(setting.folder)
        self.made = origin(setting.command)

    def find(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """The result of a key, counted as kept; None if it is not there."""
        found = self.folder.read({**self.common, **key})
        if found is None:
            if not self.setting.measure:
                raise FileError(f"'{self.folder.path}' does not hold {key['what']}: let it be measured")
            return None
        self.setting.count(0, 1)
        return found["result"]

    def enter(self, key: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """Keep a result."""
        self.folder.prepare()
        self.folder.write({**self.common, **key}, result, self.made)
        self.setting.count(1, 0)
        return result

    def get(self, key: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of a key, measured if it is not there."""
        found = self.find(key)
        return self.enter(key, measure()) if found is None else found
