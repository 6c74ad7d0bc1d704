"""Candidate sets, and sets of wrong labels, in any form that users have them."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from oneof.errors import InputError, KindError
from oneof.io.words import listed, shown
from oneof.labels.named_sets import NamedSets
from oneof.labels.names import column_names, columns_of, number_labels
from oneof.labels.reading import flatten, to_python, unwrap
from oneof.labels.separators import split, warn_of_joined
from oneof.labels.sparse_sets import AnySets, SparseSets, dense_form, smaller_form, takes_less
from oneof.labels.validation import Encoded, ForeignLabelsError, check_encoded, rows_text
from oneof.labels.weighted import WeightedSets

_EMPTY = (
    "the candidate set is empty in {rows}, but every row needs at least one candidate label: "
    "add the labels or drop the rows"
)


def encode(
    y: Any, classes: Any = None, separator: str | None = None, *, sparse_output: bool = False
) -> tuple[Any, NDArray[Any]]:
    """Turn candidate label sets into a boolean matrix and its class names.

    Parameters
    ----------
    y : array-like, DataFrame or sparse matrix with one row per sample
        A 2-d array, tensor, DataFrame or sparse matrix holds 0/1, one column per class. A list, tuple,
        Series or 1-d object array of lists, tuples, sets or 1-d arrays holds class names, even if they
        look like 0/1. A 1-d array or list of scalars holds one label per row. Of sets with weights, such as
        :func:`oneof.from_votes` returns, the sets.
    classes : sequence of str or int, optional
        All classes, in the order of the columns. By default the column names of a DataFrame,
        ``arange(K)`` for any other matrix, and the sorted labels of `y` otherwise.
    separator : str, optional
        Splits strings such as ``"cat|dog"``; without it, a string is one label.
    sparse_output : bool, default=False
        Whether the matrix is sparse, for many classes: one number for each candidate instead of n times K.

    Returns
    -------
    candidates : ndarray of bool, shape (n, K), or a scipy.sparse.csr_array
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
    if not isinstance(sparse_output, bool):
        raise KindError(f"sparse_output is {shown(sparse_output)}, but must be True or False")
    candidates, names = check_encoded(*_read(y, classes, separator), _EMPTY)
    if not sparse_output:
        return dense_form(candidates), names
    return (candidates if isinstance(candidates, SparseSets) else SparseSets(candidates)).matrix, names


def encode_sets(y: Any, classes: Any = None, separator: str | None = None) -> tuple[AnySets, NDArray[Any]]:
    """Return what `encode` does in the form that takes less memory; of sets with weights, these."""
    candidates, names = check_encoded(*_read(y, classes, separator), _EMPTY)
    return (smaller_form(y.weights) if isinstance(y, WeightedSets) else smaller_form(candidates)), names


