"""Random damage to bytes, texts and trees of lists and tables."""

import copy
import random
import struct
from collections.abc import Sequence
from typing import Any

# Values that readers trip over.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 2**31, -(2**31), 2**63, 2**70, 10**400),
    *(0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), float("-inf")),
    *("", " ", "0", "nan", "NA", "None", "true", "cat|dog", "|", "\x00", "\n", "é", "\ud800", "x" * 3000, "../.."),
    *([], {}, [[]], [None], [[0, 1], [1]], {"a": 1}, {"kind": 0}),
)
_NUMBERS = (0, 1, -1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_WORDS = (
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-1",
    "0",
    "",
    "''",
    '"',
    "true",
    "null",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "|",
    ";",
)
_WORDS += ("\x00", "\r", "\n", "\t", "\ufeff", "é", "9" * 400, "1e400", "0x10", "NA", "None", "1_0", "é" * 50)


def mutate_bytes(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage bytes in one to four places: flips, odd numbers, cuts, repeats, insertions and splices."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1)
        length = chance.choice((1, 1, 2, 4, 8, 16, 64))
        kind = chance.randrange(9)
        if kind < 2 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 2 and data:
            data[at % len(data)] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        elif kind == 3:
            number = chance.choice(_NUMBERS) & 0xFFFFFFFFFFFFFFFF
            order, form = chance.choice("<>"), chance.choice("BHIQ")
            piece = struct.pack(order + form, number & (2 ** (8 * struct.calcsize(form)) - 1))
            data[at : at + len(piece)] = piece
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length] * chance.choice((1, 1, 2, 100))
        elif kind == 6:
            data[at:at] = chance.randbytes(length)
        elif kind == 7 and others:
            other = chance.choice(others)
            start = chance.randrange(len(other) + 1)
            data[at:] = other[start:]
        else:
            del data[at:]
    return bytes(data)


def mutate_text(content: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage a text in one to three places: values, lines and separators; sometimes its bytes."""
    if chance.random() < 0.2:
        return mutate_bytes(content, chance, others)
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(chance.choice((1, 1, 2, 3))):
        at, kind = chance.randrange(len(lines)), chance.randrange(6)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, chance.choice(lines))
        elif kind == 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            line = lines[at]
            start = chance.randrange(len(line) + 1)
            end = min(len(line), start + chance.choice((0, 1, 1, 3, 8)))
            lines[at] = line[:start] + chance.choice(_WORDS) + line[end:]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def mutate_tree(tree: Any, chance: random.Random) -> Any:
    """Damage a tree of lists and tables in one to three places."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return chance.choice(ODD)
        holder, key = chance.choice(places)
        kind = chance.randrange(8)
        if kind < 3:
            holder[key] = copy.deepcopy(chance.choice(ODD))
        elif kind == 3:
            del holder[key]
        elif kind == 4:
            donor, name = chance.choice(places)
            holder[key] = copy.deepcopy(donor[name])
        elif kind == 5:
            holder[key] = [holder[key]]
        elif kind == 6 and isinstance(holder, dict):
            holder[chance.choice(("", "x", f"{key}s", "kind", "\x00"))] = holder.pop(key)
        elif isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * chance.choice((1, 2, 30))
        else:
            holder[key] = _nearby(holder[key], chance)
    return tree


def _places(tree: Any) -> Any:
    """Give every item of every list and table in a tree, as its holder and its key."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


def _nearby(value: Any, chance: random.Random) -> Any:
    """Return a value of the same type that is a little off."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice(
            (value + 1, value - 1, -value, value * 1000, float(value) if abs(value) < 1e300 else 0)
        )
    if isinstance(value, str):
        return chance.choice((value + "x", value[:-1], value.upper(), value * 2, f" {value}"))
    return chance.choice(ODD)
