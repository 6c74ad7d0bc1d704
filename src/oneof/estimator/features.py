"""Every way to write X -> one checked array: tables and images."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data
from torch import Tensor

from oneof.labels import rows_text
from oneof.train.rows import Array


def as_numpy(X: Any) -> Any:
    """Turn a torch tensor into an array and refuse sparse matrices; leave the rest to scikit-learn."""
    if isinstance(X, Tensor):
        return X.detach().cpu().numpy()
    if scipy.sparse.issparse(X):
        raise TypeError("X is a sparse matrix, but oneof needs dense rows; pass X.toarray()")
    return X


def check_rows(estimator: Any, X: Any, fitting: bool) -> Array:
    """Return X as a finite array (n, features) or (n, channels, height, width), of the shape fitted on."""
    X = as_numpy(X)
    image = isinstance(X, np.ndarray) and X.ndim in (3, 4)
    if image or not (fitting or estimator.input_shape_ is None):
        x = _check_images(np.asarray(X))
    else:
        least = 2 if fitting else 1
        kinds = [np.float64, np.float32]
        x = validate_data(
            estimator, X, reset=fitting, dtype=kinds, ensure_all_finite=False, ensure_min_samples=least
        )
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
