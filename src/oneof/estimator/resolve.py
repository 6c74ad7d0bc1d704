"""The most likely candidate of every row by models that have not seen it, as sure as they have earned to be."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.outside import fitted_rate, out_of_fold, rows_to_split, with_outside
from oneof.estimator.together import fit_together
from oneof.io.words import shown
from oneof.labels import Disambiguation, decide, encode_weights

Folds = Sequence[tuple[NDArray[Any], NDArray[Any]]]
_SHARPNESS = (0.05, 5.0)  # least and largest power of the probabilities


def resolve(
    model: PartialLabelClassifier,
    X: Any,
    y: Any,
    folds: int = 5,
    random_state: int | None = 0,
    separator: str | None = None,
) -> Disambiguation:
    """Say for every row which of its candidates is the most likely, by models that have not seen the row.

    A model knows its own rows by heart and agrees with what it was told about them. Here each row is judged by a
    model that was fitted on the other folds, and its probabilities p are weighed as they deserve: the chance of
    candidate j is ``pi_j p_j^lambda``, up to a factor, with the weights pi of y (1 on plain sets) and the one
    lambda that maximises ``sum_i log sum_j pi_ij softmax(lambda log p_i)_j``, the likelihood of all candidates:
    without true labels, this is what shows whether models are too sure. With ``outside=`` of the model labels off
    the set have weights, too.

    Parameters
    ----------
    model : PartialLabelClassifier
        A method with its settings; copies of it are fitted.
    X, y, separator
        As for `fit`. Votes (:func:`oneof.from_votes`) gain most.
    folds : int, default=5
        Into how many parts the rows are split.
    random_state : int or None, default=0
        Of the split.

    Returns
    -------
    Disambiguation
        Labels, probabilities and margins to the second.
    """
    if not isinstance(model, PartialLabelClassifier):
        raise TypeError(f"model is {shown(model, 60)}, but must be a method with settings, such as oneof.IDGP()")
    weights, names = encode_weights(y, separator=separator)
    X = rows_to_split(X, weights, folds, random_state)
    log_p = out_of_fold(model, X, weights, folds, random_state)
    rate = fitted_rate(log_p, weights) if model.outside == "auto" else float(model.outside)
    return decide(calibrated_posterior(log_p, with_outside(weights, rate) if rate else weights), names, weights)


def held_out_log_proba(
    model: Any, X: Any, sets: Any, split: Folds, advance: Callable[[float], None] = lambda share: None
) -> NDArray[np.float64]:
    """Return the logarithms of class probabilities (n, K), of each row by a copy of the model fitted without it.

    ``sets`` are candidate sets over all classes, ``split`` the training and held-out rows of each fold, and
    ``advance`` is told each share of the work that is done.
    """
    models = [clone(model) for _ in split]
    given = [{"X": _safe_indexing(X, train), "y": _safe_indexing(sets, train)} for train, _ in split]
    if isinstance(model, PartialLabelClassifier):
        step = 1 / (len(split) * model.epochs)
        fit_together(models, [each | {"callbacks": [lambda report: advance(step)]} for each in given])
    else:  # any other classifier has no epochs
        for fitted, each in zip(models, given, strict=True):
            fitted.fit(**each)
            advance(1 / len(split))
    log_p = np.zeros(sets.shape)
    for (_, rest), fitted in zip(split, models, strict=True):
        log_p[rest] = fitted.predict_log_proba(_safe_indexing(X, rest))
    return log_p


def calibrated_posterior(log_p: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``pi_j p_j^lambda`` (n, K), scaled to sum to one, with the lambda of `resolve`."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights.astype(np.float64))

    def loss(log_power: float) -> float:
        powered = np.exp(log_power) * log_p
        return float((logsumexp(powered, axis=1) - logsumexp(powered + log_weights, axis=1)).mean())

    best = minimize_scalar(loss, bounds=np.log(_SHARPNESS), method="bounded").x
    logs = np.exp(best) * log_p + log_weights
    posterior: NDArray[np.float64] = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return posterior
