"""Whether a value that was read from a file is of a type: TypedDict, dict, list, union, literal or plain type."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

_SHOWN = 100  # characters of a value in a message
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
_hints = cache(get_type_hints)  # which takes longer than all checks of a value


def shown(value: Any) -> str:
    """Return a value as a message shows it: its repr on one line, which is cut where it is long."""
    try:
        text = " ".join(repr(value).split()) if not isinstance(value, str) else repr(value)
    except ValueError:  # Python writes no whole number of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def misfits(value: Any, kind: Any, place: str = "") -> Iterator[str]:
    """Say what keeps a value from being of a type, one sentence for each part that does not fit."""
    if not _is_of(value, kind):
        yield f"{place or 'it'} is {shown(value)}, but must be {_in_words(kind)}"
        return
    if get_origin(kind) is UnionType:
        kind = next(part for part in get_args(kind) if _is_of(value, part))
    if is_typeddict(kind):
        for name, part in _hints(kind).items():
            if name in value:
                yield from misfits(value[name], part, f"{place}.{name}".lstrip("."))
            elif name in kind.__required_keys__:
                yield f"{place or 'it'} has no {name!r}"
    elif get_origin(kind) is dict:
        for name, item in value.items():
            yield from misfits(item, get_args(kind)[1], f"{place}.{shown(name)[1:-1]}".lstrip("."))
    elif get_origin(kind) is list:
        for i, item in enumerate(value):
            yield from misfits(item, get_args(kind)[0], f"{place}[{i}]")


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
    return isinstance(value, int | float if origin is float else origin)


def _in_words(kind: Any) -> str:
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Literal, UnionType):
        return " or ".join(map(_in_words if origin is UnionType else repr, parts))
    return _WORDS.get(origin, "a list" if origin is list else "a table")
