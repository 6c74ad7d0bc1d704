"""One function evaluates a model: after every epoch, and when it predicts."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from oneof.train.batch import Data
from oneof.train.method import Method
from oneof.train.runtime import eager, evaluating

ROWS_AT_ONCE = 4096


def evaluate(method: Method, function: Callable[..., Tensor], blocks: Iterable[Sequence[Tensor]]) -> Tensor:
    """Apply a function to blocks of rows (..., B, *shape), in evaluation mode; join its results (..., M, C)."""
    with evaluating(method.modules()), eager(method.compile):
        parts = [function(*block) for block in blocks]
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


def class_probabilities(method: Method, data: Data, rows: Tensor) -> Tensor:
    """Return the class probabilities (..., M, K) of rows (..., M, *shape) that are stored as the data are."""
    blocks = torch.split(rows, ROWS_AT_ONCE, data.candidates.dim() - 2)
    loaded = ((data.scaler.load(block, data.dtype),) for block in blocks)
    return evaluate(method, method.class_scores, loaded).softmax(-1)
