"""Every way to write X -> one tensor: tables and images, checked and standardised."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor

from oneof.labels import rows_text

Array = NDArray[Any]


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation of the training rows: for each feature of a table, each channel of an image."""

    mean: Tensor  # (features,) or (channels, 1, 1), float64
    std: Tensor

    @classmethod
    def fit(cls, x: Array, weight: Array) -> "Scaler":
        """Learn from rows (n, features) or images (n, channels, height, width); constant features get std 1."""
        if x.ndim == 2:
            mean = np.average(x, axis=0, weights=weight)
            std = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
        else:
            # In blocks: the float copy of a whole image set would be eight times its bytes.
            starts = range(0, len(x), 1024)
            moments = [_image_moments(x[i : i + 1024].astype(np.float64)) for i in starts]
            first, second = (np.concatenate(moment) for moment in zip(*moments, strict=True))  # (n, channels)
            mean = np.average(first, axis=0, weights=weight)[:, None, None]
            mean_square = np.average(second, axis=0, weights=weight)[:, None, None]
            std = np.sqrt(np.maximum(mean_square - mean**2, 0.0))
        # Rounding leaves a constant column with a tiny std; dividing by that would blow noise up.
        constant = std <= 1e-12 * np.maximum(np.abs(mean), 1.0)
        return cls(torch.as_tensor(mean), torch.as_tensor(np.where(constant, 1.0, std)))

    def to(self, device: torch.device, dtype: torch.dtype) -> "Scaler":
        """Return the scaler where rows are loaded, so that no batch has to fetch it."""
        return Scaler(self.mean.to(device, dtype), self.std.to(device, dtype))

    def store(self, x: Array, dtype: torch.dtype) -> Tensor:
        """Rows in the form in which they are kept: tables standardised, images as they are, bytes as bytes."""
        if x.ndim == 2:
            return torch.as_tensor((x - self.mean.numpy()) / self.std.numpy(), dtype=dtype)
        x = np.ascontiguousarray(x)
        return torch.as_tensor(x if x.flags.writeable else x.copy(), dtype=None if x.dtype == np.uint8 else dtype)

    def load(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        """Return stored rows, or views made of them, as the network takes them."""
        if self.mean.dim() == 1:
            return stored
        mean, std = (t.to(stored.device, dtype) for t in (self.mean, self.std))
        return (stored.to(dtype) - mean) / std


def _image_moments(x: Array) -> tuple[Array, Array]:
    """Mean and mean square of every image and channel."""
    return x.mean((2, 3)), (x**2).mean((2, 3))


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
