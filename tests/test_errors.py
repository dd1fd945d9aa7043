"""Messages to users: one line, whatever was in the file or name that they are about."""

from __future__ import annotations

import pickle

from ftbc.errors import FileError, FtbcError, MissingExtraError, UnsupportedError


def test_messages_are_one_printable_line() -> None:
    error = FileError("'net\x1b[31m\n.snn' has a line\r\nmore\x00")
    assert str(error) == "'net [31m .snn' has a line  more "
    assert str(FtbcError()) == "" and str(FtbcError(KeyError("x"))) == "'x'"


def test_problems_of_a_network_have_a_line_each() -> None:
    assert str(UnsupportedError("'norm' is not\n'gelu'\x1b is not")) == "'norm' is not\n'gelu'  is not"


def test_messages_are_not_endless() -> None:
    assert len(str(FileError("x" * 10**6))) == 2000 and str(FileError("x" * 10**6)).endswith("x ...")
    assert str(FileError("x" * 2000)) == "x" * 2000


def test_other_errors_as_before() -> None:
    error = MissingExtraError("numba", "the event engine", "fast")
    assert str(error).endswith("pip install 'ftbc[fast]'")
    assert str(pickle.loads(pickle.dumps(FileError("gone")))) == "gone"
