"""Random numbers for the rows of a batch. Of a part of a batch they are those that the whole would have drawn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor


class _Part(NamedTuple):
    places: Tensor  # (B,), of the rows in the whole batch
    size: int  # of the whole
    copies: int = 1  # of the rows, which stand below each other


_part: ContextVar[_Part | None] = ContextVar("part", default=None)


@contextmanager
def for_part(places: Tensor, size: int) -> Iterator[None]:
    """Let batches inside the block be the rows at these places (B,) of a batch of so many rows."""
    token = _part.set(_Part(places, size))
    try:
        yield
    finally:
        _part.reset(token)


@contextmanager
def for_copies(copies: int) -> Iterator[None]:
    """Let batches inside the block hold their rows so many times, below each other."""
    part = _part.get()
    token = _part.set(None if part is None else part._replace(copies=copies))
    try:
        yield
    finally:
        _part.reset(token)


def rand(x: Tensor, *shape: int) -> Tensor:
    """Draw numbers (B, *shape) in [0, 1) for the rows of x."""
    return _own(x, lambda rows: torch.rand(rows, *shape, device=x.device))


def randint(x: Tensor, low: int, high: int, *shape: int) -> Tensor:
    """Draw whole numbers (B, *shape) from low to high - 1 for the rows of x."""
    return _own(x, lambda rows: torch.randint(low, high, (rows, *shape), device=x.device))


def randn_like(x: Tensor) -> Tensor:
    """Draw normal numbers for all values of x."""
    if _part.get() is None:
        return torch.randn_like(x)
    form = torch.contiguous_format if x.is_contiguous() else torch.channels_last
    return _own(x, lambda rows: torch.randn_like(x.new_empty(rows, *x.shape[1:]).to(memory_format=form)))


def _own(x: Tensor, draw: Callable[[int], Tensor]) -> Tensor:
    """Draw for the whole batch, and return what is drawn for the rows of x."""
    part = _part.get()
    if part is None:
        return draw(len(x))
    whole = draw(part.size * part.copies)
    firsts = part.size * torch.arange(part.copies, device=x.device)
    return whole[(firsts.unsqueeze(1) + part.places).flatten()]
