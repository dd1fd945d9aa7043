"""Blocks of numbers in vector registers: what loops written as LLVM vector code for numba are made of.

Addresses are plain integers: nothing is checked here, the loop that computes them answers for them. Importing this
needs numba (the extra ``fast``).
"""

from __future__ import annotations

import inspect
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

import numba
from llvmlite import binding, ir

WORD = ir.IntType(64)
"""One bit per channel: the spikes of a pixel and of up to 64 channels."""

_ELEMENTS = {"int16": (ir.IntType(16), 2), "float32": (ir.FloatType(), 4), "float64": (ir.DoubleType(), 8)}
NONE = ir.Constant(ir.IntType(8).as_pointer(), None)
"""What an operation returns that returns nothing."""


def revision(*modules: ModuleType) -> int:
    """A number for the state of these files and of this one.

    Numba, which keeps compiled loops on disk, sees when the file of a loop has changed, but not the files of the vector
    code in it; a loop that closes over this number is compiled anew.
    """
    sources = [inspect.getsource(module) for module in (sys.modules[__name__], *modules)]
    return zlib.crc32("".join(sources).encode())


_Loop = TypeVar("_Loop", bound=Callable[..., Any])


def compiled(loop: _Loop) -> _Loop:
    """A loop compiled at its first call that lets go of the interpreter's lock; kept on disk, where there is room.

    It divides as numpy does: to ask before each division whether it is by zero would keep a loop from being vector
    code.
    """
    try:
        return numba.njit(nogil=True, error_model="numpy", cache=True)(loop)
    except RuntimeError:  # no folder that can be written to: compiled anew in each process
        return numba.njit(nogil=True, error_model="numpy")(loop)


@cache
def registers() -> tuple[int, int]:
    """Bytes of a vector register of this processor, and how many of them may hold membranes."""
    features = binding.get_host_cpu_features()
    if features.get("avx512bw") and features.get("avx512vl"):
        return 64, 27
    return (32, 12) if features.get("avx2") else (16, 12)


