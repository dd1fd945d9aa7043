"""What one layer frees, the next one finds: the system need not clear it again."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable

import pytest

from ftbc.heap import give_back, keep_what_is_freed

COUNT = """
import resource, threading, torch
from ftbc.heap import keep_what_is_freed

def faults():
    for k in range(40):
        if k == 32:  # by now the heap has grown as far as it will
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        layers = [torch.ones(5 << 20) for _ in range(3)]  # of 20 MB each
        del layers
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize() >> 20)

{call}
faults()
thread = threading.Thread(target=faults)
thread.start()
thread.join()
"""


def megabytes_cleared(call: str) -> list[int]:
    """For eight times three tensors of 20 MB: in the first thread of a process, and in another one."""
    done = subprocess.run([sys.executable, "-c", COUNT.format(call=call)], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries cannot be told")
def test_freed_tensors_are_kept() -> None:
    from_the_system = "import ctypes; ctypes.CDLL(None).mallopt(-3, 1 << 17)"  # all from 128 KB on, as glibc begins
    kept, cleared = megabytes_cleared("keep_what_is_freed()"), megabytes_cleared(from_the_system)
    assert max(kept) < 60 < 8 * 60 - 30 < min(cleared), (kept, cleared)


RESIDENT = """
import resource, torch
from ftbc.heap import give_back, keep_what_is_freed

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20

keep_what_is_freed()
pieces = [torch.ones(size) for _ in range(40) for size in (5 << 20, 5 << 10)]  # of 20 MB, and of 20 KB
before = resident()
del pieces[::2]
print(before, resident())
give_back()
print(resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries cannot be told")
def test_what_lies_between_pieces_in_use_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    before, freed, given_back = (int(number) for number in done.stdout.split())
    assert freed > before - 100, "freed memory was never kept"
    assert given_back < before - 700


@pytest.mark.parametrize("told", [keep_what_is_freed.__wrapped__, give_back])
def test_another_c_library_is_left_alone(told: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("ctypes.CDLL", lambda name: asked.append(name) or object())
    told()
    assert asked and set(asked) == {None}
