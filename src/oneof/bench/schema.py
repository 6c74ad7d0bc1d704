"""Checks what a JSON file holds against a type: TypedDict, dict, list, union, literal or a plain type."""

import math
import reprlib
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

__all__ = ["is_number", "misfit", "shown"]

_SHOWN = 100  # characters of a value, or of its place, in a message
_LARGEST = 2**53  # a whole number that any reader of JSON takes exactly
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}

_hints = cache(get_type_hints)  # which takes longer than all checks of a record
_short = reprlib.Repr()  # does not fail on a value that is nested deeply, as repr does
_short.maxstring = _short.maxother = _short.maxlong = _SHOWN


def misfit(value: Any, kind: Any) -> str | None:
    """Say what keeps a value from being of a type; None where nothing does. Names beyond the type are allowed."""
    return next(_misfits(value, kind, ""), None)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a large int
        return False


def shown(value: Any) -> str:
    """Write a value in a message, short."""
    return _short.repr(value)[:_SHOWN]


def _misfits(value: Any, kind: Any, place: str) -> Iterator[str]:
    if not _is_of(value, kind):
        yield f"{place[:_SHOWN] or 'it'} is {shown(value)}, but must be {_in_words(kind)}"
    elif is_typeddict(kind):
        for name, part in _hints(kind).items():
            if name in value:
                yield from _misfits(value[name], part, f"{place}.{name}".lstrip("."))
            elif name in kind.__required_keys__:
                yield f"{place[:_SHOWN] or 'it'} has no {name!r}"
    elif get_origin(kind) is dict:
        for name, item in value.items():
            yield from _misfits(item, get_args(kind)[1], f"{place}.{name}")
    elif get_origin(kind) is list:
        for i, item in enumerate(value):
            yield from _misfits(item, get_args(kind)[0], f"{place}[{i}]")


def _is_of(value: Any, kind: Any) -> bool:
    """Compare the value itself; of containers not what they hold."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin is UnionType:
        return any(_is_of(value, part) for part in parts)
    if isinstance(value, bool):
        return origin is bool
    if origin is dict or is_typeddict(origin):
        return isinstance(value, Mapping)
    if origin is float:
        return is_number(value)
    return isinstance(value, origin) and (origin is not int or abs(value) <= _LARGEST)


def _in_words(kind: Any) -> str:
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Literal, UnionType):
        return " or ".join(map(_in_words if origin is UnionType else repr, parts))
    return _WORDS.get(origin, "a list" if origin is list else "a table")
