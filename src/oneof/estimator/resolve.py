"""The most likely candidate of every row by models that have not seen it, as sure as they have earned to be."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from oneof.errors import KindError
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.held_out import Folds, fitted_on_others, folds_of, held_out_log_proba, weighted_if_needed
from oneof.estimator.outside import fitted_rate, rows_to_split, with_outside
from oneof.io.words import shown
from oneof.labels import Disambiguation, SparseSets, decide, dense_form, encode_sets, most_likely
from oneof.labels.sparse_sets import AnySets, row_blocks
from oneof.train.rows import SCALINGS

_SHARPNESS = (0.05, 5.0)  # least and largest power of the probabilities


class _Judged(NamedTuple):
    loss: float  # minus the mean log-likelihood of the candidates, of rows that no model has seen
    found: Disambiguation


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

    For tables whose ``scaling`` the model leaves open (None) all of this is done with each scaling, which takes
    twice the fits, and what makes the candidates likelier is returned; ``scaling`` of the result says which it
    was. A model that names its ``scaling`` is taken as it is. True labels play no part.

    Parameters
    ----------
    model : PartialLabelClassifier
        A method with its settings; copies of it are fitted.
    X, y : as for `fit`
        Rows and their candidate sets. Votes (:func:`oneof.from_votes`) gain most.
    folds : int, default=5
        Into how many parts the rows are split.
    random_state : int or None, default=0
        Of the split.
    separator : str, optional
        Splits strings such as ``"cat|dog"``.

    Returns
    -------
    Disambiguation
        Labels, probabilities and margins to the second, and the chosen ``scaling``.

    Examples
    --------
    >>> import numpy as np
    >>> from oneof import CC
    >>> X = np.repeat(np.eye(2), 20, 0)
    >>> sets = [["a"]] * 15 + [["a", "b"]] * 10 + [["b"]] * 15
    >>> found = resolve(CC(epochs=20, device="cpu", random_state=0), X, sets)
    >>> found.label[15:25].tolist()
    ['a', 'a', 'a', 'a', 'a', 'b', 'b', 'b', 'b', 'b']
    """
    if not isinstance(model, PartialLabelClassifier):
        raise KindError(f"model is {shown(model, 60)}, but must be a method with settings, such as oneof.IDGP()")
    sets, names = encode_sets(y, separator=separator)
    X = rows_to_split(X, sets, folds, random_state)
    split = folds_of(len(sets), folds, random_state)
    if model.scaling is not None or X.ndim != 2:  # images
        return _judged(model, X, sets, names, split).found
    ways = {
        scaling: _judged(clone(model).set_params(scaling=scaling), X, sets, names, split) for scaling in SCALINGS
    }
    best = min(ways, key=lambda scaling: ways[scaling].loss)
    ways[best].found.scaling = best
    return ways[best].found


def _judged(model: PartialLabelClassifier, X: Any, sets: AnySets, names: NDArray[Any], split: Folds) -> _Judged:
    """Do what `resolve` does, with the scaling of the model."""
    if isinstance(sets, SparseSets) and model.outside == 0:
        fitted = fitted_on_others(model, X, weighted_if_needed(sets), split)
        parts = [(each, rest) for each, (_, rest) in zip(fitted, split, strict=True)]
        return _judged_in_blocks(parts, X, sets, names)
    weights = dense_form(sets)
    log_p = held_out_log_proba(model, X, weighted_if_needed(weights), split)
    rate = fitted_rate(log_p, weights) if model.outside == "auto" else float(model.outside)
    loss, posterior = _calibrated(log_p, with_outside(weights, rate) if rate else weights)
    loss -= float(np.log1p(-rate))  # sets hold their label with the chance 1 - rate
    return _Judged(loss, decide(posterior, names, weights))


def _judged_in_blocks(fitted: Any, X: Any, sets: SparseSets, names: NDArray[Any]) -> _Judged:
    """Do what `_judged` does without a table of all rows and classes: each lambda asks the models anew."""
    parts = [(each, rest[rows]) for each, rest in fitted for rows in row_blocks(sets[rest])]

    def blocks() -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        for each, rows in parts:
            yield rows, each.predict_log_proba(_safe_indexing(X, rows)).astype(np.float64)

    log_p, log_weights = np.empty(sets.matrix.nnz), _logs(sets.matrix.data)  # at the candidates
    for rows, block in blocks():
        some = sets[rows]
        log_p[sets.places(rows)] = block[some.rows, some.matrix.indices]

    def on_sets(log_power: float) -> NDArray[np.float64]:
        return np.logaddexp.reduceat(np.exp(log_power) * log_p + log_weights, sets.matrix.indptr[:-1])

    def loss(log_power: float) -> float:
        power = np.exp(log_power)  # no sum below vanishes, since the largest p is at least 1/K
        whole = sum(np.log(np.exp(power * block).sum(1)).sum() for _, block in blocks())
        return float((whole - on_sets(log_power).sum()) / len(sets))

    best = minimize_scalar(loss, bounds=np.log(_SHARPNESS), method="bounded")
    chances = np.exp(np.exp(best.x) * log_p + log_weights - np.repeat(on_sets(best.x), sets.sizes))
    return _Judged(float(best.fun), _decided(sets, chances, names))


def _decided(sets: SparseSets, chances: NDArray[np.float64], names: NDArray[Any]) -> Disambiguation:
    """Return the most likely candidate of every row by a chance for each candidate."""
    starts, best = sets.matrix.indptr[:-1], most_likely(sets.with_values(chances))
    first = np.maximum.reduceat(chances, starts)
    others = np.where(sets.matrix.indices == np.repeat(best, sets.sizes), 0.0, chances)
    return Disambiguation(names[best], first, first - np.maximum.reduceat(others, starts))


def calibrated_posterior(log_p: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``pi_j p_j^lambda`` (n, K), scaled to sum to one, with the lambda of `resolve`."""
    return _calibrated(log_p, weights)[1]


def _calibrated(log_p: NDArray[Any], weights: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
    """Return the loss that lambda minimises, and the posterior."""
    log_weights = _logs(weights)

    def loss(log_power: float) -> float:
        return float(_losses(log_power, log_p, log_weights).mean())

    best = minimize_scalar(loss, bounds=np.log(_SHARPNESS), method="bounded")
    return float(best.fun), _posterior(best.x, log_p, log_weights)


def _logs(weights: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(weights.astype(np.float64))
    return logs


def _losses(log_power: float, log_p: NDArray[Any], log_weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return minus the log-likelihood of the candidates of each row (n,)."""
    powered = np.exp(log_power) * log_p
    losses: NDArray[np.float64] = logsumexp(powered, axis=1) - logsumexp(powered + log_weights, axis=1)
    return losses


def _posterior(log_power: float, log_p: NDArray[Any], log_weights: NDArray[Any]) -> NDArray[np.float64]:
    logs = np.exp(log_power) * log_p + log_weights
    posterior: NDArray[np.float64] = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return posterior
