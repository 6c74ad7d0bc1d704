"""Every way to write X -> one checked array: tables and images."""

from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor

from oneof.errors import InputError, KindError
from oneof.io.arguments import as_array, check_text
from oneof.io.frames import as_pandas
from oneof.io.words import listed, reason, shown
from oneof.labels import rows_text
from oneof.train.rows import Array, SparseRows, values_of

_ENCODED = "oneof.make_pipeline(oneof.TableEncoder(), model).fit(X, y)"
_BLOCK = 65536  # rows that are searched together
_FORMS = "a table (n, features) or images (n, height, width[, channels])"


def as_numpy(X: Any) -> Any:
    """Turn tensors and lists into arrays, refuse what holds no rows, and leave all else to scikit-learn."""
    if isinstance(X, Tensor):
        return as_array(X, "X")
    X = as_pandas(X)
    if scipy.sparse.issparse(X):
        return X if X.ndim != 2 else X.tocsr()
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(float), np.nan)  # np.asarray would give the values under the mask
    if isinstance(X, list | tuple):
        return _stacked(X)
    if not (hasattr(X, "__array__") or hasattr(X, "__array_interface__") or hasattr(X, "__dataframe__")):
        raise KindError(
            f"X is of type {type(X).__name__}, but must be {_FORMS}; pass an array, tensor, DataFrame or list of "
            "rows"
        )
    return X


def check_rows(estimator: Any, X: Any, fitting: bool) -> Array:
    """Return X as a finite array (n, features) or (n, channels, height, width), of the shape fitted on."""
    X = as_numpy(X)
    image = isinstance(X, np.ndarray) and X.ndim in (3, 4)
    if image or not (fitting or estimator.input_shape_ is None):
        x = _check_images(np.asarray(X), least=2 if fitting else 1)
    else:
        x = _check_table(estimator, X, fitting)
    if not fitting and image_shape(x) != estimator.input_shape_:
        raise InputError(
            f"X has rows of shape {tuple(x.shape[1:])}, but {type(estimator).__name__} was fitted on rows of "
            f"shape {estimator.input_shape_ or (estimator.n_features_in_,)} (channels first); pass such rows"
        )
    _check_finite(x)
    return x


def image_shape(x: Array) -> tuple[int, ...] | None:
    """Return (channels, height, width) of checked images, None of a table."""
    return tuple(x.shape[1:]) if x.ndim == 4 else None


def _stacked(rows: list[Any] | tuple[Any, ...]) -> Array:
    """Turn a list of rows into an array; refuse rows of different shapes."""
    try:
        array = np.asarray(rows)
        return array.astype(np.float64) if array.ndim == 2 and array.dtype.kind == "f" else array
    except ValueError:
        shapes = [_shape(row) for row in rows]
        other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
        raise InputError(
            f"X is a list of rows of different shapes, {shapes[0]} in row 0 and {shapes[other]} in row {other}, "
            f"but must be {_FORMS}; give all rows as many numbers"
        ) from None


def _shape(row: Any) -> Any:
    try:
        return np.shape(row)
    except ValueError:
        return "none (ragged)"


def _check_table(estimator: Any, X: Any, fitting: bool) -> Array:
    """Have scikit-learn check a table; say in one line what is wrong with it, without quoting the whole."""
    _check_kinds(X)
    sparse = get_tags(estimator).input_tags.sparse
    if scipy.sparse.issparse(X) and not sparse:
        raise KindError(
            f"X is a sparse matrix, but {type(estimator).__name__} needs dense rows; pass X.toarray(), or use a "
            "method that takes it, such as IDGP"
        )
    try:
        checked = _validated(
            estimator,
            X,
            fitting,
            accept_sparse="csr" if sparse else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=2 if fitting else 1,
        )
    except (ValueError, TypeError, OverflowError) as error:
        kind = KindError if isinstance(error, TypeError) else InputError
        raise kind(_cell_without_number(X) or reason(error, 300)) from None
    return cast(Array, SparseRows(checked)) if scipy.sparse.issparse(checked) else checked


def _validated(estimator: Any, X: Any, fitting: bool, **options: Any) -> Array:
    """Return what scikit-learn's `validate_data` does; rows on disk may have names of columns, too."""
    names = getattr(X, "feature_names", None) if isinstance(X, np.memmap) else None
    checked: Array
    if names is None:
        checked = validate_data(estimator, X, reset=fitting, **options)
        return checked
    validate_data(estimator, pd.DataFrame(columns=names), reset=fitting, skip_check_array=True)
    checked = check_array(X, estimator=estimator, input_name="X", **options)
    return checked


