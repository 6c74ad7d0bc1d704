"""Faster ways: what `oneof.kernels` offers in place of portable code.

Portable code asks for a faster way by name and does the work itself where there is none. The kernels register
themselves when a tensor on a GPU is first asked about; without their folder everything still works, slower.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

_offers: dict[str, Callable[..., Any]] = {}


def faster(name: str, x: Tensor, *details: Any) -> Any:
    """Return what does the work of ``name`` faster on tensors like x, None where nothing does."""
    if torch.compiler.is_compiling():
        return None  # the compiler has its own way
    if x.is_cuda:
        _load()
    find = _offers.get(name)
    return None if find is None else find(x, *details)


def offer(name: str, find: Callable[..., Any]) -> None:
    """Register ``find(x, *details)``, which returns a faster way for x, or None."""
    _offers[name] = find


@cache
def _load() -> None:
    if find_spec("oneof.kernels") is not None:
        import_module("oneof.kernels")