def encode_weights(y: Any, classes: Any = None, separator: str | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what `encode` does; of sets with weights, these in place of booleans."""
    candidates, names = encode(y, classes, separator)
    return (_dense_weights(y) if isinstance(y, WeightedSets) else candidates), names


def _dense_weights(y: WeightedSets) -> NDArray[Any]:
    weights: NDArray[Any] = y.weights.toarray() if sparse.issparse(y.weights) else y.weights
    return weights


def encode_for_model(y: Any, classes: NDArray[Any], separator: str | None = None) -> NDArray[Any]:
    """Return what `encode_weights` does over the classes of a model; an error says how model and labels agree."""
    return dense_form(encode_sets_for_model(y, classes, separator))


def encode_sets_for_model(y: Any, classes: NDArray[Any], separator: str | None = None) -> AnySets:
    """Return what `encode_sets` does over the classes of a model; an error says how model and labels agree."""
    try:
        return encode_sets(y, classes, separator)[0]
    except ForeignLabelsError as error:
        text = str(error) if error.also_for_model else f"{error.found}. {_agreement(y, classes)}"
        raise InputError(text) from None


def _agreement(y: Any, classes: NDArray[Any]) -> str:
    """Say how the labels of a model and those of ``y`` come to agree."""
    of_text = isinstance(classes.tolist()[0], str)
    labels = flatten(unwrap(y, "y"))[0] if not hasattr(y, "ndim") or np.ndim(y) == 1 else []
    if labels and isinstance(labels[0], str) != of_text:
        if of_text:
            example = shown(classes[0], 40)
            return f"The classes of the model are names such as {example}: pass names, or model.classes_[y]"
        return (
            f"The classes of the model are the numbers {listed(classes, most=3)}, as of a matrix without names: "
            "fit with pandas.DataFrame(matrix, columns=names), or pass numbers"
        )
    if isinstance(y, WeightedSets):
        return (
            "The classes are those of the training rows: make y over them, as by from_votes(votes, model.classes_)"
        )
    return (
        "The classes are those of the training rows; where a fold may lack some, encode all rows first: "
        "matrix, classes = oneof.encode(y)"
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
    candidates : ndarray of bool, shape (n, K)
        As `encode` returns them; ``candidates[i, k]`` is False where class k is wrong for row i.
    classes : ndarray, shape (K,)
        The name of each column.

    Examples
    --------
    >>> candidates, classes = from_complementary([["cat"], []], classes=["cat", "cow", "dog"])
    >>> candidates.tolist()
    [[False, True, True], [True, True, True]]
    """
    read, names = _read(y, classes, separator)
    wrong = dense_form(read)
    return check_encoded(
        np.logical_not(wrong, out=wrong),
        names,
        "every class is excluded in {rows}, but one of them must be true: mend or drop the rows, "
        "or pass all classes as `classes` if y does not name them all",
    )


_WEIGHTED_FIX = (
    "make a frame, pandas.DataFrame(y.weights, columns=y.classes).reindex(columns=classes, fill_value=0), and "
    "pass WeightedSets(frame, classes), or WeightedSets(y.weights, classes) to rename them"
)


def _read(y: Any, classes: Any, separator: str | None) -> tuple[AnySets, NDArray[Any]]:
    """Return the matrix of the labels that each row names, and the class names; rows may be empty.

    It is sparse where that takes less memory and it is not given as an array.
    """
    if not isinstance(separator, str | None):
        raise KindError(f"separator is {shown(separator)}, but must be a string: pass one such as '|', or None")
    if separator == "":
        raise InputError("separator is '', but must have a character: pass one such as '|', or None")
    if isinstance(y, NamedSets):
        return _read_named(y, classes, separator)
    own = y.classes.tolist() if isinstance(y, WeightedSets) else None
    fixed = isinstance(y, WeightedSets) and not y.numbered
    y = unwrap(y if own is None else y.candidates, "y")
    if own is None and isinstance(y, np.ndarray | pd.DataFrame) and y.shape[1] == 1:
        y = column_or_1d(np.asarray(y), warn=True).tolist()
    if not isinstance(y, list):
        if separator is not None:
            raise KindError("separator is given, but y is a matrix: pass strings, or leave separator out")
        fix = "" if own is None else _WEIGHTED_FIX
        return _read_matrix(y), column_names(own or columns_of(y), classes, y.shape[1], "y", fix, fixed)
    labels, rows = flatten(y if separator is None else split(to_python(y), separator))
    if classes is None:
        warn_of_joined(y if separator is None else labels)
    codes, names = number_labels(labels, rows, classes, "y")
    shape = len(y), len(names)
    if takes_less(*shape, len(codes)):
        return SparseSets(sparse.coo_array((np.ones(len(codes), dtype=bool), (rows, codes)), shape)), names
    candidates = np.zeros(shape, dtype=bool)
    candidates[rows, codes] = True
    return candidates, names


def _read_named(y: NamedSets, classes: Any, separator: str | None) -> tuple[AnySets, NDArray[Any]]:
    """Return named sets over their own classes or others: names tell them, as in lists, and not their places."""
    if separator is not None:
        raise KindError("separator is given, but y holds sets that are split already: leave separator out")
    if classes is None:
        return smaller_form(y.over(np.arange(y.shape[1]), y.shape[1])), y.classes
    first = y.first_rows()
    named = np.flatnonzero(first >= 0)  # of some rows, not all classes may be
    codes, names = number_labels(y.classes[named].tolist(), first[named], classes, "y")
    numbers = np.zeros(y.shape[1], dtype=np.intp)
    numbers[named] = codes
    return smaller_form(y.over(numbers, len(names))), names


def _read_matrix(y: Any) -> AnySets:
    """Turn a matrix of 0/1 into booleans, refusing every other value."""
    is_sparse = sparse.issparse(y)
    given: Any = y.tocsr(copy=True) if is_sparse else np.asarray(y)
    if is_sparse:
        given.sum_duplicates()
    values = _comparable(given) if given.dtype == object else given
    ones = values == 1
    rows, columns = ((values != 0) != ones).nonzero()
    if len(rows):
        value = given[rows[0], columns[0]]
        raise InputError(
            f"y holds values such as {shown(value)} in {rows_text(rows)}, but a matrix may hold only 0 and 1: "
            "mend them, or pass class names as lists, or the labels of several annotators to from_votes"
        )
    return smaller_form(ones) if is_sparse else ones


def _comparable(values: NDArray[Any]) -> Any:
    """Replace cells whose comparison may have no truth value, as of pandas.NA, arrays and frames, by NaN."""
    has_length = np.frompyfunc(lambda cell: hasattr(cell, "__len__"), 1, 1)
    return np.where(pd.isna(values) | has_length(values).astype(bool), np.nan, values)
