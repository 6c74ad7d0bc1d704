"""How messages quote values, names and reasons: on one line, and short."""

import inspect
import reprlib
import warnings
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from os import PathLike, fspath
from typing import Any

_MOST = 160  # characters of a value
_ROOM = 150  # characters of a list of values
_COMPARED = 100  # characters of a name that are compared with others


class _Short(reprlib.Repr):
    """Quotes a value without writing out what is long in it or nested too deeply."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = most
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write integers of thousands of digits.
        return super().repr_int(x, level) if abs(x) < 10**400 else f"an integer of {x.bit_length()} bits"

    def repr_instance(self, x: Any, level: int) -> str:
        shape = getattr(x, "shape", ())
        if isinstance(shape, tuple) and shape:  # an array, tensor or frame
            return f"<{type(x).__name__} of shape {tuple(shape)}>"
        return super().repr_instance(getattr(x, "item", lambda: x)() if hasattr(x, "dtype") else x, level)


def shown(value: Any, most: int = _MOST) -> str:
    """Quote a value as Python writes it, a path as its text; the middle of a long one is left out.

    >>> print(shown("a"), shown(["x"] * 100), shown("z" * 100, most=10))
    'a' ['x', 'x', 'x', 'x', 'x', 'x', ...] 'zz...zzz'
    """
    return shortened(_Short(most).repr(fspath(value) if isinstance(value, PathLike) else value), most)


def listed(values: Iterable[Any], most: int = 10) -> str:
    """Quote the first of several values, as many as there is room for, and say how many there are.

    >>> listed(["b", "a"]), listed(range(30), most=3)
    ("'b', 'a'", '0, 1, 2, ... (30 in all)')
    """
    return join_first((shown(value, _ROOM // 3) for value in values), most)


def join_first(texts: Iterable[str], most: int = 10, room: int = _ROOM) -> str:
    """Join the first of several texts, as many as there is room for, and say how many there are."""
    every = list(texts)
    first = [text for number, text in enumerate(every[:most]) if len(", ".join(every[: number + 1])) <= room]
    first = first or [shortened(text, room) for text in every[:1]]
    return ", ".join(first) + (f", ... ({len(every)} in all)" if len(every) > len(first) else "")


def alternatives(name: str, names: Collection[str]) -> str:
    """Return the end of a message about an unknown name: the names close to it, or else all that there are."""
    close = close_names(name, names)
    quoted = " or ".join(shown(each, 50) for each in close)
    if close:
        return f"did you mean {quoted}?"
    return f"there are {every}" if (every := listed(names)) else "there is none"


def close_names(name: Any, names: Collection[str], most: int = 3) -> list[str]:
    """Return the names that somebody may have meant who wrote ``name``, the closest first."""
    return get_close_matches(name[:_COMPARED], list(names), n=most) if isinstance(name, str) else []


def reason(error: BaseException, most: int = _MOST) -> str:
    """Return what an error says, on one line and shortened; its type where it says nothing."""
    return shortened(str(error), most) or type(error).__name__


def shortened(text: str, most: int = _MOST) -> str:
    """Put a text on one line, without control characters; of a long one the middle is left out."""
    printable = (char if char.isprintable() else " " for char in text)
    line = " ".join("".join(printable).split())
    if len(line) <= most:
        return line
    head = (most - 3) // 2
    return f"{line[:head]}...{line[len(line) - (most - 3 - head) :]}"


def warn(message: str) -> None:
    """Warn of what is doubtful, naming the line that called the package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "oneof":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
