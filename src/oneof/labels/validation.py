"""Checks of candidate sets, and how messages name rows."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneof.errors import InputError
from oneof.io.words import listed, warn
from oneof.labels.sparse_sets import AnySets, SparseSets, most_likely

_S = TypeVar("_S", bound=AnySets)
Encoded = tuple[NDArray[np.bool_], NDArray[Any]]
_ENOUGH_ROWS, _NEARLY_ALL = 10, 0.9  # rows to score, and the share of them that tells that they are of one class
_BALANCE = "split them in balance, as cv=oneof.CandidateKFold(5) does in tools of scikit-learn"


class ForeignLabelsError(InputError):
    """Labels or columns that are not those of the given classes: what was found, and the fix.

    ``also_for_model`` says whether the fix is the same where the classes are those of a fitted model.
    """

    def __init__(self, found: str, fix: str, also_for_model: bool = False) -> None:
        super().__init__(f"{found}: {fix}")
        self.found, self.also_for_model = found, also_for_model


def check_learnable(candidates: AnySets) -> None:
    """Refuse candidate sets that all hold every class, with equal weights: nothing can be learned from them."""
    if isinstance(candidates, SparseSets):
        return  # they are sparse because they leave most classes out
    if (candidates == 1).all():
        raise InputError(
            f"every candidate set holds all {candidates.shape[1]} classes, so there is nothing to learn: "
            "rule out at least one class in some rows"
        )


def warn_of_absent(candidates: AnySets, names: NDArray[Any]) -> None:
    """Warn of classes that are a candidate of no training row, as in a fold of rows that are sorted by class."""
    absent = names[~np.asarray(candidates.any(axis=0))]
    if absent.size:
        found = (
            f"the classes {listed(absent)} are candidates"
            if absent.size > 1
            else f"class {listed(absent)} is a candidate"
        )
        warn(
            f"{found} of no training row, but only what has rows is learned: add rows or drop the column. Where "
            f"rows sorted by class are split, {_BALANCE}"
        )


def warn_of_unlearned(candidates: AnySets, distributions: Any, names: NDArray[Any]) -> None:
    """Warn of rows to score whose labels the training rows, with their label ``distributions``, hardly had.

    Both are arrays (n, K), or sparse.
    """
    learned: Any
    if isinstance(distributions, np.ndarray):
        learned, best = distributions.any(axis=0), distributions.argmax(axis=1)
    else:
        learned = np.bincount(distributions.indices[distributions.data > 0], minlength=len(names)) > 0
        best = most_likely(distributions)
    chosen = np.isin(np.arange(len(names)), best)
    if isinstance(candidates, SparseSets):
        of_class = candidates.matrix.indices
        rows = np.setdiff1d(np.arange(len(candidates)), candidates.rows[learned[of_class]])
        nearly_all = np.bincount(of_class, minlength=len(names)) >= _NEARLY_ALL * len(candidates)
    else:
        inside = np.asarray(candidates > 0)
        rows = np.flatnonzero(~inside[:, learned].any(axis=1))
        nearly_all = inside.mean(axis=0) >= _NEARLY_ALL
    if rows.size:
        absent = listed(names[np.asarray(candidates[rows].any(axis=0))])
        found = f"y has no label but {absent} in {rows_text(rows)}, and no training row had it, so that these rows"
        warn(f"{found} count as wrong. Where rows sorted by class are split, {_BALANCE}")
    elif len(candidates) >= _ENOUGH_ROWS and (nearly_all & ~chosen).any():
        absent = listed(names[nearly_all & ~chosen])
        found = (
            f"class {absent} is a candidate of nearly all rows of y, but the most likely label of no training row"
        )
        warn(f"{found}. Where rows sorted by class are split, {_BALANCE}")


def check_same_rows(x_rows: int, y_rows: int) -> None:
    """Refuse features and labels of different lengths."""
    if x_rows != y_rows:
        raise InputError(f"X has {x_rows} rows and y has {y_rows}: pass one candidate set for each row of X")


def check_encoded(candidates: _S, names: NDArray[Any], complaint: str) -> tuple[_S, NDArray[Any]]:
    """Return both arrays; refuse rows without a candidate (message ``complaint``) and fewer than two classes."""
    empty = np.flatnonzero(~candidates.any(axis=1))
    if empty.size:
        raise InputError(complaint.format(rows=rows_text(empty)))
    if len(names) < 2:
        raise InputError(
            f"found {len(names)} class, [{listed(names)}], but at least two classes are needed: pass all of them "
            "as `classes` if the rows do not name them all"
        )
    return candidates, names


def rows_text(indices: ArrayLike, number: int | None = None) -> str:
    """Name rows in a message, the first ten and how many there are: "rows 3, 8, 12 (3 in all)".

    ``number`` is that of all rows, where only the first ones are given.
    """
    rows = np.unique(np.asarray(indices))
    number = number or len(rows)
    if number == 1:
        return f"row {rows[0]}"
    shown = ", ".join(map(str, rows[:10])) + (", ..." if number > 10 else "")
    return f"rows {shown} ({number} in all)"
