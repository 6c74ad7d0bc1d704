"""Read candidate label sets, however they are written, into one boolean matrix."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from numbers import Integral
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

__all__ = ["check_learnable", "check_same_rows", "encode", "from_complementary", "from_votes", "rows_text"]

Encoded = tuple[NDArray[np.bool_], NDArray[Any]]

# Missing and complex values can be read, so that each gets an error of its own.
_READABLE = (str, int, float, complex, NoneType, type(pd.NA), type(pd.NaT))


def encode(y: Any, classes: Any = None, separator: str | None = None) -> Encoded:
    """Turn candidate label sets into a boolean matrix and its class names.

    Parameters
    ----------
    y : array-like, DataFrame or sparse matrix with one row per sample
        A 2-d array, tensor, DataFrame or sparse matrix holds 0/1, one column per class. A list, tuple,
        Series or 1-d object array of lists, tuples, sets or 1-d arrays holds class names, even if they
        look like 0/1. A 1-d array or list of scalars holds one label per row.
    classes : sequence of str or int, optional
        All classes, in the order of the columns. By default the column names of a DataFrame,
        ``arange(K)`` for any other matrix, and the sorted labels of `y` otherwise.
    separator : str, optional
        Splits strings such as ``"cat|dog"``; without it, a string is one label.

    Returns
    -------
    candidates : ndarray of bool, shape (n, K)
        A new array; ``candidates[i, k]`` says whether class k is a candidate of row i.
    classes : ndarray, shape (K,)
        The name of each column.

    Examples
    --------
    >>> candidates, classes = encode([["cat", "dog"], ["dog"], ["cow", "cat"]])
    >>> candidates.astype(int)
    array([[1, 0, 1],
           [0, 0, 1],
           [1, 1, 0]])
    >>> classes.tolist()
    ['cat', 'cow', 'dog']
    >>> encode(["cat|dog", "dog"], separator="|")[0].tolist()
    [[True, True], [False, True]]
    """
    return _checked(
        *_read(y, classes, separator),
        "the candidate set is empty in {rows}, but every row needs at least one candidate label: "
        "add the labels or drop the rows",
    )


def from_votes(votes: Any, classes: Any = None, min_votes: int = 1) -> Encoded:
    """Turn the labels given by several annotators into candidate sets.

    Parameters
    ----------
    votes : 2-d array, DataFrame or nested lists, one row per sample
        The label each annotator gave; None, NaN, ``pandas.NA`` and ``""`` are missing votes.
        Nested lists may be ragged.
    classes : sequence of str or int, optional
        All classes, in the order of the columns; by default the sorted labels of `votes`.
    min_votes : int, default=1
        How many annotators must give a label to make it a candidate.

    Returns
    -------
    candidates, classes : ndarray of bool, shape (n, K), and ndarray, shape (K,)
        As `encode` returns them; class names that NaN turned into whole floats are integers again.

    Examples
    --------
    >>> candidates, classes = from_votes([["cat", "dog", "cat"], ["dog", None, "dog"]], min_votes=2)
    >>> candidates.tolist(), classes.tolist()
    ([[True, False], [False, True]], ['cat', 'dog'])
    """
    if isinstance(min_votes, bool) or not isinstance(min_votes, Integral):
        raise TypeError(f"min_votes is {min_votes!r}, but must be an integer: pass 1 or more")
    if min_votes < 1:
        raise ValueError(f"min_votes is {min_votes}, but must be at least 1: pass 1 or more")
    ballots = _read_ballots(votes)
    labels, rows = _flatten(ballots)
    cast = np.array([not (_is_missing(label) or label == "") for label in labels], dtype=bool)
    labels = [
        int(label) if isinstance(label, float) and label.is_integer() else label
        for label, given in zip(labels, cast, strict=True)
        if given
    ]
    rows = rows[cast]
    codes, names = _code(labels, rows, classes, "votes")
    cells, counts = np.unique(rows * len(names) + codes, return_counts=True)
    candidates = np.zeros((len(ballots), len(names)), dtype=bool)
    candidates.flat[cells[counts >= min_votes]] = True
    return _checked(
        candidates,
        names,
        f"no label reaches min_votes={min_votes} in {{rows}}, but every row needs at least one candidate "
        "label: lower min_votes or drop the rows",
    )


def from_complementary(y: Any, classes: Any = None, separator: str | None = None) -> Encoded:
    """Turn labels known to be wrong into candidate sets: all other classes.

    Parameters
    ----------
    y : array-like, DataFrame or sparse matrix with one row per sample
        The wrong labels of each row, in any form that `encode` takes. A row without any is allowed:
        all classes are its candidates.
    classes : sequence of str or int, optional
        All classes, in the order of the columns. By default as for `encode`: pass them if some class
        may never be named as wrong.
    separator : str, optional
        Splits strings such as ``"cat|dog"``; without it, a string is one label.

    Returns
    -------
    candidates, classes : ndarray of bool, shape (n, K), and ndarray, shape (K,)
        As `encode` returns them; ``candidates[i, k]`` is False where class k is wrong for row i.

    Examples
    --------
    >>> candidates, classes = from_complementary([["cat"], []], classes=["cat", "cow", "dog"])
    >>> candidates.tolist()
    [[False, True, True], [True, True, True]]
    """
    wrong, names = _read(y, classes, separator)
    return _checked(
        np.logical_not(wrong, out=wrong),
        names,
        "every class is excluded in {rows}, but one of them must be true: mend or drop the rows, "
        "or pass all classes as `classes` if y does not name them all",
    )


def check_learnable(candidates: NDArray[np.bool_]) -> None:
    """Refuse candidate sets that are all full: they teach nothing."""
    if candidates.all():
        raise ValueError(
            f"every candidate set holds all {candidates.shape[1]} classes, so there is nothing to learn: "
            "rule out at least one class in some rows"
        )


def check_same_rows(x_rows: int, y_rows: int) -> None:
    """Refuse features and labels of different lengths."""
    if x_rows != y_rows:
        raise ValueError(f"X has {x_rows} rows and y has {y_rows}: pass one candidate set for each row of X")


def rows_text(indices: ArrayLike) -> str:
    """Name rows in a message, the first ten and the count: "rows 3, 8, 12 (3 in all)"."""
    rows = np.unique(np.asarray(indices))
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
    return f"rows {shown} ({len(rows)} in all)"


def _read(y: Any, classes: Any, separator: str | None) -> Encoded:
    """Mark the labels each row names; rows without any are left to the caller."""
    if not isinstance(separator, str | None):
        raise TypeError(f"separator is {separator!r}, but must be a string: pass one such as '|', or None")
    if separator == "":
        raise ValueError("separator is '', but must have a character: pass one such as '|', or None")
    y = _unwrap(y, "y")
    if isinstance(y, np.ndarray | pd.DataFrame) and y.shape[1] == 1:
        y = column_or_1d(np.asarray(y), warn=True).tolist()
    if not isinstance(y, list):
        if separator is not None:
            raise TypeError("separator is given, but y is a matrix: pass strings, or leave separator out")
        return _read_matrix(y), _column_names(y, classes)
    labels, rows = _flatten(y if separator is None else _split(_plain(y), separator))
    codes, names = _code(labels, rows, classes, "y")
    candidates = np.zeros((len(y), len(names)), dtype=bool)
    candidates[rows, codes] = True
    return candidates, names


def _unwrap(y: Any, name: str) -> Any:
    """Return a list of rows, or a matrix: 2-d array, DataFrame or sparse."""
    if y is None:
        raise ValueError(
            f"oneof requires {name} to be passed, but the target {name} is None: pass one row per sample"
        )
    if hasattr(y, "detach"):
        y = y.detach().cpu().numpy()
    if isinstance(y, np.ma.MaskedArray):
        # Its tolist() keeps what is masked as None, where np.asarray would bare the values beneath.
        y = np.array(y.tolist(), dtype=object)
    if isinstance(y, tuple):
        y = list(y)
    elif not isinstance(y, list | pd.DataFrame) and not sparse.issparse(y):
        if isinstance(y, str) or not hasattr(y, "__array__"):
            raise TypeError(
                f"{name} is of type {type(y).__name__}, but must be a list, array, Series, DataFrame or "
                "sparse matrix with one row per sample: put the rows into a list"
            )
        y = np.asarray(y)
    shape = (len(y),) if isinstance(y, list) else y.shape
    if len(shape) not in (1, 2) or (len(shape) == 1 and sparse.issparse(y)):
        raise ValueError(f"{name} has shape {shape}, but must have 1 or 2 dimensions: pass one row per sample")
    if shape[0] == 0:
        raise ValueError(f"{name} has 0 rows, but at least one is needed: pass one row per sample")
    return y.tolist() if isinstance(y, np.ndarray) and y.ndim == 1 else y


def _read_matrix(y: Any) -> NDArray[np.bool_]:
    """Turn a matrix of 0/1 into booleans, refusing every other value."""
    is_sparse = sparse.issparse(y)
    values: Any = y.tocsr(copy=True) if is_sparse else np.asarray(y)
    if is_sparse:
        values.sum_duplicates()
    elif values.dtype == object:
        # pandas.NA has no truth value, so it must go before the comparison below.
        values = np.where(pd.isna(values), np.nan, values)
    ones = values == 1
    rows, columns = ((values != 0) != ones).nonzero()
    if len(rows):
        (value,) = _plain([values[rows[0], columns[0]]])
        raise ValueError(
            f"y holds values such as {value!r} in {rows_text(rows)}, but a matrix may hold only 0 and 1: "
            "mend them, or pass class names as lists, or the labels of several annotators to from_votes"
        )
    dense: NDArray[np.bool_] = ones.toarray() if is_sparse else ones
    return dense


def _column_names(y: Any, classes: Any) -> NDArray[Any]:
    """Name the columns of a matrix: by `classes`, else by its own names, else by number."""
    own = y.columns.tolist() if isinstance(y, pd.DataFrame) else None
    if classes is None:
        return np.arange(y.shape[1]) if own is None else _class_names(own, "the header of y")
    names = _class_names(classes)
    if len(names) != y.shape[1]:
        raise ValueError(
            f"classes has {len(names)} names and y has {y.shape[1]} columns: name each column exactly once"
        )
    # Renaming columns that carry these very names would swap classes unnoticed.
    if own is not None and own != names.tolist() and set(own) == set(names.tolist()):
        raise ValueError(
            f"the columns of y are {own}, which is not the order of classes, {names.tolist()}: "
            "pass y[classes] to reorder them, or y.to_numpy() to rename them"
        )
    return names


def _read_ballots(votes: Any) -> list[Any]:
    """Return one list-like of votes per row."""
    votes = _unwrap(votes, "votes")
    if sparse.issparse(votes):
        raise TypeError("votes is a sparse matrix, which cannot tell 0 from no vote: pass a dense array")
    ballots: list[Any] = votes if isinstance(votes, list) else np.asarray(votes).tolist()
    for row, ballot in enumerate(ballots):
        if not isinstance(ballot, list | tuple) and getattr(ballot, "ndim", 0) != 1:
            raise TypeError(
                f"votes holds a {type(ballot).__name__} in row {row}, but each row must list the labels of "
                "all annotators: pass a 2-d array, a DataFrame or nested lists"
            )
    return ballots


def _split(texts: list[Any], separator: str) -> list[Any]:
    """Split every string into its labels; missing ones are left to be refused with their rows."""
    for row, text in enumerate(texts):
        if not isinstance(text, str) and not _is_missing(text):
            raise TypeError(
                f"separator is given, but row {row} is of type {type(text).__name__}: "
                "pass strings only, or leave separator out"
            )
    return [
        [part.strip() for part in text.split(separator) if part.strip()] if isinstance(text, str) else text
        for text in texts
    ]


def _flatten(sets: Iterable[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """List the labels of all rows, and the row of each."""
    members = [_members(item) for item in sets]
    labels = _plain(chain.from_iterable(members))
    return labels, np.repeat(np.arange(len(members)), [len(row) for row in members])


def _members(item: Any) -> Any:
    """Return the labels of one row, where a lone label is a set of one."""
    if isinstance(item, list | tuple | set | frozenset):
        return item
    return item.tolist() if getattr(item, "ndim", 0) == 1 else (item,)


def _plain(labels: Iterable[Any]) -> list[Any]:
    """Replace NumPy scalars by Python ones, which print and compare simply."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def _is_missing(label: Any) -> bool:
    """Say whether a label is None, NaN, NaT or pandas.NA."""
    return label is None or label is pd.NA or label is pd.NaT or (isinstance(label, float) and label != label)


