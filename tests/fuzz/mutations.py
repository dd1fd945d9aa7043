"""Damage: real files, changed in a few places as accidents and attackers change them."""

from __future__ import annotations

import random
import re

_NUMBERS = (b"0", b"-1", b"1e999", b"-0.0", b"NaN", b"4294967296", b"99999999999999999999", b"true", b"null", b'""',
            b"[]", b"{}", b"[[[[]]]]", b'"\\u0000"', b"1979-05-27", b"0x7fffffff", b"1.5")  # fmt: skip
_WORD = re.compile(rb"[A-Za-z0-9_.\-]+")
_SIZES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40)


def damaged(whole: list[bytes], chance: random.Random) -> bytes:
    """One of the files with one to four changes; once in a while, two of them joined."""
    content = chance.choice(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        content = chance.choice(_CHANGES)(content, whole, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    """Anywhere, but half of the time near the beginning or the end, where headers and tables of contents are."""
    if not content:
        return 0
    near = min(len(content), 400)
    where = chance.random()
    if where < 0.3:
        return chance.randrange(near)
    return len(content) - 1 - chance.randrange(near) if where < 0.5 else chance.randrange(len(content))


def _flip(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    if not content:
        return content
    place = _place(content, chance)
    return content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]


def _write(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    place, new = _place(content, chance), chance.randbytes(chance.randint(1, 8))
    return content[:place] + new + content[place + len(new) :]


def _number(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    """A size or an offset in binary."""
    place, width = _place(content, chance), chance.choice((1, 2, 4, 8))
    value = chance.choice(_SIZES) % (1 << 8 * width)
    return content[:place] + value.to_bytes(width, chance.choice(("little", "big"))) + content[place + width :]


def _cut(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _drop(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + content[place + chance.randint(1, 40) :]


def _repeat(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    place = _place(content, chance)
    part = content[place : place + chance.randint(1, 60)]
    return content[:place] + part * chance.choice((2, 3, 50)) + content[place:]


def _splice(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(whole)
    return content[: _place(content, chance)] + other[_place(other, chance) :]


def _word(content: bytes, whole: list[bytes], chance: random.Random) -> bytes:
    """A word or number of a text, or of the text inside a binary file, for another."""
    begin = _place(content, chance)
    found = _WORD.search(content, begin)
    if found is None:
        return content
    other = _WORD.search(content, _place(content, chance))
    new = chance.choice((*_NUMBERS, other.group() if other else b"x", found.group() * 2))
    if chance.random() < 0.5:  # of the same length, so that what follows stays where it is
        new = (new + b" " * len(found.group()))[: len(found.group())]
    return content[: found.start()] + new + content[found.end() :]


_CHANGES = (_flip, _flip, _write, _number, _cut, _drop, _repeat, _splice, _word, _word, _word)
