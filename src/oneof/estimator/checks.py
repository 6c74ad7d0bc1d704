"""What a fit refuses or warns of before it begins: settings that do not fit the method, each other or the rows."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from oneof.estimator.method_base import MethodBase
from oneof.io.arguments import as_floats
from oneof.train.rows import Array


def check_warm_up(method: MethodBase) -> None:
    """Warn of a training that ends before the method's own objective begins."""
    warm_up = getattr(method, "warm_up", 0)
    if warm_up >= method.epochs:
        warnings.warn(
            f"warm_up is {warm_up} and epochs is {method.epochs}, so that {type(method).__name__} never gets "
            "beyond its warm-up; lower warm_up or raise epochs",
            stacklevel=5,  # where fit is called
        )


def check_views(method: MethodBase) -> None:
    """Refuse fewer than two views where a method compares them."""
    if method.needs_views and (method.views is None or "+" not in method.views):
        raise ValueError(
            f"views is {method.views!r}, but {type(method).__name__} compares several views of each example; set "
            "views='plain+jitter+jitter' for tables or 'weak+strong+strong' for images, or use a method that "
            "needs one view, such as IDGP"
        )


def check_pixels(views: str | None, x: Array) -> None:
    """Refuse floats outside [0, 1] where views change colours."""
    changes = set((views or "plain").split("+")) - {"plain", "jitter", "weak"}
    if changes and x.ndim == 4 and x.dtype.kind == "f" and not (x.min() >= 0 and x.max() <= 1):
        raise ValueError(
            f"X holds pixels from {x.min():g} to {x.max():g}, but the views {sorted(changes)} need bytes (uint8) "
            "or floats from 0 to 1; convert the images, or use the view 'weak'"
        )


def check_weights(sample_weight: Any, x: Array) -> Array:
    """Return the weight of each row: by default all are alike, and so they are if it is a single number."""
    given = None if sample_weight is None else as_floats(sample_weight, "sample_weight")
    if given is not None and given.ndim == 0:
        given = np.full(len(x), given)
    weights: Array = _check_sample_weight(given, x, dtype=np.float64, ensure_non_negative=True)
    return weights