def _code(
    labels: list[Any], rows: NDArray[np.intp], classes: Any, source: str
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the class number of each label, and the class names."""
    distinct = _distinct(labels, rows, source)
    names = np.array(sorted(distinct)) if classes is None else _class_names(classes)
    numbers = {name: number for number, name in enumerate(names.tolist())}
    codes = np.fromiter(map(numbers.get, labels, repeat(-1)), dtype=np.intp, count=len(labels))
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        strangers = sorted({labels[i] for i in unknown})
        shown = ", ".join(map(repr, strangers[:10])) + (", ..." if len(strangers) > 10 else "")
        raise ValueError(
            f"{source} names unknown labels ({shown}) in {rows_text(rows[unknown])}, but only those in "
            "classes are expected: add them to classes or mend the rows"
        )
    return codes, names


def _distinct(labels: list[Any], rows: NDArray[np.intp], source: str) -> set[Any]:
    """Return the distinct labels, refusing those that cannot name a class."""
    foreign = {kind for kind in set(map(type, labels)) if not issubclass(kind, _READABLE)}
    if foreign:
        i = next(i for i, label in enumerate(labels) if type(label) in foreign)
        raise TypeError(
            f"{source} holds a label of type {type(labels[i]).__name__} in row {rows[i]}, but labels must be "
            "strings or integers: convert it, and write each set as a list, tuple, set or 1-d array"
        )
    distinct = set(labels)
    if any(map(_is_missing, distinct)):
        where = rows[[_is_missing(label) for label in labels]]
        raise ValueError(
            f"{source} holds missing labels (None or NaN) in {rows_text(where)}, but every label must be "
            "known: fill them in or drop them"
        )
    texts = [label for label in distinct if isinstance(label, str)]
    if 0 < len(texts) < len(distinct):
        text, number = min(texts), next(label for label in labels if not isinstance(label, str))
        raise ValueError(
            f"{source} mixes strings such as {text!r} and numbers such as {number!r}, but class names must "
            "be of one kind: convert them all to strings"
        )
    if not all(
        isinstance(label, str | int) or (isinstance(label, float) and label.is_integer()) for label in distinct
    ):
        # Tools built on scikit-learn look for its words about continuous and complex targets.
        check_classification_targets(np.asarray(labels))
    return distinct


def _class_names(classes: Any, source: str = "classes") -> NDArray[Any]:
    """Return given class names as an array, in their order."""
    names = classes.tolist() if hasattr(classes, "tolist") else classes
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise TypeError(
            f"classes is of type {type(classes).__name__}, but the order of classes matters: "
            "pass a list or 1-d array of names"
        )
    names = _plain(names)
    distinct = _distinct(names, np.arange(len(names)), source)
    if len(distinct) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{source} holds {twice!r} more than once: name each class exactly once")
    return np.array(names)


def _checked(candidates: NDArray[np.bool_], names: NDArray[Any], complaint: str) -> Encoded:
    """Return both arrays, refusing rows without any candidate and fewer than two classes."""
    empty = np.flatnonzero(~candidates.any(axis=1))
    if empty.size:
        raise ValueError(complaint.format(rows=rows_text(empty)))
    if len(names) < 2:
        raise ValueError(
            f"found {len(names)} class, {names.tolist()}, but at least two classes are needed: pass all of "
            "them as `classes` if the rows do not name them all"
        )
    return candidates, names
