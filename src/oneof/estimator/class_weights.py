"""Weights of classes: what they mean for rows whose class is only known to be one of some candidates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.errors import InputError
from oneof.io.schema import is_number
from oneof.io.words import listed
from oneof.labels import SparseSets
from oneof.labels.disambiguation import posterior
from oneof.labels.sparse_sets import AnySets
from oneof.train.rows import Array

BALANCED = "balanced"


def accepts_class_weight(value: Any) -> bool:
    """Tell whether a value can be ``class_weight``."""
    if isinstance(value, Mapping):
        return bool(value) and all(is_number(each) and each >= 0 for each in value.values())
    return value is None or (isinstance(value, str) and value == BALANCED)


def class_weighted(class_weight: Any, weight: Array, candidates: AnySets, classes: NDArray[Any]) -> Array:
    """Return the weights of rows (n,), each times the mean weight of its candidates.

    With q_ij = s_ij / sum_k s_ik, uniform on plain sets, row i counts ``w_i sum_j q_ij c_j``. Balanced are
    ``c_j = sum_i w_i / (K n_j)`` with the expected class frequencies ``n_j = sum_i w_i q_ij``. On plain labels
    both are what scikit-learn's class weights are.
    """
    q: Any = _shares(candidates)  # (n, K)
    if isinstance(class_weight, str):
        frequency = weight @ q  # (K,)
        possible = frequency > 0
        c = weight.sum() / (len(classes) * np.where(possible, frequency, 1)) * possible
    else:
        unknown = [name for name in class_weight if name not in classes.tolist()]
        if unknown:
            raise InputError(
                f"class_weight names {listed(unknown)}, but the classes are {listed(classes)}; name some of these"
            )
        c = np.array([class_weight.get(name, 1.0) for name in classes.tolist()], dtype=np.float64)
    weighted: Array = weight * (q @ c)
    return weighted


def _shares(candidates: AnySets) -> Any:
    """Return s_ij / sum_k s_ik (n, K), sparse where the sets are."""
    if not isinstance(candidates, SparseSets):
        return posterior(np.ones(candidates.shape), candidates)
    s = candidates.matrix.data.astype(np.float64)
    return candidates.with_values(s / np.bincount(candidates.rows, s)[candidates.rows])
