"""What a user names in a Python file, as file.py:name. The file is run, which is what its user asks for."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TypeVar

from ftbc.atomic import is_file
from ftbc.errors import FileError, FtbcError, ModelError, first_line

Wanted = TypeVar("Wanted")


def from_user_file(name: str, kind: type[Wanted], what: str) -> Wanted:
    """An object of a kind, or what a function or class of that name gives; what: it in words, for messages."""
    path, _, factory = name.rpartition(":")
    file = Path(path).resolve()
    if not is_file(file):
        raise FileError(f"'{path}' does not exist: give an existing Python file as file.py:{factory or 'name'}")
    # Under a name of its own: a file called json.py must not take the place of the module json.
    specification = importlib.util.spec_from_file_location(f"_user_file_{file.stem}", file)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    sys.path.insert(0, str(file.parent))  # as `python file.py` does: it may import its neighbours
    try:
        specification.loader.exec_module(module)
        if not hasattr(module, factory):
            raise ModelError(f"'{path}' has no '{factory}': name a function or class that gives {what}")
        found = getattr(module, factory)
        found = found if isinstance(found, kind) else found()
    except FtbcError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"'{path}' cannot give '{factory}'{_line(error, file)}: {_said(error)}") from error
    finally:
        sys.path.remove(str(file.parent))
    if not isinstance(found, kind):
        raise ModelError(f"{factory}() of '{path}' gives a {type(found).__name__}, not {what}")
    return found


def _line(error: BaseException, file: Path) -> str:
    """`` (file.py:line)`` where the user's file was when the error came."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file]
    return f" ({file.name}:{lines[-1]})" if lines else ""


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
