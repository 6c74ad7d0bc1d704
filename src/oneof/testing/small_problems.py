"""Small problems, and batches whose random draws are their own mean: what the checks of a method are made with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.train.batch import Batch, Data, Epoch
from oneof.train.parallel.stacked_layers import StackedBatch
from oneof.train.rows import Scaler
from oneof.train.runtime import seeded

Make = Callable[..., PartialLabelClassifier]  # a method, or one with some settings


def make_data(
    rows: int = 12,
    features: int = 4,
    classes: int = 5,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    scale: float = 1.0,
) -> Data:
    """Make random rows and candidate sets as training holds them."""
    rng = np.random.default_rng(seed)
    x = scale * rng.normal(size=(rows, features))
    candidates = rng.random((rows, classes)) < 0.4
    candidates[np.arange(rows), rng.integers(classes, size=rows)] = True
    scaler = Scaler(torch.zeros(features, dtype=torch.float64), torch.ones(features, dtype=torch.float64))
    return Data(
        torch.as_tensor(x, dtype=dtype), torch.as_tensor(candidates), torch.ones(rows, dtype=dtype), scaler
    )


def blobs(rows: int = 60, classes: int = 3) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Make rows of classes that are easy to tell apart, some with several candidates: X, candidates, y."""
    rng = np.random.default_rng(7)
    y = np.arange(rows) % classes
    X = rng.normal(size=(rows, classes + 1)) + 4 * np.eye(classes, classes + 1)[y]
    candidates = rng.random((rows, classes)) < min(0.3, 3 / classes)
    candidates[np.arange(rows), y] = True
    return X, candidates, y


def started(method: Make, data: Data, precision: str = "fp64") -> PartialLabelClassifier:
    """Make a method whose training on these data is about to begin."""
    model = method(network="linear", precision=precision, device="cpu")
    with seeded(0, torch.device("cpu")):
        model.set_training_rows(data)
        model.start(data)
    return model


def take(data: Data, index: Tensor, epoch: int, views: int = 1) -> Batch:
    """Make a batch of the rows ``index`` (B,), or (2, B) of two trials side by side, without chance."""
    if index.dim() == 1:
        return _MeanBatch(_shifted(data.x[index], views), data.candidates[index], index, Epoch(epoch))
    x, S = (
        torch.stack([table[t, own] for t, own in enumerate(index)])
        for table in (cast(Tensor, data.x), data.candidates)
    )
    rows = index + torch.tensor([[0], [len(data)]])
    return _MeanStackedBatch(
        _shifted(x, views),
        S,
        index,
        Epoch(epoch),
        rows=rows,
        readers=[1, 1],
        each=lambda draw, c: [draw(own) for own in c],
    )


def _shifted(x: Tensor, views: int) -> list[Tensor]:
    return [x + 0.1 * view for view in range(views)]


class _MeanDraws:
    """Draws that are their own mean, so that batches of other shapes and orders can be compared."""

    def uniform(self, rows: Tensor) -> Tensor:
        return torch.full(rows.shape, 0.5)

    def dirichlet(self, concentration: Tensor) -> Tensor:
        return concentration / concentration.sum(-1, keepdim=True)


@dataclass(frozen=True)
class _MeanBatch(_MeanDraws, Batch):
    pass


@dataclass(frozen=True)
class _MeanStackedBatch(_MeanDraws, StackedBatch):
    pass
