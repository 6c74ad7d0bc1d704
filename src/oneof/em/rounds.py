"""The rounds of expectation-maximisation: labels from the probabilities of others' fits, fits on these labels."""

from typing import Any, NamedTuple

import numpy as np

from oneof.em.estimators import Array, FittedCopies, fit_copies
from oneof.labels import CandidateKFold, posterior


class Settled(NamedTuple):
    """What the rounds end with."""

    distributions: Array  # r (n, K)
    fitted: FittedCopies  # on all rows
    history: dict[str, list[float]]


def learn(
    estimator: Any, x: Array, candidates: Array, weight: Array, rounds: int, folds: int, tol: float, seed: int
) -> Settled:
    """Learn from candidate sets (n, K) of 0 and 1, or of weights s >= 0.

    r starts as ``s_ij / sum_k s_ik``. In every round (E) ``r_ij = s_ij p_j(x_i) / sum_k s_ik p_k(x_i)``, where p
    is fitted (M) on the rows of the other folds, row i once for each candidate j with the weight r_ij of the round
    before. After the last round p is fitted on all rows. Where no row has a choice, there are no rounds. Rows of
    weight 0 are only predicted.
    """
    r = posterior(np.ones(candidates.shape), candidates)
    history: dict[str, list[float]] = {"loss": [], "change": []}
    used = np.flatnonzero(weight > 0)
    if len(used) > 1 and (np.count_nonzero(candidates[used], axis=1) > 1).any():
        splitter = CandidateKFold(min(folds, len(used)), shuffle=True, random_state=seed)
        parts = list(splitter.split(None, candidates[used] > 0))
        for _ in range(rounds):
            p = _out_of_fold(estimator, x[used], r[used], weight[used], parts)
            after = posterior(p, candidates[used])
            history["loss"].append(_loss(p, candidates[used], weight[used]))
            change = np.average(np.abs(after - r[used]).sum(1) / 2, weights=weight[used])
            history["change"].append(float(change))
            r[used] = after
            if change <= tol:
                break
    fitted = fit_copies(estimator, x, r, weight)
    unused = np.flatnonzero(weight == 0)
    if unused.size:
        r[unused] = posterior(fitted.probabilities(x[unused], r.shape[1]), candidates[unused])
    return Settled(r, fitted, history)


def _out_of_fold(estimator: Any, x: Array, r: Array, weight: Array, parts: list[tuple[Array, Array]]) -> Array:
    """Return the probabilities (n, K) of every row by a fit that has not seen it."""
    p = np.zeros_like(r)
    for others, rows in parts:
        p[rows] = fit_copies(estimator, x[others], r[others], weight[others]).probabilities(x[rows], r.shape[1])
    return p


def _loss(p: Array, candidates: Array, weight: Array) -> float:
    """Return the mean of ``-log sum_k s_k p_k``; 0 counts as the resolution of a float: forests give zeros."""
    mass = (p * candidates).sum(1)
    return float(-np.average(np.log(np.clip(mass, np.finfo(float).eps, 1.0)), weights=weight))
