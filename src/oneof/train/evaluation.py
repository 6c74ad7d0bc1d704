"""One function evaluates a model: after every epoch, and when it predicts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from oneof.train.batch import Data
from oneof.train.method import Method
from oneof.train.rows import HostRows, images_at_once
from oneof.train.runtime import eager, evaluating

_R = TypeVar("_R")
ROWS_AT_ONCE = 4096
_CELLS_AT_ONCE = 2**18  # of results: 1 MB in float32; IDGP has some twenty such arrays at a time
_FEWEST_ROWS = 16  # whatever the number of classes, since weights are read once for each block


def most_rows(n_classes: int, usual: int = ROWS_AT_ONCE) -> int:
    """Return how many rows are evaluated at once: as ``usual``, or fewer where there are many classes."""
    return min(usual, max(_FEWEST_ROWS, _CELLS_AT_ONCE // n_classes))


def block_size(data: Data, rows: Tensor | HostRows) -> int:
    """Return how many rows (..., M, *shape), stored as the data are, are evaluated at once."""
    return most_rows(data.n_classes, images_at_once(rows.shape[data.weight.dim() :], ROWS_AT_ONCE))


def map_blocks(method: Method, function: Callable[..., _R], blocks: Iterable[Sequence[Any]]) -> list[_R]:
    """Return what a function gives for each block, in evaluation mode."""
    with evaluating(method.modules()), eager(method.compile):
        return [function(*block) for block in blocks]


def evaluate(method: Method, function: Callable[..., Tensor], blocks: Iterable[Sequence[Tensor]]) -> Tensor:
    """Apply a function to blocks of rows (..., B, *shape), in evaluation mode; join its results (..., M, C)."""
    parts = map_blocks(method, function, blocks)
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def class_probabilities(method: Method, data: Data, rows: Tensor | HostRows) -> Tensor:
    """Return the class probabilities (..., M, K) of rows (..., M, *shape) that are stored as the data are."""
    size = block_size(data, rows)
    blocks: Iterable[Tensor]
    if isinstance(rows, HostRows):
        blocks = (rows[begin : begin + size] for begin in range(0, len(rows), size))
    else:
        blocks = torch.split(rows, size, data.weight.dim() - 1)
    loaded = ((data.scaler.load(block, data.dtype),) for block in blocks)
    return evaluate(method, method.class_scores, loaded).softmax(-1)


def probability_blocks(
    method: Method, data: Data, rows: Tensor | HostRows, function: Callable[[slice, Tensor], _R]
) -> list[_R]:
    """Return what a function gives for the class probabilities (B, K) of each block of rows, by its place."""
    size = block_size(data, rows)

    def block(begin: int) -> _R:
        place = slice(begin, begin + size)
        return function(place, method.class_scores(data.scaler.load(rows[place], data.dtype)).softmax(-1))

    return map_blocks(method, block, ((begin,) for begin in range(0, len(rows), size)))
