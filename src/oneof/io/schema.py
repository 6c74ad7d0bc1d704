"""Whether a value that was read from a file is of a type: TypedDict, dict, list, union, literal or plain type."""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from oneof.io.words import shortened, shown

_SHOWN = 100  # characters of a value, or of its place, in a message
_LARGEST = 2**53  # a whole number that any reader of JSON takes exactly
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
_hints = cache(get_type_hints)  # which takes longer than all checks of a value


def json_misfit(value: Any, kind: Any) -> str | None:
    """Say what keeps a value from being of a type, with numbers that JSON holds; None where nothing does."""
    return next(misfits(value, kind, finite=True), None)


def misfits(value: Any, kind: Any, place: str = "", finite: bool = False) -> Iterator[str]:
    """Say what keeps a value from being of a type, one sentence for each part that does not fit.

    Names beyond the type are allowed. With ``finite``, numbers must be finite and whole numbers exact in JSON.
    """
    where = shortened(place, _SHOWN) or "it"
    if not _is_of(value, kind, finite):
        yield f"{where} is {shown(value, _SHOWN)}, but must be {_in_words(kind)}"
        return
    if get_origin(kind) is UnionType:
        kind = next(part for part in get_args(kind) if _is_of(value, part, finite))
    if is_typeddict(kind):
        for name, part in _hints(kind).items():
            if name in value:
                yield from misfits(value[name], part, f"{place}.{name}".lstrip("."), finite)
            elif name in kind.__required_keys__:
                yield f"{where} has no {name!r}"
    elif get_origin(kind) is dict:
        for name, item in value.items():
            yield from misfits(item, get_args(kind)[1], f"{place}.{shown(name)[1:-1]}".lstrip("."), finite)
    elif get_origin(kind) is list:
        for i, item in enumerate(value):
            yield from misfits(item, get_args(kind)[0], f"{place}[{i}]", finite)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a large int
        return False


def _is_of(value: Any, kind: Any, finite: bool) -> bool:
    """Compare the value itself; of containers not what they hold."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin is UnionType:
        return any(_is_of(value, part, finite) for part in parts)
    if isinstance(value, bool):
        return origin is bool
    if origin is dict or is_typeddict(origin):
        return isinstance(value, Mapping)
    if origin is float:
        return is_number(value) if finite else isinstance(value, int | float)
    return isinstance(value, origin) and not (finite and origin is int and abs(value) > _LARGEST)


def _in_words(kind: Any) -> str:
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Literal, UnionType):
        return " or ".join(map(_in_words if origin is UnionType else repr, parts))
    return _WORDS.get(origin, "a list" if origin is list else "a table")


def has_half_characters(content: Any) -> bool:
    """Tell whether texts in JSON that was read hold half of a character (a lone surrogate), which no file can."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
