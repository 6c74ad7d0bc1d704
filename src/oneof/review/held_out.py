"""What models that have not seen a row say of it: made once by folds, kept beside the model by content."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from oneof.errors import InputError
from oneof.estimator.features import as_numpy
from oneof.estimator.held_out import folds_of, held_out_log_proba
from oneof.io import tensors as tensor_file
from oneof.labels import WeightedSets
from oneof.review.neighbours import AROUND, embed, fold_neighbours, nearest

FOLDS = 5
LEAST_ROWS = 20
_VERSION = 1  # goes into every key; raised when the same rows give other predictions
_LEAST = -60.0  # of a logarithm: classifiers that count may say that a class is impossible


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for n rows over K classes by models that have not seen them, and each row's neighbours."""

    log_p: NDArray[np.float32]  # (n, K)
    fellows: NDArray[np.int32]  # (n, k): the nearest rows of the same fold, whose models have not seen the row
    near: NDArray[np.int32]  # (n, k): the nearest of all rows
    distance: NDArray[np.float32]  # (n,): to the first of them


def predict_held_out(
    model: Any, X: Any, y: Any, seed: int = 0, advance: Callable[[float], None] = lambda share: None
) -> Predictions:
    """Fit copies of a model on folds of the rows, and have each judge the rows that it has not seen.

    ``y`` are candidate sets over all classes: a boolean frame or matrix, or `WeightedSets`.
    """
    rows = as_numpy(X)
    n = len(rows)
    if n < LEAST_ROWS:
        raise InputError(f"there are {n} rows, but held-out predictions need at least {LEAST_ROWS}; add rows")
    split = folds_of(n, FOLDS, seed)
    log_p = held_out_log_proba(_blank(model, seed), rows, y, split, advance=advance)
    space = embed(rows)
    near, distance = nearest(space, AROUND)
    fellows = fold_neighbours(space, [rest for _, rest in split])
    return Predictions(np.maximum(log_p, _LEAST).astype(np.float32), fellows, near, distance[:, 0])


def predict_own(model: Any, X: Any) -> Predictions:
    """Return a fitted model's own predictions in the same form: held out only if it was fitted on other rows."""
    space = embed(as_numpy(X))
    near, distance = nearest(space, AROUND)
    log_p = np.maximum(model.predict_log_proba(X), _LEAST).astype(np.float32)
    return Predictions(log_p, near, near, distance[:, 0])


def kept(model: Path, key: str) -> Path:
    """Return where predictions of this key lie, in a folder beside the model."""
    return model.with_name(model.name + ".review") / f"{key}.safetensors"


def key_of(model: Path, X: Any, y: Any, seed: int = 0) -> str:
    """Return the hash of all that predictions depend on: the model's file, the rows and their labels."""
    digest = hashlib.sha256(f"{_VERSION} {FOLDS} {seed} ".encode())
    digest.update(model.read_bytes())
    table = X.to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)
    labels = y.weights if isinstance(y, WeightedSets) else np.asarray(y, dtype=bool)
    for array in (table, labels):
        digest.update(f"{array.shape} {array.dtype} ".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def held_out_for(
    path: Path, model: Any, X: Any, y: Any, advance: Callable[[float], None] = lambda share: None
) -> Predictions:
    """Return the predictions that are kept beside the file of a model, or make and keep them."""
    place = kept(path, key_of(path, X, y))
    found = load(place, *y.shape)
    if found is None:
        found = predict_held_out(model, X, y, advance=advance)
        save(place, found)
    return found


def save(path: Path, found: Predictions) -> None:
    """Keep predictions."""
    path.parent.mkdir(exist_ok=True)
    arrays = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in vars(found).items()}
    tensor_file.write(path, "held-out", arrays, {})


def load(path: Path, rows: int, classes: int) -> Predictions | None:
    """Return what was kept for so many rows; None where there is nothing, or something else."""
    try:
        tensors, _ = tensor_file.read(path, "held-out")
        found = Predictions(**{name: tensor.numpy() for name, tensor in tensors.items()})
    except (OSError, ValueError, TypeError):
        return None
    whole = (
        found.log_p.shape == (rows, classes)
        and np.isfinite(found.log_p).all()
        and found.distance.shape == (rows,)
        and all(
            each.ndim == 2 and len(each) == rows and ((each >= 0) & (each < rows)).all()
            for each in (found.fellows, found.near)
        )
    )
    return found if whole else None


def _blank(model: Any, seed: int) -> Any:
    """Return an unfitted copy without files or bars, and with the same random numbers each time."""
    copy = clone(model)
    own = copy.get_params(deep=False)
    quiet = {"verbose": 0, "checkpoint": None, "random_state": seed}
    return copy.set_params(**{name: value for name, value in quiet.items() if name in own})
