"""Arguments of the processes, checked: labels, scores, numbers of classes, rates and seeds."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneof.errors import InputError
from oneof.io.arguments import as_array, as_floats
from oneof.io.words import shown

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

_LARGEST_SCORE = 1e9  # larger floats lack the decimals that a probability needs
_MOST_CLASSES = 10**5  # a matrix of chances has as many rows and columns


def true_labels(y: ArrayLike, n_classes: int) -> Labels:
    """Return true labels as an array; refuse anything but class numbers."""
    labels = as_array(y, "y")
    expected = f"must hold the numbers 0 to {n_classes - 1} of the classes, one for each row"
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"y has shape {labels.shape}, but {expected}")
    if labels.dtype.kind not in "ui":
        raise InputError(f"y holds {labels.dtype}, but {expected}")
    for extreme in (labels.min(), labels.max()):
        if not 0 <= extreme < n_classes:
            raise InputError(f"y holds {extreme}, but {expected}")
    return labels.astype(np.intp)


def scaled_scores(y: ArrayLike, scores: ArrayLike, temperature: float) -> tuple[Labels, Floats]:
    """Return the true labels, and ``scores / temperature`` as a new array (n, K)."""
    check("temperature", temperature, Real, lambda value: 0 < value < np.inf, "a number > 0")
    logits = as_floats(scores, "scores")
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InputError(f"scores has shape {logits.shape}, but must be (n, K) for n labels and K >= 2 classes")
    labels = true_labels(y, logits.shape[1])
    if len(labels) != len(logits):
        raise InputError(f"scores has {len(logits)} rows, but must have one for each of the {len(labels)} labels")
    with np.errstate(over="ignore"):
        logits /= temperature
    outside = ~(np.abs(logits) <= _LARGEST_SCORE)  # also true for NaN
    if outside.any():
        row = int(outside.any(1).argmax())
        raise InputError(
            f"scores / temperature is {logits[row][outside[row]][0]} in row {row}, but must lie within "
            f"±{_LARGEST_SCORE:g}; pass logits, or log-probabilities from a log-softmax"
        )
    return labels, logits


def class_count(n_classes: int) -> int:
    """Return K; refuse anything but a whole number from 2."""
    expected = f"a whole number >= 2 and at most {_MOST_CLASSES}"
    check("n_classes", n_classes, Integral, lambda value: 2 <= value <= _MOST_CLASSES, expected)
    return int(n_classes)


def check_rate(rate: float) -> None:
    """Refuse a rate outside [0, 1]."""
    check("rate", rate, Real, lambda value: 0 <= value <= 1, "a number in [0, 1]")


def generator(seed: int) -> np.random.Generator:
    """Return the generator of the draws; refuse anything but a whole number from 0 as seed."""
    check("seed", seed, Integral, lambda value: value >= 0, "a whole number >= 0")
    return np.random.default_rng(seed)


def check(name: str, value: Any, kind: type, holds: Callable[[Any], bool], expected: str) -> None:
    """Refuse a value of another kind, or for which ``holds`` is false; ``expected`` completes the message."""
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise InputError(f"{name} is {shown(value)}, but must be {expected}")
