"""Import paths of earlier versions: they work until 0.3, with a warning."""

import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def moved(old: str, new: str, names: Iterable[str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of the module ``old``, whose ``names`` are now those of the module ``new``."""
    names = frozenset(names)

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warnings.warn(
            f"{old} will be removed in oneof 0.3; write: from {new} import {name}",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(new), name)

    return find
