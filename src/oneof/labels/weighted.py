"""Candidate sets whose labels have weights: what is known of them beside the features."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from oneof.errors import InputError, KindError
from oneof.io.arguments import as_array, as_floats
from oneof.io.words import reason, shown
from oneof.labels.names import are_numbers, column_names, columns_of
from oneof.labels.sparse_sets import SparseSets
from oneof.labels.validation import check_encoded, rows_text

LEAST_WEIGHT = 1e-30  # of a candidate beside one of weight 1: smaller ones would round to no candidate in float32


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WeightedSets:
    """Candidate sets with weights, which `fit`, `score` and `disambiguate` take as y.

    A method then takes ``pi_j p(y = j | x)`` where it took ``p(y = j | x)`` of the candidates j.

    Parameters
    ----------
    weights : array, DataFrame or sparse matrix of shape (n, K)
        pi >= 0, 0 where a label is no candidate: the likelihood ``P(what was seen | y = j)`` of each label, up to
        a factor for each row. Stored with the largest of each row at 1; a sparse matrix stays sparse, as a
        scipy.sparse.csr_array.
    classes : sequence of K strings or integers, optional
        The name of each column; by default those of a DataFrame, else its number.

    Notes
    -----
    ``candidates`` are the sets alone, sparse where the weights are; ``numpy.asarray`` gives them as a boolean
    array, and ``sets[rows]`` some of the rows, as scikit-learn's splitters ask for. ``numbered`` says whether
    columns have numbers alone: a model takes these for its classes in their order, and names for what they name.

    Examples
    --------
    >>> sets = WeightedSets([[2, 1, 0], [0, 3, 3]], ["cat", "cow", "dog"])
    >>> sets.weights.tolist(), sets.candidates.tolist()
    ([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]], [[True, True, False], [False, True, True]])
    """

    weights: Any = field(metadata={"rows": True})  # (n, K), an array or a sparse matrix
    classes: NDArray[Any]
    numbered: bool = field(default=False, kw_only=True)  # classes are numbers of columns, not names

    def __init__(self, weights: Any, classes: Any = None) -> None:
        if isinstance(weights, WeightedSets):
            raise KindError(
                f"weights is {shown(weights, 60)}, which has its weights: pass weights.weights, or it as y"
            )
        scaled = _scaled_sparse(weights) if issparse(weights) else _scaled(as_floats(weights, "weights"))
        names = column_names(columns_of(weights), classes, scaled.shape[1], "weights")
        check_encoded(
            SparseSets(scaled) if issparse(scaled) else scaled > 0,
            names,
            "the weights are all 0 in {rows}, but every row needs a candidate: give one a weight or drop the rows",
        )
        object.__setattr__(self, "weights", scaled)
        object.__setattr__(self, "classes", names)
        object.__setattr__(self, "numbered", classes is None and are_numbers(columns_of(weights)))

    @property
    def candidates(self) -> Any:
        """The sets alone, a boolean matrix (n, K), sparse where the weights are."""
        return self.weights > 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n, K)."""
        n, k = self.weights.shape
        return n, k

    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        sizes = f"{len(self.classes)} classes, {self.candidates.sum() / len(self):.2f} candidates a row"
        return f"{type(self).__name__}: {len(self)} rows, {sizes}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        sets = self.candidates
        array: NDArray[Any] = (sets.toarray() if issparse(sets) else sets).astype(dtype or bool)
        return array

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give ``candidates, classes``, as `encode` returns them."""
        return iter((self.candidates, self.classes))

    def __getitem__(self, rows: Any) -> Self:
        """Return some rows: their numbers, a boolean mask or a slice."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # as scikit-learn asks
            rows = rows[0]
        chosen = rows if isinstance(rows, slice) else as_array(rows, "rows")
        try:
            numbers = np.arange(len(self))[chosen]
        except IndexError as error:
            raise InputError(
                f"rows {shown(rows, 60)} cannot be taken ({reason(error)}): pass numbers from 0 to "
                f"{len(self) - 1}, a mask of {len(self)} booleans, or a slice"
            ) from None
        if numbers.ndim != 1:
            raise KindError(
                f"[{shown(rows, 60)}] names no rows: pass a list of numbers or a slice, or ask for .candidates, "
                ".weights or .classes"
            )
        return self.take(numbers)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Return the rows of these numbers."""
        taken = object.__new__(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            of_rows = each.metadata.get("rows") and value is not None
            object.__setattr__(taken, each.name, value[rows] if of_rows else value)
        return taken


def _scaled_sparse(weights: Any) -> Any:
    """Return a sparse matrix of weights with the largest of each row at 1; refuse what can be none."""
    if weights.ndim != 2 or 0 in weights.shape:
        raise InputError(f"weights has shape {weights.shape}, but must be (n, K): pass one row per sample")
    if weights.dtype.kind not in "buif":
        raise KindError(f"weights is of type {weights.dtype}, but weights are numbers: convert them")
    sets = SparseSets(weights.astype(np.float64))
    values, rows = sets.matrix.data, sets.rows
    bad = ~(np.isfinite(values) & (values >= 0))
    _refuse(values[bad], rows[bad])
    largest = sets.matrix.max(axis=1).toarray().ravel()
    return sets.with_values(np.maximum(values / largest[rows], LEAST_WEIGHT))


def _refuse(values: NDArray[np.float64], rows: NDArray[np.intp]) -> None:
    """Refuse values that are no weights, in these rows."""
    if len(values):
        raise InputError(
            f"weights holds {values[0]:g} in {rows_text(rows)}, but weights are finite and at least 0: "
            "mend the rows"
        )


def _scaled(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights with the largest of each row at 1; refuse what can be none."""
    if weights.ndim != 2 or not weights.size:
        raise InputError(f"weights has shape {weights.shape}, but must be (n, K): pass one row per sample")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    _refuse(weights[bad], bad.nonzero()[0])
    largest = weights.max(1, keepdims=True)
    scaled = weights / np.where(largest > 0, largest, 1)
    return np.where(weights > 0, np.maximum(scaled, LEAST_WEIGHT), 0.0)