@dataclass(frozen=True)
class Block:
    """``channels`` numbers of type ``element``, as a row of vectors."""

    element: str
    channels: int

    @property
    def size(self) -> int:
        """Bytes of the block."""
        return self.channels * _ELEMENTS[self.element][1]

    @property
    def lanes(self) -> int:
        """Numbers in one vector: the widest that divides the block."""
        return math.gcd(self.channels, registers()[0] // _ELEMENTS[self.element][1])

    @property
    def vectors(self) -> int:
        """Vectors that make up the block."""
        return self.channels // self.lanes


class Code:
    """Emits operations on whole blocks."""

    def __init__(self, builder: ir.IRBuilder, element: str, channels: int) -> None:
        self.builder = builder
        self.block = Block(element, channels)
        self.number, self.bytes = _ELEMENTS[self.block.element]
        self.lanes, self.vectors = self.block.lanes, self.block.vectors
        self.kind = ir.VectorType(self.number, self.lanes)
        self.is_float = self.block.element != "int16"

    def _place(self, address: Any, index: int) -> Any:
        return self.builder.inttoptr(
            shifted(self.builder, address, index * self.lanes * self.bytes), self.kind.as_pointer()
        )

    def load(self, address: Any, count: int | None = None) -> list[Any]:
        """The vectors that lie at an address; as many as a block has, or ``count``."""
        count = self.vectors if count is None else count
        return [self.builder.load(self._place(address, index), align=self.bytes) for index in range(count)]

    def store(self, values: list[Any], address: Any) -> None:
        """Write vectors to an address."""
        for index, value in enumerate(values):
            self.builder.store(value, self._place(address, index), align=self.bytes)

    def beside(self, blocks: list[list[Any]]) -> list[Any]:
        """Two blocks of one vector each as one vector of twice the length; a single block as it is."""
        if len(blocks) == 1:
            return blocks[0]
        (first,), (second,) = blocks
        return [self.builder.shuffle_vector(first, second, _mask(range(2 * self.lanes)))]

    def apart(self, values: list[Any], count: int) -> list[list[Any]]:
        """What `beside` made one of: ``count`` blocks again."""
        if count == 1:
            return [values]
        (joined,) = values
        parts = (range(index * self.lanes, (index + 1) * self.lanes) for index in range(count))
        return [[self.builder.shuffle_vector(joined, joined, _mask(part))] for part in parts]

    def load_beside(self, address: Any, count: int) -> list[Any]:
        """So many blocks that lie one behind the other, as `beside` holds them."""
        if count == 1:
            return self.load(address)
        kind = ir.VectorType(self.number, self.lanes * count)
        return [self.builder.load(self.builder.inttoptr(address, kind.as_pointer()), align=self.bytes)]

    def splat(self, number: float) -> ir.Constant:
        """A vector of one number in all places."""
        return ir.Constant(self.kind, [ir.Constant(self.number, number if self.is_float else int(number))] * self.lanes)

    def spread(self, number: Any) -> Any:
        """A vector of one whole number, known only at run time, in all places."""
        value = self.builder.sitofp(number, self.number) if self.is_float else self.builder.trunc(number, self.number)
        empty = ir.Constant(self.kind, ir.Undefined)
        first = self.builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None))

    def add(self, left: Any, right: Any) -> Any:
        """The sum of two vectors; int16 wraps around."""
        return self.builder.fadd(left, right) if self.is_float else self.builder.add(left, right)

    def subtract(self, left: Any, right: Any) -> Any:
        """The difference of two vectors."""
        return self.builder.fsub(left, right) if self.is_float else self.builder.sub(left, right)

    def reached(self, u: Any, theta: Any) -> Any:
        """Where u >= theta."""
        return (self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed)(">=", u, theta)

    def larger(self, left: Any, right: Any) -> Any:
        """The larger of two vectors of whole numbers, entry by entry."""
        return self.builder.select(self.builder.icmp_signed(">", left, right), left, right)

    def lanes_of(self, word: Any, index: int) -> Any:
        """The bits of a word that belong to vector ``index``, one a lane."""
        part = self.builder.lshr(word, ir.Constant(WORD, index * self.lanes))
        return self.builder.bitcast(
            self.builder.trunc(part, ir.IntType(self.lanes)), ir.VectorType(ir.IntType(1), self.lanes)
        )

    def bits_of(self, truth: Any, index: int) -> Any:
        """The word in which the lanes of vector ``index`` are bits."""
        bits = self.builder.zext(self.builder.bitcast(truth, ir.IntType(self.lanes)), WORD)
        return self.builder.shl(bits, ir.Constant(WORD, index * self.lanes))


def _mask(lanes: range) -> ir.Constant:
    """Which lanes of two vectors a shuffle takes, those of the second counted on."""
    kind = ir.IntType(32)
    return ir.Constant(ir.VectorType(kind, len(lanes)), [ir.Constant(kind, lane) for lane in lanes])


def shifted(builder: ir.IRBuilder, address: Any, offset: int) -> Any:
    """An address some bytes further on."""
    return builder.add(address, ir.Constant(WORD, offset))


def repeat(
    builder: ir.IRBuilder, count: Any, begun: Sequence[Any], body: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    """A loop of ``count`` rounds, at least one: ``body`` makes the values of a round from those of the one before.

    begun: the values before the first round; the result: those after the last.
    """
    before = builder.basic_block
    loop, done = builder.append_basic_block("round"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    left, values = builder.phi(WORD), [builder.phi(value.type) for value in begun]
    later = body(values)
    fewer = builder.sub(left, ir.Constant(WORD, 1))
    for value, first, next_one in ((left, count, fewer), *zip(values, begun, later, strict=True)):
        value.add_incoming(first, before)
        value.add_incoming(next_one, builder.basic_block)
    builder.cbranch(builder.icmp_unsigned("!=", fewer, ir.Constant(WORD, 0)), loop, done)
    builder.position_at_end(done)
    return later
