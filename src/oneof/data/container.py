"""Rows and their candidate sets, checked once and then read-only."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from oneof.errors import InputError, KindError
from oneof.io.arguments import as_array
from oneof.io.words import reason, shown
from oneof.labels import Votes, encode, vote_counts


@dataclass(frozen=True, eq=False, repr=False)
class PartialLabels:
    """A data set with candidate labels.

    Parameters
    ----------
    x : array of shape (n, features), (n, height, width) or (n, height, width, channels)
        A table of floats, or images of bytes (uint8) or floats. It is not copied.
    candidates : matrix of 0 and 1 of shape (n, K)
        ``candidates[i, k]`` says whether class k may be the label of row i; no row is empty.
    y : array of int of shape (n,), or None
        The true class numbers, 0 to K - 1, where they are known: for evaluation only, they never reach ``fit``.
    classes : sequence of K distinct strings or integers
        The name of each class.
    name : str
        What the data set is called.
    counts : array of int of shape (n, K), optional
        How many people named each class, where candidates come from votes; see `votes`.

    Notes
    -----
    The arrays are stored read-only. A true label may lie outside its candidates; see `coverage`.

    Examples
    --------
    >>> data = PartialLabels(np.zeros((2, 3)), [[1, 1], [0, 1]], [0, 1], ["cat", "dog"], "pets")
    >>> data
    PartialLabels 'pets': 2 rows, 3 features, 2 classes, 1.50 candidates a row
    >>> data.take([1]).candidates
    array([[False,  True]])
    """

    x: NDArray[Any]
    candidates: NDArray[np.bool_]
    y: NDArray[np.int64] | None
    classes: NDArray[Any]
    name: str
    counts: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise KindError(f"name is of type {type(self.name).__name__}, but must be a string: pass str(name)")
        name = shown(self.name, 60)
        x = _checked_rows(self.x, name)
        candidates, classes = _checked_candidates(self.candidates, self.classes, len(x), name)
        y = None if self.y is None else _checked_truth(self.y, len(x), len(classes), name)
        counts = None if self.counts is None else _checked_counts(self.counts, candidates, name)
        arrays = {"x": x, "candidates": candidates, "y": y, "classes": classes, "counts": counts}
        for field, array in arrays.items():
            object.__setattr__(self, field, _read_only(array))

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        row = " x ".join(map(str, self.x.shape[1:])) + (" features" if self.x.ndim == 2 else " pixels")
        sizes = f"{len(self.classes)} classes, {self.candidates.sum() / len(self):.2f} candidates a row"
        return f"PartialLabels {self.name!r}: {len(self)} rows, {row}, {sizes}"

    @property
    def coverage(self) -> float | None:
        """The share of rows whose true label is a candidate; None where true labels are not known."""
        if self.y is None:
            return None
        return float(self.candidates[np.arange(len(self)), self.y].mean())

    @property
    def votes(self) -> Votes:
        """The candidates with the weights that the counts of votes give them, which `fit` takes as y."""
        if self.counts is None:
            raise InputError(f"{shown(self.name, 60)} has no counts of votes; take its candidates")
        return vote_counts(self.counts, self.classes)

    def take(self, rows: ArrayLike | slice) -> Self:
        """Return the given rows: their numbers, a boolean mask or a slice."""
        chosen = rows if isinstance(rows, slice) else as_array(rows, "rows")
        try:
            numbers = np.arange(len(self))[chosen]
        except IndexError as error:
            raise InputError(
                f"rows cannot be taken from {shown(self.name, 60)} ({reason(error)}): pass numbers from 0 to "
                f"{len(self) - 1}, a mask of {len(self)} booleans, or a slice"
            ) from None
        if numbers.ndim != 1 or not len(numbers):
            raise InputError(
                f"rows has shape {numbers.shape}, but must name at least one row in one dimension: pass a list"
            )
        y = None if self.y is None else self.y[chosen]
        counts = None if self.counts is None else self.counts[chosen]
        return replace(self, x=self.x[chosen], candidates=self.candidates[chosen], y=y, counts=counts)

    def with_candidates(self, candidates: Any) -> Self:
        """Return the same rows with other candidate sets, a matrix of 0 and 1 of shape (n, K)."""
        return replace(self, candidates=candidates, counts=None)


def _checked_rows(rows: Any, name: str) -> NDArray[Any]:
    """Return a table of floats, or images of bytes or floats."""
    x = rows if isinstance(rows, np.memmap) else as_array(rows, "x")  # what is mapped stays on disk in a fit
    is_table, is_images = x.ndim == 2, x.ndim in (3, 4)
    if not ((is_table or is_images) and (x.dtype.kind == "f" or (is_images and x.dtype == np.uint8))):
        raise InputError(
            f"x of {name} has shape {x.shape} and type {x.dtype}, but must be a table (n, features) of floats "
            "or images (n, height, width[, channels]) of uint8 or floats: reshape or convert it"
        )
    if not x.size:
        raise InputError(f"x of {name} has shape {x.shape}, but must not be empty: pass at least one row")
    return x


def _checked_candidates(
    candidates: Any, classes: Any, n: int, name: str
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return a boolean matrix (n, K) without empty rows, and K distinct names."""
    matrix = candidates.toarray() if sparse.issparse(candidates) else as_array(candidates, "candidates")
    k = as_array(classes, "classes").size
    if matrix.shape != (n, k) or k < 2:
        raise InputError(
            f"candidates of {name} has shape {matrix.shape}, but x has {n} rows and classes {k} names: pass one "
            "row for each row of x and one column for each of at least two classes"
        )
    wrong = matrix[(matrix != 0) & (matrix != 1)]
    if wrong.size:
        raise InputError(
            f"candidates of {name} holds values such as {shown(wrong[0])}, but may hold only 0 and 1: "
            "turn class names into a matrix with oneof.encode"
        )
    return encode(matrix, classes)


def _checked_truth(labels: Any, n: int, k: int, name: str) -> NDArray[np.int64]:
    """Return class numbers (n,)."""
    y = as_array(labels, "y")
    if y.shape != (n,) or y.dtype.kind not in "ui":
        raise InputError(
            f"y of {name} has shape {y.shape} and type {y.dtype}, but must hold {n} integers, one class number "
            "for each row of x: convert it, or pass None"
        )
    outside = y[(y < 0) | (y >= k)]
    if outside.size:
        raise InputError(
            f"y of {name} holds {shown(outside[0])}, but must hold the numbers 0 to {k - 1} of the classes: "
            "number the labels by their place in classes"
        )
    return y.astype(np.int64, copy=False)


def _checked_counts(counts: Any, candidates: NDArray[np.bool_], name: str) -> NDArray[np.int64]:
    """Return counts (n, K), above 0 where and only where a class is a candidate."""
    matrix = as_array(counts, "counts")
    if matrix.dtype.kind not in "ui" or matrix.shape != candidates.shape or ((matrix > 0) != candidates).any():
        raise InputError(
            f"counts of {name} must be whole numbers of shape {candidates.shape}, above 0 for candidates alone: "
            "pass counts > 0 as candidates"
        )
    return matrix.astype(np.int64, copy=False)


def _read_only(array: Any) -> Any:
    """Return a view that cannot be written to; the caller's own array stays writeable."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view
