"""Scorers: quality on held-out candidate sets, as scikit-learn's ``scoring=`` takes it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from oneof.labels import check_same_rows, encode, encode_for_model, rows_text
from oneof.metrics import approximated_accuracy, covering_rate, set_log_likelihood

Scorer = Callable[..., float]


class CandidateScorer:
    """Judges a fitted classifier by the candidate sets of rows: the mean of a function of `oneof.metrics`.

    ``scorer(estimator, X, y)`` works for every classifier with ``predict_proba`` and ``classes_``, pipelines and
    those of scikit-learn included; ``y`` may be all that :func:`oneof.encode` takes.
    """

    def __init__(self, name: str, metric: Callable[[Any, Any], NDArray[Any]]) -> None:
        self.name, self.metric = name, metric

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the mean over the rows."""
        probabilities = estimator.predict_proba(X)
        candidates = encode_for_model(y, np.asarray(estimator.classes_))
        check_same_rows(len(probabilities), len(candidates))
        return float(self.metric(probabilities, candidates).mean())

    def __repr__(self) -> str:
        return f"oneof.SCORERS[{self.name!r}]"


def accuracy(y: Any, predicted: Any, truth: Any = None) -> float:
    """Return the share of predictions that are the true label: that of ``truth``, or else of ``y``."""
    named, given = ("y", y) if truth is None else ("truth", truth)
    sets, names = encode(given)
    several = np.flatnonzero(sets.sum(1) > 1)
    if several.size:
        raise ValueError(
            f"{named} has several labels in {rows_text(several)}, but accuracy needs the true label of every row: "
            'pass true labels, or use oneof.SCORERS["approximated_accuracy"]'
        )
    check_same_rows(len(predicted), len(sets))
    return float((names[sets.argmax(1)] == np.asarray(predicted)).mean())


# A dict, so that one is found by its name, and all of them together are scoring= of cross_validate.
SCORERS: dict[str, Scorer] = {
    metric.__name__: CandidateScorer(metric.__name__, metric)
    for metric in (approximated_accuracy, covering_rate, set_log_likelihood)
} | {"accuracy": make_scorer(accuracy)}
