"""Docstrings in the form of numpydoc whose sections are made from the fields of a class."""

import re
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from inspect import cleandoc, get_annotations
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_WIDTH = 100
_INDENT = " " * 4


def class_docstring(cls: type, own: str | None) -> str:
    """Return the docstring ``own`` of a dataclass with all its parameters, and with inherited attributes.

    A docstring that lists its parameters itself stays as it is.
    """
    head, sections = _sections(own or f"{cls.__name__}.")
    if "Parameters" in sections:
        return cleandoc(own or "")
    attributes = _attributes(cls, sections.pop("Attributes", ""))
    made = {"Parameters": "\n".join(_parameter(each) for each in _own_first(cls)), "Attributes": attributes}
    texts = (f"{title}\n{'-' * len(title)}\n{body}" for title, body in (made | sections).items() if body)
    return "\n\n".join([head, *texts]) + "\n"


def _sections(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into what comes before the first section, and the sections by their titles."""
    head, *rest = (part.strip() for part in _TITLE.split(cleandoc(docstring) + "\n"))
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


def _attributes(cls: type, own: str) -> str:
    """Return the entries of a section of attributes, and those of base classes that it does not have."""
    entries: dict[str, str] = {}
    inherited = (_sections(base.__doc__ or "")[1] for base in cls.__mro__[1:] if is_dataclass(base))
    for section in (own, *(sections.get("Attributes", "") for sections in inherited)):
        for entry in re.split(r"\n(?=\S)", section) if section else []:
            entries.setdefault(entry.partition(" :")[0], entry)
    return "\n".join(entries.values())


def _own_first(cls: type) -> Iterator[Field[Any]]:
    """Yield the fields of a class, then those of its base classes."""
    known = {each.name: each for each in fields(cls)}
    for each in cls.__mro__:
        for name in get_annotations(each):
            if name in known:
                yield known.pop(name)


def _parameter(parameter: Field[Any]) -> str:
    """Return the entry of a field: its type, default, meaning and what it accepts."""
    expected = parameter.metadata.get("expected")
    texts = [parameter.metadata.get("doc", ""), f"Must be {expected}." if expected else ""]
    meaning = " ".join(filter(None, texts))
    entry = f"{parameter.name} : {_type_name(parameter.type)}, default={parameter.default!r}"
    if not meaning:
        return entry
    lines = fill(
        meaning,
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{entry}\n{lines}"


def _type_name(annotation: Any) -> str:
    """Write a type as numpydoc does: ``float or None``, ``str or callable``."""
    if annotation is None or annotation is NoneType:
        return "None"
    if isinstance(annotation, str):
        return annotation.replace(" | ", " or ")
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        *others, last = map(_type_name, get_args(annotation))
        return f"{', '.join(others)} or {last}"
    if origin is Callable:
        return "callable"
    return str(getattr(origin or annotation, "__name__", annotation))
