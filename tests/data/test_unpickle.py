"""The restricted unpickler: official and newer pickles are read, anything else runs nothing."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ftbc.data.unpickle import read_batch
from ftbc.errors import FileError

from .conftest import make_records, python2_pickle


def test_python2_pickles_are_read_as_pickle_reads_them(tmp_path):
    pixels, labels = make_records(3, 10, 0)
    content = python2_pickle(pixels, labels, "labels")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of its old module names
        reference = pickle.loads(content, encoding="bytes")
    (tmp_path / "batch").write_bytes(content)
    batch = read_batch(tmp_path / "batch")
    assert {key.encode() for key in batch} == reference.keys()
    assert np.array_equal(batch["data"], reference[b"data"]) and np.array_equal(batch["data"], pixels)
    assert batch["labels"] == reference[b"labels"] == labels
    assert batch["batch_label"] == b"testing batch"


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_python3_pickles_are_read(tmp_path, protocol, dtype, order):
    array = np.asarray(np.arange(6).reshape(2, 3), dtype=dtype, order=order)
    (tmp_path / "batch").write_bytes(pickle.dumps({"data": array, "labels": [1, 2], b"text": "ü"}, protocol))
    batch = read_batch(tmp_path / "batch")
    assert np.array_equal(batch["data"], array) and batch["data"].dtype == array.dtype
    assert batch["labels"] == [1, 2] and batch["text"] == "ü"


class Hostile:
    """Pickles as a call of any function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_hostile_pickle_runs_nothing(tmp_path, protocol):
    victim = tmp_path / "victim"
    content = pickle.dumps({"data": Hostile(os.system, f"touch {victim}")}, protocol)
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(FileError, match=r"batch' asks for '\w+\.system'") as caught:
        read_batch(tmp_path / "batch")
    assert "\n" not in str(caught.value) and not victim.exists()
    pickle.loads(content)
    assert victim.exists()  # the pickle was a loaded gun: only the restriction kept it from going off


@pytest.mark.parametrize("function", [eval, getattr, bytearray, np.load, np.frombuffer, Path])
def test_every_other_global_is_refused_by_name(tmp_path, function):
    (tmp_path / "batch").write_bytes(pickle.dumps(Hostile(function, "x"), 2))
    with pytest.raises(FileError, match="asks for"):
        read_batch(tmp_path / "batch")


def test_object_arrays_and_other_codecs_are_refused(tmp_path):
    import _codecs

    for content in (np.array([{}], dtype=object), np.array([1.5]), Hostile(_codecs.encode, "x", "rot13")):
        (tmp_path / "batch").write_bytes(pickle.dumps({"data": content}, 2))
        with pytest.raises(FileError, match="not a CIFAR batch"):
            read_batch(tmp_path / "batch")


def test_a_pickle_cannot_alter_the_stand_ins(tmp_path):
    from ftbc.data import unpickle

    before = {cls: dict(vars(cls)) for cls in set(unpickle._STAND_INS.values())}
    for name in (b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"c_codecs\nencode\n"):
        # BUILD with the state (None, {"marked": 1}) would set an attribute on the class.
        (tmp_path / "batch").write_bytes(b"\x80\x02" + name + b"N}X\x06\x00\x00\x00markedK\x01s\x86b.")
        with pytest.raises(FileError):
            read_batch(tmp_path / "batch")
    assert before == {cls: dict(vars(cls)) for cls in set(unpickle._STAND_INS.values())}


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_pickles_give_a_file_error_or_a_batch(tmp_path, data):
    content = bytearray(python2_pickle(*make_records(1, 10, 0), "labels"))
    # Damage near the structure, not in the 3072 pixel bytes that any value fits.
    places = [i for i in range(len(content)) if i < 230 or i > len(content) - 40]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.sampled_from(places))] = data.draw(st.sampled_from(b"(.0123KNRbcdeitu}]T\x00\x85\x87\xff"))
    (tmp_path / "batch").write_bytes(content)
    try:
        assert isinstance(read_batch(tmp_path / "batch"), dict)
    except FileError as error:
        assert "batch" in str(error)


@pytest.mark.parametrize("put", [b"r\xff\xff\xff\x7f", b"p2147483647\n"])
def test_a_huge_memo_number_is_refused_at_once(tmp_path, put):
    (tmp_path / "batch").write_bytes(b"\x80\x02}" + put + b".")
    with pytest.raises(FileError, match="batch"):
        read_batch(tmp_path / "batch")


def test_a_missing_file_is_a_file_error(tmp_path):
    with pytest.raises(FileError, match="nowhere"):
        read_batch(tmp_path / "nowhere")
