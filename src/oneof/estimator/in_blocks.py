"""What a model says of many rows, block by block: no table of n rows and K classes is made unless asked for."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oneof.errors import InputError
from oneof.estimator.method_base import MethodBase
from oneof.io.memory import check_room
from oneof.io.words import shown
from oneof.labels import Disambiguation, SparseSets, decide, dense_form
from oneof.labels.sparse_sets import AnySets
from oneof.metrics import approximated_accuracy
from oneof.train.evaluation import ROWS_AT_ONCE, map_blocks, most_rows
from oneof.train.rows import Array, rows_at_once
from oneof.train.runtime import float_type, resolve_device, threads

_FIX = "pass fewer rows at once, or ask for predict, or for predict_top, which take no such table"


class TopClasses(NamedTuple):
    """The k most likely classes of every row and their probabilities, each (n, k), the most likely first."""

    label: NDArray[Any]
    probability: NDArray[Any]


def apply_in_blocks(
    model: MethodBase,
    function: Callable[..., Tensor],
    x: Array,
    sets: AnySets | None,
    take: Callable[[slice, Array, Array], None],
) -> NDArray[np.intp]:
    """Apply a function to checked rows, and to candidate sets where there are some, in evaluation mode.

    ``take`` is given every block: which rows it is, the results (B, C), and the sets (B, K). Returns the numbers
    of the rows whose results are NaN.
    """
    device, dtype = resolve_device(model.device), float_type(model.precision)
    size = most_rows(len(model.classes_), rows_at_once(x, ROWS_AT_ONCE))
    for module in model.modules():
        module.to(device)
    bad = []

    def block(begin: int) -> None:
        rows = slice(begin, begin + size)
        loaded = model.scaler_.load(model.scaler_.store(x[rows], dtype).to(device), dtype)
        dense = np.empty(0) if sets is None else dense_form(sets[rows])
        others = [] if sets is None else [torch.as_tensor(dense, device=device)]
        results = function(loaded, *others).cpu().numpy()
        bad.append(begin + np.flatnonzero(np.isnan(results).reshape(len(results), -1).any(1)))
        take(rows, results, dense)

    with threads(model.thread_count()):
        map_blocks(model, block, ((begin,) for begin in range(0, len(x), size)))
    return np.concatenate(bad)


class AllRows:
    """Keeps all results (n, C); refuses more of them than there is memory for."""

    results: Array

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        if rows.start == 0:
            shape = (self.rows, *part.shape[1:])
            what = f"an array of shape {shape}"
            check_room(what, int(np.prod(shape, dtype=np.int64)) * part.dtype.itemsize, _FIX)
            self.results = np.empty(shape, dtype=part.dtype)
        self.results[rows] = part


class AllAndBest(AllRows):
    """Keeps all results and the number of the largest class of each row."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.best = Best(rows)

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        super().__call__(rows, part, sets)
        self.best(rows, part, sets)

    def matrix(self) -> Array:
        """Return the array (n, K)."""
        return self.results


class Best:
    """Keeps the number (n,) of the most likely class."""

    def __init__(self, rows: int) -> None:
        self.numbers = np.empty(rows, dtype=np.intp)

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        self.numbers[rows] = part.argmax(1)


class Top:
    """Keeps the numbers and the probabilities of the k most likely classes (n, k), of ties the first."""

    def __init__(self, rows: int, k: int) -> None:
        self.numbers = np.empty((rows, k), dtype=np.intp)
        self.probabilities: list[Array] = []

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        k = self.numbers.shape[1]
        least = np.partition(part, -k, axis=1)[:, -k, None]
        above, equal = part > least, part == least
        equal &= equal.cumsum(1) <= k - above.sum(1, keepdims=True)
        columns = np.nonzero(above | equal)[1].reshape(-1, k)
        chosen = np.take_along_axis(part, columns, 1)
        order = np.argsort(-chosen, axis=1, kind="stable")
        self.numbers[rows] = np.take_along_axis(columns, order, 1)
        self.probabilities.append(np.take_along_axis(chosen, order, 1))

    def named(self, classes: NDArray[Any]) -> TopClasses:
        """Return what was kept, classes by their names."""
        return TopClasses(classes[self.numbers], np.concatenate(self.probabilities))


def check_top(k: Any, classes: int) -> None:
    """Refuse a number of classes that there are not."""
    if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= int(k) <= classes:
        raise InputError(f"k is {shown(k, 60)}, but must be a whole number from 1 to {classes}")


class Scores:
    """Keeps the approximated accuracy (n,)."""

    def __init__(self, rows: int) -> None:
        self.values = np.empty(rows)

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        self.values[rows] = approximated_accuracy(part, sets)


class Choices:
    """Keeps the most likely candidate of every row."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes, self.parts = classes, list[Disambiguation]()

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        self.parts.append(decide(part, self.classes, sets))

    def joined(self) -> Disambiguation:
        """Return those of all rows."""
        label, probability, margin = (np.concatenate(each) for each in zip(*self.parts, strict=True))
        outside = np.concatenate([part.outside for part in self.parts])
        return Disambiguation(label, probability, margin, outside)


class OnSets:
    """Keeps the values at the candidates of sparse sets, and the number of the largest class of each row."""

    def __init__(self, sets: SparseSets) -> None:
        self.sets, self.values = sets, list[Array]()
        self.best = Best(len(sets))

    def __call__(self, rows: slice, part: Array, sets: Array) -> None:
        """Take a block."""
        where = self.sets[rows]
        self.values.append(part[where.rows, where.matrix.indices])
        self.best(rows, part, sets)

    def matrix(self) -> Any:
        """Return a sparse matrix (n, K)."""
        return self.sets.with_values(np.concatenate(self.values))
