"""Read the pickles of the official CIFAR archives without the power of pickle.

A pickle can call any function by name. Here each name that a CIFAR batch needs stands for a small class
of this file, every other name is refused, and so nothing outside this file is called on the file's word.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np

from ftbc.errors import FileError


def read_batch(path: Path) -> dict[str, Any]:
    """Read one pickled batch: a dictionary of numpy arrays, lists, strings and numbers.

    Pickles of Python 2 (as the official ones) and of Python 3 up to protocol 4 are read alike; keys are text.
    """
    try:
        content = path.read_bytes()
        _require_small_memo(content)
        batch = _BatchUnpickler(path, io.BytesIO(content)).load()
        return {_text(key): value.array if isinstance(value, _Array) else value for key, value in batch.items()}
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read '{path}' ({error.strerror or error}): check its permissions") from error
    except Exception as error:  # a damaged pickle makes the unpickler raise nearly anything
        raise FileError(f"'{path}' is truncated or not a CIFAR batch: fetch the data set again") from error


def _require_small_memo(content: bytes) -> None:
    """Refuse a pickle that numbers an object far beyond its length: the unpickler makes room for all numbers below."""
    for operation, argument, _ in pickletools.genops(content):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise ValueError(f"memo number {argument}")


def _text(value: bytes | str) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


# Every stand-in has a __setstate__: without one, pickle's BUILD could write attributes onto the class itself.


class _Dtype:
    """Stands for numpy.dtype, for whole numbers only."""

    def __init__(self, code: bytes | str, *_: object) -> None:
        if not re.fullmatch("[iu][1248]", _text(code)):
            raise ValueError(f"dtype {code!r}")
        self.code, self.order = _text(code), "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = _text(state[1])

    def numpy(self) -> np.dtype:
        return np.dtype(self.code).newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """Stands for numpy.ndarray and for the function that makes an empty one to be filled."""

    def __init__(self, *_: object) -> None:
        self.array = np.zeros(0, np.uint8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        shape, dtype, fortran, data = state[-4:]
        if not isinstance(dtype, _Dtype) or not isinstance(data, bytes):
            raise ValueError("array state")
        self.array = np.frombuffer(data, dtype.numpy()).reshape(shape, order="F" if fortran else "C")


class _Bytes:
    """Stands for _codecs.encode, by which Python 3 writes bytes into a protocol 2 pickle."""

    def __new__(cls, text: str, encoding: bytes | str) -> bytes:
        if _text(encoding) != "latin1":
            raise ValueError(f"encoding {encoding!r}")
        return text.encode("latin1")

    def __setstate__(self, state: object) -> None:
        raise ValueError("bytes have no state")


_STAND_INS = {
    "numpy.core.multiarray._reconstruct": _Array,
    "numpy._core.multiarray._reconstruct": _Array,
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": _Bytes,
}


class _BatchUnpickler(pickle.Unpickler):
    def __init__(self, path: Path, file: Any) -> None:
        super().__init__(file, encoding="bytes")
        self.path = path

    def find_class(self, module_name: str, global_name: str) -> Any:
        name = f"{module_name}.{global_name}"
        if name not in _STAND_INS:
            raise FileError(f"'{self.path}' asks for {name!r}, which no CIFAR batch needs: do not trust this file")
        return _STAND_INS[name]
