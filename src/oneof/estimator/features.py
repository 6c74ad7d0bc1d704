"""Every way to write X -> one checked array: tables and images."""

import re
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.utils.validation import validate_data

from oneof.io.arguments import as_array
from oneof.io.words import listed, reason, shown
from oneof.labels import rows_text
from oneof.train.rows import Array

# How NumPy and pandas complain of values that are no numbers.
_NO_NUMBER = re.compile("could not convert|float\\(\\)|setting an array element|too large to convert")


def check_rows(estimator: Any, X: Any, fitting: bool) -> Array:
    """Return X as a finite array (n, features) or (n, channels, height, width), of the shape fitted on."""
    X = _array_or_frame(X)
    image = isinstance(X, np.ndarray) and X.ndim in (3, 4)
    if image or not (fitting or estimator.input_shape_ is None):
        x = _check_images(np.asarray(X))
    else:
        x = _check_table(estimator, X, fitting)
    if not fitting and image_shape(x) != estimator.input_shape_:
        raise ValueError(
            f"X has rows of shape {tuple(x.shape[1:])}, but {type(estimator).__name__} was fitted on rows of "
            f"shape {estimator.input_shape_ or (estimator.n_features_in_,)} (channels first); pass such rows"
        )
    _check_finite(x)
    return x


def image_shape(x: Array) -> tuple[int, ...] | None:
    """Return (channels, height, width) of checked images, None of a table."""
    return tuple(x.shape[1:]) if x.ndim == 4 else None


def _array_or_frame(X: Any) -> Any:
    """Return X as an array, or as it is if it is a frame, whose columns have names."""
    if scipy.sparse.issparse(X):
        raise TypeError("X is a sparse matrix, but oneof needs dense rows; pass X.toarray()")
    if hasattr(X, "columns"):
        if isinstance(X, pd.DataFrame):
            _check_columns(X)
        return X
    x = as_array(X, "X")
    if x.ndim not in (2, 3, 4):
        given = f"is {shown(X)}" if x.ndim == 0 else f"has shape {x.shape}"
        raise ValueError(
            f"X {given}, but must be a table (n, features) or images (n, height, width[, channels]). Reshape your "
            "data: X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row"
        )
    if x.dtype.kind in "mM":
        raise TypeError(f"X holds {x.dtype}, but dates are no features; turn them into numbers first")
    if x.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: X holds {x.dtype}; pass real and imaginary parts as columns"
        )
    return x


def _check_columns(X: pd.DataFrame) -> None:
    """Refuse a frame with equal names, or with columns that hold no numbers, and name these columns."""
    if not len(X.columns):
        raise ValueError("X is a frame without columns, but at least 1 is needed; pass the features")
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()].unique()
        raise ValueError(f"X has more than one column of the name {listed(twice)}; rename or drop the others")
    foreign = [name for name, column in X.items() if not _is_numeric(column)]
    if foreign:
        example = X[foreign[0]].iloc[:1].tolist()
        raise ValueError(
            f"X has columns without numbers ({listed(foreign)}, such as {shown(*example)}), but could not convert "
            "them; turn them into numbers, by sklearn.preprocessing.OneHotEncoder for instance, or drop them"
        )


def _is_numeric(column: Any) -> bool:
    kinds = pd.api.types
    if kinds.is_numeric_dtype(column) or kinds.is_bool_dtype(column):
        return True
    if kinds.is_datetime64_any_dtype(column) or kinds.is_timedelta64_dtype(column):
        return False
    try:  # objects, strings and categories may be numbers
        column.astype(float)
    except (ValueError, TypeError):
        return False
    return True


def _check_table(estimator: Any, X: Any, fitting: bool) -> Array:
    kinds, least = [np.float64, np.float32], 2 if fitting else 1
    try:
        x: Array = validate_data(
            estimator, X, reset=fitting, dtype=kinds, ensure_all_finite=False, ensure_min_samples=least
        )
    except (ValueError, TypeError, OverflowError) as error:
        if not _NO_NUMBER.search(str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X holds values that are no numbers ({reason(error)}); convert or drop them") from None
    return x


def _check_images(X: Array) -> Array:
    """Return images as (n, channels, height, width)."""
    if X.ndim not in (3, 4) or (X.dtype.kind != "f" and X.dtype != np.uint8):
        raise ValueError(
            f"X is an array of shape {X.shape} and type {X.dtype}, but images are (n, height, width) or "
            "(n, height, width, channels) of uint8 or float; convert them first"
        )
    X = X[:, None] if X.ndim == 3 else np.moveaxis(X, 3, 1)
    return X if X.dtype in (np.uint8, np.float32, np.float64) else X.astype(np.float32)


def _check_finite(X: Array) -> None:
    """Refuse NaN and infinity, naming the rows."""
    if X.dtype.kind != "f" or np.isfinite(X.sum()):  # the sum is cheap and almost always tells
        return
    bad = ~np.isfinite(X).reshape(len(X), -1).all(1)
    if bad.any():
        raise ValueError(
            f"Input X contains NaN or infinity in {rows_text(np.flatnonzero(bad))}, but every value must be "
            "finite: fill the gaps (sklearn.impute) or drop the rows"
        )
