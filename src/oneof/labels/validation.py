"""Checks of candidate sets, and how messages name rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Encoded = tuple[NDArray[np.bool_], NDArray[Any]]


def check_learnable(candidates: NDArray[np.bool_]) -> None:
    """Refuse candidate sets that all hold every class: nothing can be learned from them."""
    if candidates.all():
        raise ValueError(
            f"every candidate set holds all {candidates.shape[1]} classes, so there is nothing to learn: "
            "rule out at least one class in some rows"
        )


def check_same_rows(x_rows: int, y_rows: int) -> None:
    """Refuse features and labels of different lengths."""
    if x_rows != y_rows:
        raise ValueError(f"X has {x_rows} rows and y has {y_rows}: pass one candidate set for each row of X")


def check_encoded(candidates: NDArray[np.bool_], names: NDArray[Any], complaint: str) -> Encoded:
    """Return both arrays; refuse rows without a candidate (message ``complaint``) and fewer than two classes."""
    empty = np.flatnonzero(~candidates.any(axis=1))
    if empty.size:
        raise ValueError(complaint.format(rows=rows_text(empty)))
    if len(names) < 2:
        raise ValueError(
            f"found {len(names)} class, {names.tolist()}, but at least two classes are needed: pass all of "
            "them as `classes` if the rows do not name them all"
        )
    return candidates, names


def rows_text(indices: ArrayLike) -> str:
    """Name rows in a message, the first ten and how many there are: "rows 3, 8, 12 (3 in all)"."""
    rows = np.unique(np.asarray(indices))
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
    return f"rows {shown} ({len(rows)} in all)"