def _check_kinds(X: Any) -> None:
    """Refuse shapes and types that are no table of real numbers."""
    shape = tuple(getattr(X, "shape", (0, 0)))
    if len(shape) != 2:
        raise InputError(
            f"X has shape {shape}, but must be {_FORMS}. Reshape your data with X.reshape(-1, 1) if it is one "
            "feature, or X.reshape(1, -1) if it is one row"
        )
    columns: dict[Any, np.dtype[Any]] = {}
    if isinstance(X, pd.DataFrame):
        check_column_names(X)
        columns = dict(X.dtypes.items())
    elif isinstance(X, np.ndarray):
        check_text(X, "X")
        columns = {"": X.dtype}
    for name, kind in columns.items():
        where = f"the column {shown(name)} of X" if name != "" else "X"
        if kind.kind == "c":
            raise InputError(
                f"Complex data not supported: {where} is of type {kind}; pass real and imaginary parts"
            )
        if kind.kind in "mMV":
            raise KindError(
                f"{where} is of type {kind}, but features are numbers; drop it, or encode it: {_ENCODED}"
            )


def check_column_names(frame: Any) -> None:
    """Refuse names of columns by which scikit-learn could not tell them apart."""
    if not len(frame.columns):
        raise InputError("X is a frame without columns, but at least 1 is needed; pass the features")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique()
        raise InputError(f"X has several columns of the name {listed(twice)}; rename them")
    texts = [name for name in frame.columns if isinstance(name, str)]
    if 0 < len(texts) < len(frame.columns):
        other = next(name for name in frame.columns if not isinstance(name, str))
        # scikit-learn's words, which its own checks look for
        raise KindError(
            "Feature names are only supported if all input features have string names, but X has columns such as "
            f"{shown(texts[0], 60)} and {shown(other, 60)}; pass X.rename(columns=str)"
        )


def _cell_without_number(X: Any) -> str | None:
    """Say where the first cell is that is no number; None where that cannot be told."""
    if not isinstance(X, pd.DataFrame | np.ndarray):
        return None
    table = pd.DataFrame(X)
    for name in table.columns[~table.dtypes.map(pd.api.types.is_numeric_dtype)]:
        for row, cell in enumerate(table[name].tolist()):
            try:
                float(cell)
            except (ValueError, TypeError, OverflowError) as error:
                # scikit-learn's own checks look for these words
                why = " (a float() argument must be a string or a real number)" * isinstance(error, TypeError)
                where = f"in row {row} of the column {shown(name, 60)}"
                return (
                    f"X holds {shown(cell, 60)} {where}, but every value must be a number{why}; drop the column, "
                    f"or encode it: {_ENCODED}"
                )
    return None


def _check_images(X: Array, least: int) -> Array:
    """Return images as (n, channels, height, width)."""
    if X.ndim not in (3, 4) or (X.dtype.kind != "f" and X.dtype != np.uint8):
        raise InputError(
            f"X is an array of shape {X.shape} and type {X.dtype}, but images are (n, height, width) or "
            "(n, height, width, channels) of uint8 or float; convert them first"
        )
    if len(X) < least or 0 in X.shape[1:]:
        raise InputError(
            f"X is an array of shape {X.shape}, but {least} or more images are needed, each with at least one "
            "pixel and channel; pass such images"
        )
    X = X[:, None] if X.ndim == 3 else np.moveaxis(X, 3, 1)
    return X if X.dtype in (np.uint8, np.float32, np.float64) else X.astype(np.float32)


def _check_finite(X: Array) -> None:
    """Refuse NaN and infinity, naming the rows."""
    with np.errstate(over="ignore", invalid="ignore"):  # finite numbers may have an infinite sum
        if X.dtype.kind != "f" or np.isfinite(values_of(X).sum()):  # the sum is cheap and almost always tells
            return
    if isinstance(X, SparseRows):
        rows = np.repeat(np.arange(len(X)), np.diff(X.matrix.indptr))
        bad = rows[~np.isfinite(X.matrix.data)]
    else:
        bad = np.concatenate(
            [begin + _not_finite(X[begin : begin + _BLOCK]) for begin in range(0, len(X), _BLOCK)]
        )
    if bad.size:
        raise InputError(
            f"Input X contains NaN or infinity in {rows_text(bad)}, but every value must be "
            "finite: fill the gaps (oneof.TableEncoder does, or sklearn.impute) or drop the rows"
        )


def _not_finite(rows: Array) -> Array:
    """Return the numbers of rows that hold NaN or infinity."""
    return np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(1))
