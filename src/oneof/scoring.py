"""Scorers: quality on held-out candidate sets, as scikit-learn's ``scoring=`` takes it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from oneof.errors import InputError, KindError
from oneof.io.words import shown
from oneof.labels import SparseSets, check_same_rows, dense_form, encode_sets, encode_sets_for_model, rows_text
from oneof.labels.sparse_sets import row_blocks, set_sizes
from oneof.metrics import approximated_accuracy, covering_rate, set_log_likelihood

Scorer = Callable[..., float]
Metric = Callable[[Any, Any], NDArray[Any]]


class CandidateScorer:
    """Judges a fitted classifier by the candidate sets of rows: the mean of a function of `oneof.metrics`.

    ``scorer(estimator, X, y)`` works for every classifier with ``predict_proba`` and ``classes_``, pipelines and
    those of scikit-learn included; ``y`` may be all that :func:`oneof.encode` takes.
    """

    def __init__(self, name: str, metric: Metric) -> None:
        self.name, self.metric = name, metric

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the mean over the rows."""
        (values,) = row_values(estimator, X, y, [self.metric])
        return float(values.mean())

    def __repr__(self) -> str:
        return f"oneof.SCORERS[{self.name!r}]"


def row_values(estimator: Any, X: Any, y: Any, metrics: Sequence[Metric]) -> list[NDArray[Any]]:
    """Return what metrics say of each row (n,) by an estimator's probabilities.

    Of very many classes the estimator is asked block by block: no table of all rows and classes is made.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise KindError(
            f"estimator is {shown(estimator, 60)}, but must be a fitted classifier; pass one, then X and y"
        )
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise KindError(
            f"estimator is {shown(estimator, 60)}, which has no predict_proba; pass a classifier that has"
        )
    sets = y if isinstance(y, SparseSets) else encode_sets_for_model(y, np.asarray(estimator.classes_))
    if not isinstance(sets, SparseSets):
        probabilities = estimator.predict_proba(X)
        check_same_rows(len(probabilities), len(sets))
        return [metric(probabilities, sets) for metric in metrics]
    check_same_rows(_num_samples(X), len(sets))
    parts = []
    for rows in row_blocks(sets):
        probabilities, inside = estimator.predict_proba(_safe_indexing(X, rows)), dense_form(sets[rows])
        parts.append([metric(probabilities, inside) for metric in metrics])
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def accuracy(y: Any, predicted: Any, truth: Any = None) -> float:
    """Return the share of predictions that are the true label: that of ``truth``, or else of ``y``."""
    named, given = ("y", y) if truth is None else ("truth", truth)
    sets, names = encode_sets(given)
    several = np.flatnonzero(set_sizes(sets) > 1)
    if several.size:
        raise InputError(
            f"{named} has several labels in {rows_text(several)}, but accuracy needs the true label of every row: "
            'pass true labels, or use oneof.SCORERS["approximated_accuracy"]'
        )
    check_same_rows(len(predicted), len(sets))
    found = np.asarray(predicted)
    if len(found) and isinstance(names[0], str) != isinstance(found[0], str):
        raise InputError(
            f"{named} holds labels such as {shown(names[0], 40)} and the model predicts such as "
            f"{shown(found[0], 40)}, which is never equal: pass labels of the model's classes"
        )
    number = sets.matrix.indices if isinstance(sets, SparseSets) else sets.argmax(1)
    return float((names[number] == found).mean())


# A dict, so that one is found by its name, and all of them together are scoring= of cross_validate.
SCORERS: dict[str, Scorer] = {
    metric.__name__: CandidateScorer(metric.__name__, metric)
    for metric in (approximated_accuracy, covering_rate, set_log_likelihood)
} | {"accuracy": make_scorer(accuracy)}
