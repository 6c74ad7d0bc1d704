"""The queue: how likely each row's answer is wrong, by models that have not seen the row, and why."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp

from oneof.labels import Votes
from oneof.review.held_out import Predictions
from oneof.review.neighbours import AROUND

Floats = NDArray[np.float64]

REASONS = {  # by name, in the order of the columns of `Ranking.strengths`
    "outside": "truth probably outside the set",
    "single": "single candidate that the model does not believe",
    "doubtful": "doubtful choice within the set",
    "votes": "annotators disagree",
    "twin": "near-duplicate with another answer",
}
NOTHING = "nothing speaks against it"
_CLEAR = 2 / 3  # share of votes from which on annotators agree
_NEAR = 0.2  # of the median distance to the nearest row: so near is a near-duplicate
_WEAKEST = 0.02  # chance of a wrong answer from which on a reason is named
_SPREAD = 0.02  # of the neighbours' answers is shared out evenly: ten of them are never sure
_PRIOR_ROWS = 19  # rows with their truth inside, which the estimate of the share outside begins with
_STARTS = (-4.0, -2.0)  # of logit epsilon
_SAMPLE = 5000  # rows on which these are fitted
_TINY = 1e-12
_POWERS, _RATES = (-4.0, 2.0), (-9.0, 0.0)  # bounds of the logarithms of lambda, mu and nu, and of logit epsilon


@dataclass(frozen=True, eq=False)
class Ranking:
    """What held-out predictions say of n rows over K classes."""

    posterior: Floats  # (n, K): chance of every class, candidate or not
    answer: NDArray[np.intp]  # (n,): the most likely candidate
    prediction: NDArray[np.intp]  # (n,): the model's answer without regard to the candidates
    outside: Floats  # (n,): chance that the truth is no candidate
    wrong: Floats  # (n,): chance that the answer is wrong
    strengths: Floats  # (n, R): what each reason contributes to it
    twin: NDArray[np.intp]  # (n,): a near-duplicate, -1 where there is none
    order: NDArray[np.intp]  # (n,): the rows, those first that deserve a second look most

    @cached_property
    def reason(self) -> NDArray[Any]:
        """The name of the main reason of each row, '' where nothing speaks against its answer."""
        names = np.array([*REASONS, ""])
        best = self.strengths.argmax(1)
        chosen: NDArray[Any] = names[np.where(self.strengths.max(1) >= _WEAKEST, best, len(REASONS))]
        return chosen

    def reason_of(self, row: int) -> str:
        """Return the name of the main reason of one row."""
        strength = self.strengths[row]
        return [*REASONS][int(strength.argmax())] if strength.max() >= _WEAKEST else ""

    @property
    def rank(self) -> NDArray[np.intp]:
        """The place of each row in the queue, from 1."""
        places = np.empty(len(self.order), np.intp)
        places[self.order] = np.arange(1, len(self.order) + 1)
        return places


def rank(
    found: Predictions,
    weights: NDArray[Any],
    counts: NDArray[Any] | None = None,
    beyond: NDArray[Any] | None = None,
    answer: NDArray[np.intp] | None = None,
) -> Ranking:
    """Rank rows by the chance that their answer is wrong.

    Parameters
    ----------
    found : Predictions
        Predictions by models that have not seen the rows, and the rows' neighbours.
    weights : array (n, K)
        Candidate sets, or their weights pi.
    counts : array (n, K), optional
        How many annotators named each class.
    beyond : array (n, K), optional
        Of votes, the weights of the classes that are no candidates, see `weights_beyond`.
    answer : array (n,), optional
        The answers to judge, by default the most likely candidates.

    Notes
    -----
    The chance of class j is, up to a factor, ``q_j pi_j (1 - epsilon)`` for candidates and ``q_j epsilon s / (K -
    s)`` for others: with probability epsilon the truth is outside a set of size s, which then is any of the sets
    of this size without it. ``q = softmax(lambda log p + mu log p' + nu log p'')`` has three predictions that do
    not know the row's own set: p is the model's; p' is the mean of this posterior (with mu = nu = 0) over the
    nearest rows of the same fold, whose models have not seen the row either; p'' is the mean of ``pi / sum pi``
    over the nearest of all rows. lambda, mu, nu and epsilon maximise the likelihood of all sets; no true label is
    used. Single candidates have an epsilon of their own where the likelihood gains enough by it (BIC).
    Votes say themselves how likely other classes are: with ``beyond`` there is no epsilon, and the chance is
    ``q_j pi_j`` for all classes.
    """
    log_p = np.asarray(found.log_p, dtype=np.float64)
    pi = np.asarray(weights, dtype=np.float64)
    alone = posterior_of(log_p[None], pi, beyond)
    posterior = alone
    if len(pi) > AROUND:
        shares = pi / pi.sum(1, keepdims=True)
        around = [_log_mean(alone, found.fellows), _log_mean(shares, found.near)]
        posterior = posterior_of(np.stack([log_p, *around]), pi, beyond)
    inside = pi > 0
    if answer is None:
        answer = np.where(inside, posterior, -1).argmax(1)
    each = np.arange(len(pi))
    outside = np.where(inside, 0, posterior).sum(1)
    before = 1 - posterior[each, answer]
    twin = _twins(found, answer)
    wrong = np.where(twin < 0, before, _wrong_beside(posterior, answer, twin))
    strengths = _strengths(outside, before, np.maximum(wrong - before, 0), inside.sum(1), counts)
    wrong = np.maximum(wrong, before)
    return Ranking(
        posterior, answer, log_p.argmax(1), outside, wrong, strengths, twin, np.argsort(-wrong, kind="stable")
    )


def weights_beyond(votes: Votes) -> Floats:
    """Return the likelihood of each row's votes for classes that nobody named (n, K), as weights are scaled."""
    likelihood = votes.posterior / np.maximum(votes.posterior.mean(0), _TINY)
    largest = np.where(votes.candidates, likelihood, 0).max(1, keepdims=True)
    return np.where(votes.candidates, 0, likelihood / np.maximum(largest, _TINY))


def posterior_of(predictions: Floats, weights: Floats, beyond: Floats | None = None) -> Floats:
    """Return the chance of every class (n, K) from several log-predictions (m, n, K), as `rank` says."""
    n = len(weights)
    some = np.arange(n) if n <= _SAMPLE else np.random.default_rng(0).choice(n, _SAMPLE, replace=False)
    best = _fitted(predictions[:, some], _Sets(weights[some], None if beyond is None else beyond[some]))
    joint = _logits(best, predictions) + _Sets(weights, beyond).log_weights(best)
    chance: Floats = np.exp(log_softmax(joint, axis=1))
    return chance


def _fitted(known: Floats, sets: "_Sets") -> Floats:
    """Return the parameters: logarithms of the powers, and the logits of epsilon for sets and for singles.

    A model that is sure and wrong about a few rows looks like single candidates that are wrong. So singles have an
    epsilon of their own only where that earns what BIC asks of a parameter: half of log n in log-likelihood.
    """
    powers, n = len(known), known.shape[1]

    def fit(sets: _Sets, of_singles: tuple[float, float]) -> Any:
        # Surprising sets are explained by truths outside or by predictions too sure: begin on either side.
        starts = [np.array([0.0] + [-2.0] * (powers - 1) + [rate] * 2) for rate in _STARTS[: 1 + sets.modelled]]
        bounds = [*[_POWERS] * powers, _RATES, of_singles]
        ends = [minimize(_loss, start, (known, sets), "L-BFGS-B", True, bounds=bounds) for start in starts]
        return min(ends, key=lambda end: float(end.fun))

    best = fit(sets, _RATES)
    if sets.modelled and sets.single.any() and not sets.single.all():
        alike = fit(sets.alike(), (_RATES[0], _RATES[0]))
        if n * (alike.fun - best.fun) < np.log(n) / 2:
            return np.append(alike.x[:-1], alike.x[-2])
    found: Floats = best.x
    return found


class _Sets:
    """Candidate sets as the likelihood needs them; parameters end with logits of epsilon, for sets and singles."""

    def __init__(self, weights: Floats, beyond: Floats | None) -> None:
        k, self.inside = weights.shape[1], weights > 0
        size = self.inside.sum(1, keepdims=True)
        self.single, self.modelled = size == 1, beyond is None
        with np.errstate(divide="ignore"):
            others = size / np.maximum(k - size, 1) * (size < k) if beyond is None else beyond
            self.fixed = np.where(self.inside, np.log(weights), np.log(others))

    def alike(self) -> Self:
        """Return the same sets, of which single candidates are as any other."""
        other = copy(self)
        other.single = np.zeros_like(self.single)
        return other

    def rate(self, parameters: Floats) -> Floats:
        """Return epsilon of each row (n, 1)."""
        chance: Floats = expit(np.where(self.single, parameters[-1], parameters[-2]))
        return chance

    def log_weights(self, parameters: Floats) -> Floats:
        """Return the logarithm of what multiplies q (n, K)."""
        if not self.modelled:
            return self.fixed
        rate = self.rate(parameters)
        return self.fixed + np.where(self.inside, np.log1p(-rate), np.log(rate))


def _logits(parameters: Floats, predictions: Floats) -> Floats:
    powers = np.exp(parameters[:-2])
    found: Floats = log_softmax(sum(map(np.multiply, powers, predictions)), axis=1)
    return found


def _loss(parameters: Floats, predictions: Floats, sets: _Sets) -> tuple[float, Floats]:
    """Return minus the mean log-likelihood of the sets, with priors, and its gradient."""
    n, powers = predictions.shape[1], np.exp(parameters[:-2])
    q = _logits(parameters, predictions)
    joint = q + sets.log_weights(parameters)
    total = logsumexp(joint, axis=1, keepdims=True)
    posterior, rates = np.exp(joint - total), expit(parameters[-2:])
    value = total.sum() + _PRIOR_ROWS * np.log1p(-rates).sum() - (parameters[:-2] ** 2).sum() / 4
    surprise = posterior - np.exp(q)
    by_power = np.array([(each * surprise).sum() for each in predictions]) * powers - parameters[:-2] / 2
    by_rate = -_PRIOR_ROWS * rates
    if sets.modelled:
        surplus = np.where(sets.inside, 0, posterior).sum(1, keepdims=True) - sets.rate(parameters)
        by_rate += np.array([surplus[~sets.single].sum(), surplus[sets.single].sum()])
    return -float(value) / n, -np.concatenate([by_power, by_rate]) / n


def _log_mean(distributions: Floats, neighbours: NDArray[Any]) -> Floats:
    """Return the logarithm of the mean over neighbours (n, k) of distributions (n, K)."""
    mean = sum(distributions[column] for column in neighbours.T) / neighbours.shape[1]
    found: Floats = np.log((1 - _SPREAD) * mean + _SPREAD / distributions.shape[1])
    return found


def _twins(found: Predictions, answer: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a near-duplicate of each row that has another answer, -1 where there is none."""
    distance, twin = found.distance, found.near[:, 0]
    finite = distance[np.isfinite(distance)]
    near = distance <= (_NEAR * np.median(finite) if len(finite) else 0)
    return np.where(near & (answer[twin] != answer), twin, -1).astype(np.intp)


def _wrong_beside(posterior: Floats, answer: NDArray[np.intp], twin: NDArray[np.intp]) -> Floats:
    """Return the chance that the answer is wrong if the near-duplicate has the same truth."""
    both = posterior * posterior[twin]
    total = both.sum(1)
    share = both[np.arange(len(both)), answer] / np.where(total > 0, total, 1)
    return 1 - np.where(total > 0, share, 0.5)


def _strengths(
    outside: Floats, wrong: Floats, beside: Floats, size: NDArray[Any], counts: NDArray[Any] | None
) -> Floats:
    """Return what each reason contributes to the chance of a wrong answer (n, R)."""
    doubt = np.maximum(wrong - outside, 0)
    split = np.zeros(len(wrong), bool)
    if counts is not None:
        split = counts.max(1) < _CLEAR * counts.sum(1)
    single = size == 1
    by_reason = {
        "outside": np.where(single, 0, outside),
        "single": np.where(single, outside, 0),
        "doubtful": np.where(split, 0, doubt),
        "votes": np.where(split, doubt, 0),
        "twin": beside,
    }
    return np.stack([by_reason[name] for name in REASONS], 1)
