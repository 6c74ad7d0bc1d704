"""What a fit refuses or warns of before it begins: settings that do not fit the method, each other or the rows."""

import warnings

from oneof.estimator.method_base import MethodBase
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
