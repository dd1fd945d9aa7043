"""The inner operations of the event kernel, written as LLVM vector code for numba.

They work on a *block*: the membranes of up to 64 channels at one pixel, side by side in memory. Compiled from plain
loops, each addition would load and store its membrane; here a pixel's membranes stay in registers while the rows of
all its events are added. Addresses are plain integers: nothing is checked here, `kernel.py` answers for them.

The first arguments of each operation (element, channels ...) are constants known when it is compiled.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ftbc.vectors import NONE, WORD, Block, Code, registers, repeat, revision, shifted

REVISION = revision(sys.modules[__name__])
"""Of the vector code: a loop that closes over it is compiled anew when the code has changed."""


@intrinsic(prefer_literal=True)
def add_rows(
    _: Any, element: Any, channels: Any, columns: Any, rows: Any, v: Any, v_row: Any, w: Any, w_channel: Any, word: Any
) -> Any:
    """For each bit c of a word that is not 0, add the weights of channel c to ``rows x columns`` pixels.

    v: address of the first membrane block; v_row: bytes from one row of pixels to the next; w: address of the
    weights ``[channel][rows][columns][block]``; w_channel: bytes of one channel's weights.
    """
    signature = types.void(element, channels, columns, rows, v, v_row, w, w_channel, word)

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        v, v_row, w, w_channel, word = arguments[4:]
        code = Code(builder, element.literal_value, channels.literal_value * columns.literal_value)
        places = _rows_below(builder, v, v_row, rows.literal_value)
        membranes = [value for place in places for value in code.load(place)]
        sums = _with_events(code, membranes, word, w, w_channel)
        for index, place in enumerate(places):
            code.store(sums[index * code.vectors : (index + 1) * code.vectors], place)
        return NONE

    return signature, generate


@intrinsic(prefer_literal=True)
def add_counted_rows(
    _: Any, element: Any, channels: Any, columns: Any, rows: Any, v: Any, v_row: Any, w: Any, w_channel: Any,
    bits: Any, words: Any, digit: Any, digits: Any,
) -> Any:  # fmt: skip
    """As `add_rows`, of channels that count as often as binary digits say; ``bits`` are the channels that have weights.

    words: address of the word of lowest digits; digit: bytes from there to the next higher ones; digits: their number.
    Beginning with the highest, what was added so far is doubled for each further digit.
    """
    signature = types.void(element, channels, columns, rows, v, v_row, w, w_channel, bits, words, digit, digits)

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        v, v_row, w, w_channel, bits, words, digit, digits = arguments[4:]
        code = Code(builder, element.literal_value, channels.literal_value * columns.literal_value)
        places = _rows_below(builder, v, v_row, rows.literal_value)
        count = len(places) * code.vectors

        before = builder.basic_block
        loop, busy, counted = (builder.append_basic_block(name) for name in ("digits", "busy", "counted"))
        done = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        left = builder.phi(WORD)
        so_far = [builder.phi(code.kind) for _ in range(count)]
        doubled = [code.add(value, value) for value in so_far]
        fewer = builder.sub(left, ir.Constant(WORD, 1))
        address = builder.add(words, builder.mul(fewer, digit))
        word = builder.and_(builder.load(builder.inttoptr(address, WORD.as_pointer()), align=8), bits)
        builder.cbranch(builder.icmp_unsigned("!=", word, ir.Constant(WORD, 0)), busy, counted)
        builder.position_at_end(busy)
        added = _with_events(code, doubled, word, w, w_channel)
        after = builder.basic_block
        builder.branch(counted)
        builder.position_at_end(counted)
        sums = [builder.phi(code.kind) for _ in range(count)]
        for total, same, more in zip(sums, doubled, added, strict=True):
            total.add_incoming(same, loop)
            total.add_incoming(more, after)
        left.add_incoming(digits, before)
        left.add_incoming(fewer, counted)
        for value, total in zip(so_far, sums, strict=True):
            value.add_incoming(code.splat(0), before)
            value.add_incoming(total, counted)
        builder.cbranch(builder.icmp_unsigned("!=", fewer, ir.Constant(WORD, 0)), loop, done)
        builder.position_at_end(done)
        for index, place in enumerate(places):
            part = sums[index * code.vectors : (index + 1) * code.vectors]
            code.store([code.add(*pair) for pair in zip(code.load(place), part, strict=True)], place)
        return NONE

    return signature, generate


def _rows_below(builder: ir.IRBuilder, first: Any, row: Any, count: int) -> list[Any]:
    """Addresses of so many rows of pixels."""
    places = [first]
    for _ in range(count - 1):
        places.append(builder.add(places[-1], row))
    return places


def _with_events(code: Code, begun: list[Any], word: Any, w: Any, w_channel: Any) -> list[Any]:
    """Vectors with the weights of each bit of a word added that is not 0: a loop over its bits."""
    builder = code.builder
    before = builder.basic_block
    loop, done = builder.append_basic_block("events"), builder.append_basic_block("added")
    builder.branch(loop)
    builder.position_at_end(loop)
    left = builder.phi(WORD)
    sums = [builder.phi(code.kind) for _ in begun]
    channel = builder.cttz(left, ir.Constant(ir.IntType(1), 1))
    weights = code.load(builder.add(w, builder.mul(channel, w_channel)), len(sums))
    rest = builder.and_(left, builder.sub(left, ir.Constant(WORD, 1)))
    later = [code.add(total, weight) for total, weight in zip(sums, weights, strict=True)]
    for value, first, next_one in ((left, word, rest), *zip(sums, begun, later, strict=True)):
        value.add_incoming(first, before)
        value.add_incoming(next_one, loop)
    builder.cbranch(builder.icmp_unsigned("!=", rest, ir.Constant(WORD, 0)), loop, done)
    builder.position_at_end(done)
    return later


@intrinsic(prefer_literal=True)
def add_sums(
    _: Any, element: Any, channels: Any, columns: Any, rows: Any, groups: Any, bits: Any, v: Any, v_row: Any,
    sums: Any, words: Any, column: Any, count: Any,
) -> Any:  # fmt: skip
    """As `add_rows` for ``count`` pixels of one row, from a table: the sums of every choice among some channels.

    words: address of the first pixel's word; column: bytes from there to the next one's; sums: address of
    ``[groups][2^bits][entry]``, for the lowest ``bits`` channels, for the next ones, and so on (`in_stacks`). No
    branch depends on the words: with many events that is faster than one event after another, whose number nobody
    can predict. Membranes that the next pixel reaches, too, stay in registers.
    """
    signature = types.void(element, channels, columns, rows, groups, bits, v, v_row, sums, words, column, count)

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        v, v_row, sums, words, column, count = arguments[6:]
        across, down, width = columns.literal_value, rows.literal_value, bits.literal_value
        code = Code(builder, element.literal_value, channels.literal_value)
        size, entry = code.block.size, _entry_size(code.block, down, across)
        places = _rows_below(builder, v, v_row, down)
        stacks = [[places[row] for row in rows_of] for rows_of in _stacks(code.block, down)]

        def column_of(stack: list[Any], offset: Any) -> list[Any]:
            """The membranes of one column in a stack of rows."""
            return code.beside([code.load(builder.add(place, offset)) for place in stack])

        def write(values: list[Any], stack: list[Any], offset: Any) -> None:
            for part, place in zip(code.apart(values, len(stack)), stack, strict=True):
                code.store(part, builder.add(place, offset))

        def pixel(values: list[Any]) -> list[Any]:
            word_at, offset, *kept = values
            totals, held = [], iter(kept)
            for stack in stacks:
                last = column_of(stack, shifted(builder, offset, (across - 1) * size))
                totals.append([*([next(held) for _ in last] for _ in range(across - 1)), last])
            word = builder.load(builder.inttoptr(word_at, WORD.as_pointer()), align=8)
            for group in range(groups.literal_value):
                chosen = builder.and_(
                    builder.lshr(word, ir.Constant(WORD, width * group)), ir.Constant(WORD, (1 << width) - 1)
                )
                at = builder.add(sums, builder.mul(chosen, ir.Constant(WORD, entry)))
                at = shifted(builder, at, (group << width) * entry)
                for stack, values_of in zip(stacks, totals, strict=True):
                    for values in values_of:
                        weights = code.load_beside(at, len(stack))
                        values[:] = [code.add(*pair) for pair in zip(values, weights, strict=True)]
                        at = shifted(builder, at, len(stack) * size)
            for stack, values_of in zip(stacks, totals, strict=True):
                write(values_of[0], stack, offset)
            later = [value for values_of in totals for values in values_of[1:] for value in values]
            return [builder.add(word_at, column), shifted(builder, offset, size), *later]

        nowhere = ir.Constant(WORD, 0)
        first = [
            value
            for stack in stacks
            for index in range(across - 1)
            for value in column_of(stack, shifted(builder, nowhere, index * size))
        ]
        _, offset, *kept = repeat(builder, count, [words, nowhere, *first], pixel)
        held = iter(kept)
        for stack in stacks:
            wide = len(column_of(stack, offset))
            for index in range(across - 1):
                write([next(held) for _ in range(wide)], stack, shifted(builder, offset, index * size))
        return NONE

    return signature, generate


def in_stacks(sums: np.ndarray, block: Block) -> np.ndarray:
    """A table ``[groups][2^bits][rows][columns][block]`` as `add_sums` reads it: ``[groups][2^bits][entry]``.

    Where a register holds the blocks of two rows, it holds those of one column, one row below the other.
    """
    rows, columns = sums.shape[2:4]
    parts = [sums[:, :, list(stack)].swapaxes(2, 3).reshape(*sums.shape[:2], -1) for stack in _stacks(block, rows)]
    numbers = _entry_size(block, rows, columns) * block.channels // block.size
    entries = np.zeros((*sums.shape[:2], numbers))
    entries[:, :, : rows * columns * block.channels] = np.concatenate(parts, -1)
    return entries


def _stacks(block: Block, rows: int) -> list[range]:
    """Rows of pixels, as many together as have room in one register."""
    high = max(1, registers()[0] // block.size)
    return [range(first, min(first + high, rows)) for first in range(0, rows, high)]


def _entry_size(block: Block, rows: int, columns: int) -> int:
    """Bytes from one entry of a table to the next: no vector of a large one lies across two cache lines."""
    size = rows * columns * block.size
    return size if size < 64 else -(-size // 64) * 64


@intrinsic(prefer_literal=True)
def add_where(
    _: Any, element: Any, channels: Any, columns: Any, rows: Any, v: Any, w: Any, words: Any, column: Any, row: Any
) -> Any:
    """Add weights to one block of membranes wherever spikes stand at ``rows x columns`` pixels, channel by channel.

    w: address of the weights ``[rows][columns][block]``; words: address of the first pixel's word; column, row: bytes
    from one pixel's word to the next, and to that of the next row.
    """
    signature = types.void(element, channels, columns, rows, v, w, words, column, row)

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        v, w, words, column, row = arguments[4:]
        code = Code(builder, element.literal_value, channels.literal_value)
        sums, nothing = code.load(v), code.splat(0)
        for tap in range(rows.literal_value * columns.literal_value):
            if tap % columns.literal_value == 0:
                place = words if tap == 0 else builder.add(words, row)
                words = place
            word = builder.load(builder.inttoptr(place, WORD.as_pointer()), align=8)
            for index, weight in enumerate(code.load(shifted(builder, w, tap * code.block.size))):
                sums[index] = code.add(sums[index], builder.select(code.lanes_of(word, index), weight, nothing))
            place = builder.add(place, column)
        code.store(sums, v)
        return NONE

    return signature, generate


@intrinsic(prefer_literal=True)
def copy_block(_: Any, element: Any, channels: Any, v: Any, x: Any) -> Any:
    """Write a block of numbers over a block of membranes."""

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        v, x = arguments[2:]
        code = Code(builder, element.literal_value, channels.literal_value)
        code.store(code.load(x), v)
        return NONE

    return types.void(element, channels, v, x), generate


@intrinsic(prefer_literal=True)
def fire(
    _: Any, element: Any, channels: Any, together: Any, has_current: Any, threshold: Any, v: Any, x: Any, x_group: Any,
    b: Any, peak: Any, sent: Any, pixel: Any, count: Any,
) -> Any:  # fmt: skip
    """Add current and bias to ``count`` groups of membranes, fire, reset softly; write a word for each pixel with a bit
    for each of its channels that fired.

    together: membranes of a group, up to 64: those of one pixel or of several; x: address of the first group's current,
    if it has any; x_group: bytes from there to the next group's. b: address of the bias, peak: of the largest sizes of
    what was left so far (int16 only), a number for each membrane of a group; sent: address of the first pixel's word;
    pixel: bytes from there to the next pixel's.
    """
    signature = types.void(
        element, channels, together, has_current, types.int64, v, x, x_group, b, peak, sent, pixel, count
    )

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        threshold, v, x, x_group, b, peak, sent, pixel, count = arguments[4:]
        width = channels.literal_value
        code = Code(builder, element.literal_value, together.literal_value)
        theta, nothing = code.spread(threshold), code.splat(0)
        # Bias and peaks stay in registers: a peak that went through memory would hold up the next group.
        biases, begun = code.load(b), [] if code.is_float else code.load(peak)

        def group(values: list[Any]) -> list[Any]:
            v_at, x_at, sent_at, *peaks = values
            membranes = code.load(v_at)
            if has_current.literal_value:
                membranes = [code.add(*pair) for pair in zip(membranes, code.load(x_at), strict=True)]
            word, rest = ir.Constant(WORD, 0), []
            for index, (membrane, bias) in enumerate(zip(membranes, biases, strict=True)):
                u = code.add(membrane, bias)
                fired = code.reached(u, theta)
                rest.append(code.subtract(u, builder.select(fired, theta, nothing)))
                word = builder.or_(word, code.bits_of(fired, index))
            code.store(rest, v_at)
            # u or its complement: for negative u one less than its size, which always fits into the type.
            sizes = [] if code.is_float else [code.larger(u, builder.not_(u)) for u in rest]
            larger = [code.larger(*pair) for pair in zip(sizes, peaks, strict=True)]
            place = sent_at
            for _pixel in range(together.literal_value // width):
                bits = word if width == 64 else builder.and_(word, ir.Constant(WORD, (1 << width) - 1))
                builder.store(bits, builder.inttoptr(place, WORD.as_pointer()), align=8)
                place = builder.add(place, pixel)
                word = word if width == 64 else builder.lshr(word, ir.Constant(WORD, width))
            return [shifted(builder, v_at, code.block.size), builder.add(x_at, x_group), place, *larger]

        _, _, _, *larger = repeat(builder, count, [v, x, sent, *begun], group)
        code.store(larger, peak)
        return NONE

    return signature, generate


@intrinsic(prefer_literal=True)
def count_reached(
    _: Any, element: Any, channels: Any, has_current: Any, threshold: Any, v: Any, x: Any, x_pixel: Any, b: Any,
    counts: Any, count: Any,
) -> Any:  # fmt: skip
    """Add 1 to the number of each channel for each of ``count`` pixels at which `fire` would let it fire.

    All as for `fire`; counts: address of a block of numbers. Membranes stay as they are.
    """
    signature = types.void(element, channels, has_current, types.int64, v, x, x_pixel, b, counts, count)

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        threshold, v, x, x_pixel, b, counts, count = arguments[3:]
        code = Code(builder, element.literal_value, channels.literal_value)
        theta, one, nothing = code.spread(threshold), code.splat(1), code.splat(0)
        biases = code.load(b)

        def pixel(values: list[Any]) -> list[Any]:
            v_at, x_at, *totals = values
            membranes = code.load(v_at)
            if has_current.literal_value:
                membranes = [code.add(*pair) for pair in zip(membranes, code.load(x_at), strict=True)]
            fired = [
                builder.select(code.reached(code.add(membrane, bias), theta), one, nothing)
                for membrane, bias in zip(membranes, biases, strict=True)
            ]
            later = [code.add(*pair) for pair in zip(totals, fired, strict=True)]
            return [shifted(builder, v_at, code.block.size), builder.add(x_at, x_pixel), *later]

        _, _, *totals = repeat(builder, count, [v, x, *code.load(counts)], pixel)
        code.store(totals, counts)
        return NONE

    return signature, generate


@intrinsic(prefer_literal=True)
def put_spikes(_: Any, element: Any, channels: Any, address: Any, word: Any) -> Any:
    """Write 1 for each bit of a word that is set and 0 for each that is not, a block of them."""

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        address, word = arguments[2:]
        code = Code(builder, element.literal_value, channels.literal_value)
        one, nothing = code.splat(1), code.splat(0)
        spikes = [builder.select(code.lanes_of(word, index), one, nothing) for index in range(code.vectors)]
        code.store(spikes, address)
        return NONE

    return types.void(element, channels, address, word), generate


@intrinsic(prefer_literal=True)
def bits_at(_: Any, element: Any, channels: Any, address: Any) -> Any:
    """A word with a bit for each number of a block that is 1 or more."""

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        code = Code(builder, element.literal_value, channels.literal_value)
        word, one = ir.Constant(WORD, 0), code.splat(1)
        for index, values in enumerate(code.load(arguments[2])):
            word = builder.or_(word, code.bits_of(code.reached(values, one), index))
        return word

    return types.uint64(element, channels, address), generate


@intrinsic
def word_at(_: Any, address: Any) -> Any:
    """The word at an address."""

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], WORD.as_pointer()), align=8)

    return types.uint64(address), generate


@intrinsic
def half_word_at(_: Any, address: Any) -> Any:
    """The 32 bits at an address."""

    def generate(_: Any, builder: ir.IRBuilder, __: Any, arguments: Any) -> Any:
        half = ir.IntType(32)
        return builder.zext(builder.load(builder.inttoptr(arguments[0], half.as_pointer()), align=4), WORD)

    return types.uint64(address), generate
