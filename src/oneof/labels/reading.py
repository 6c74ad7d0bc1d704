"""The rows of arrays, tensors, data frames and lists, and the labels in each row, as plain Python objects."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from oneof.errors import InputError, KindError
from oneof.io.arguments import as_array, check_text
from oneof.io.frames import as_pandas
from oneof.io.words import shortened


def unwrap(y: Any, name: str) -> Any:
    """Return ``y``, called ``name`` in messages, as a list of rows or a matrix: 2-d array, DataFrame or sparse."""
    if y is None:
        raise InputError(
            f"oneof requires {name} to be passed, but the target {name} is None: pass one row per sample"
        )
    y = as_pandas(y)
    if hasattr(y, "detach"):
        y = as_array(y, name)
    if isinstance(y, np.ma.MaskedArray):
        # tolist() gives None for masked values; np.asarray would give the values under the mask.
        y = np.array(y.tolist(), dtype=object)
    if isinstance(y, tuple):
        y = list(y)
    elif not isinstance(y, list | pd.DataFrame) and not sparse.issparse(y):
        if isinstance(y, str) or not hasattr(y, "__array__"):
            raise KindError(
                f"{name} is of type {type(y).__name__}, but must be a list, array, Series, DataFrame or "
                "sparse matrix with one row per sample: put the rows into a list"
            )
        y = as_array(y, name)
        if y.dtype.kind in "mMV":  # as a list, dates would be counts of nanoseconds
            what = "dates" if y.dtype.kind != "V" else "records"
            raise KindError(
                f"{name} holds {shortened(str(y.dtype), 60)}, but labels must be strings or integers: convert the "
                f"{what} first"
            )
    shape = (len(y),) if isinstance(y, list) else y.shape
    if len(shape) not in (1, 2) or (len(shape) == 1 and sparse.issparse(y)):
        raise InputError(f"{name} has shape {shape}, but must have 1 or 2 dimensions: pass one row per sample")
    if shape[0] == 0:
        raise InputError(f"{name} has 0 rows, but at least one is needed: pass one row per sample")
    return y.tolist() if isinstance(y, np.ndarray) and y.ndim == 1 else y


def flatten(sets: Iterable[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """List the labels of all rows, and the row of each."""
    members = [_members(item) for item in sets]
    labels = to_python(chain.from_iterable(members))
    return labels, np.repeat(np.arange(len(members)), [len(row) for row in members])


def _members(item: Any) -> Any:
    """Return the labels of one row; a single label is a set of one."""
    if isinstance(item, list | tuple | set | frozenset):
        return item
    if isinstance(item, np.ndarray):
        check_text(item, "a row")
    return item.tolist() if getattr(item, "ndim", 0) == 1 else (item,)


def to_python(labels: Iterable[Any]) -> list[Any]:
    """Replace NumPy scalars by Python objects, whose repr in messages is the plain value."""
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def is_blank(label: Any) -> bool:
    """Say whether a label is missing or an empty string."""
    return is_missing(label) or (isinstance(label, str) and label == "")


def is_missing(label: Any) -> bool:
    """Say whether a label is None, NaN, NaT or pandas.NA."""
    return label is None or label is pd.NA or label is pd.NaT or (isinstance(label, float) and label != label)
