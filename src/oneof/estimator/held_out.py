"""Probabilities of rows by models that have not seen them: copies of one model, each fitted without a part."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from oneof.estimator.method_base import MethodBase
from oneof.labels import SparseSets, WeightedSets
from oneof.labels.sparse_sets import AnySets
from oneof.train.parallel.grouping import train_together

Folds = Sequence[tuple[NDArray[Any], NDArray[Any]]]


def folds_of(rows: int, folds: int, random_state: int | None) -> Folds:
    """Split rows at random: the rows to fit on and the held-out ones of each fold."""
    return list(KFold(folds, shuffle=True, random_state=random_state).split(np.zeros(rows)))


def weighted_if_needed(sets: AnySets) -> Any:
    """Return checked sets or weights as the y of a fit: a boolean matrix, dense or sparse, or `WeightedSets`."""
    matrix = sets.matrix if isinstance(sets, SparseSets) else sets
    return matrix if sets.dtype == bool else WeightedSets(matrix)


def held_out_log_proba(
    model: Any,
    X: Any,
    y: Any,
    split: Folds,
    sample_weight: ArrayLike | None = None,
    advance: Callable[[float], None] | None = None,
) -> NDArray[np.float64]:
    """Return the logarithms of class probabilities (n, K), of each row by a copy of the model fitted without it.

    ``y`` are candidate sets over all classes: a boolean frame or matrix, or `WeightedSets`. ``advance`` is told
    each share of the work that is done.
    """
    log_p = np.zeros(y.shape)
    fitted = fitted_on_others(model, X, y, split, sample_weight, advance)
    for one, (_, rest) in zip(fitted, split, strict=True):
        log_p[rest] = one.predict_log_proba(_safe_indexing(X, rest))
    return log_p


def fitted_on_others(
    model: Any,
    X: Any,
    y: Any,
    split: Folds,
    sample_weight: ArrayLike | None = None,
    advance: Callable[[float], None] | None = None,
) -> list[Any]:
    """Return for each fold a copy of the model that was fitted on the others; methods of ours train together."""
    weight = None if sample_weight is None else np.broadcast_to(np.asarray(sample_weight), y.shape[0])
    given = [{"X": _safe_indexing(X, train), "y": _safe_indexing(y, train)} for train, _ in split]
    if weight is not None:
        given = [each | {"sample_weight": weight[train]} for each, (train, _) in zip(given, split, strict=True)]
    models, share = [clone(model) for _ in split], 1 / len(split)
    if isinstance(model, MethodBase):
        told: dict[str, Any] = {}
        if advance is not None:
            told["callbacks"] = [lambda report: advance(share / model.epochs)]
        trials = [each.prepare(**known, **told) for each, known in zip(models, given, strict=True)]
        train_together(trials)
        return [each.finish(trial) for each, trial in zip(models, trials, strict=True)]
    for each, known in zip(models, given, strict=True):  # any other classifier has no epochs
        each.fit(**known)
        if advance is not None:
            advance(share)
    return models
