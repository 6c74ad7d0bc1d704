"""How reliable annotators are, and what their votes say of each row: Dawid and Skene's model, fitted by EM."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, gammaln, logit, logsumexp
from scipy.stats import beta

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

_ASSUMED = 10.0  # votes that the assumed accuracy of an annotator counts for
_ASSUMED_PER_CLASS = (
    3.0  # the same, of a row of a confusion matrix, times K; on simulated votes, fewer were too sure
)
_ROUNDS, _CLOSE = 200, 1e-6  # of EM; it ends when no probability of a label changes by more
_CORRELATIONS = (0.005, 0.01, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # that are tried
_PRIOR_OF_CORRELATION = (2.0, 12.0)  # Beta: some rows are hard for everybody, most often by about this much
_SAMPLE, _SAMPLE_ROUNDS = 2000, 50  # rows on which it is chosen, and rounds for each
_ROWS_PER_CLASS = 10  # of three votes and more, from which on the directions of confusion can be told
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Ballots:
    """Votes, each by one annotator on one row: the labels that it names, one of which it holds for true.

    A denial names labels that it holds for wrong.
    """

    shape: tuple[int, int, int]  # rows n, annotators A and classes K
    row: Numbers  # (V,)
    annotator: Numbers  # (V,)
    times: Floats  # (V,): how often the vote was cast
    denies: NDArray[np.bool_]  # (V,)
    vote: Numbers  # (T,): the vote to which each named label belongs
    label: Numbers  # (T,)

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Whether each vote names one label and no other (V,)."""
        single: NDArray[np.bool_] = np.bincount(self.vote, minlength=len(self.row)) == 1
        return single & ~self.denies

    def named(self, of: NDArray[np.bool_] | None = None) -> Floats:
        """How often each label was named on each row (n, K), by all votes but denials, or by some of them."""
        n, _, k = self.shape
        chosen = (~self.denies if of is None else of)[self.vote]
        vote, label = self.vote[chosen], self.label[chosen]
        return np.bincount(self.row[vote] * k + label, self.times[vote], n * k).reshape(n, k).astype(np.float64)


class Judgement(NamedTuple):
    """What `judge` found."""

    log_likelihood: Floats  # (n, K): log P(votes of row i | y = j), up to a constant for each row
    posterior: Floats  # (n, K): P(y = j | votes), with the shares of classes
    shares: Floats  # (K,): of the classes
    confusion: Floats  # (K, K): chance of each vote (columns) for each true class, of all annotators together
    accuracy: Floats  # (A,): how often the votes of each annotator are right
    correlation: float  # of votes on one row beyond what the true class explains


def judge(ballots: Ballots) -> Judgement:
    """Estimate annotators and rows together, by EM on the model of Dawid and Skene (1979).

    Annotator a answers l where the truth is j with chance ``C_a[j, l]``; of several named labels one is meant, a
    denial means none of those that it names. Each row of C_a is shrunk towards what all annotators answer, shifted
    to a's own accuracy (itself shrunk to that of all); what all answer, towards one accuracy for all classes.

    Votes on one row agree more often than so explained, because some rows are hard for everybody. With correlation
    rho the log-likelihood of n votes counts ``1 / (1 + (n - 1) rho)`` times, the design effect of cluster
    sampling; rho maximises the Dirichlet-multinomial likelihood of the votes times a prior.

    Two votes on a row tell how often answers come together, but not which of the two was wrong: without enough
    rows of three votes, confusion is taken to go both ways alike, and annotators differ in accuracy alone.
    """
    return _fit(ballots, _correlation(ballots), _ROUNDS)


def _correlation(ballots: Ballots) -> float:
    """Choose rho by rows with four votes or more, all annotators taken as one; three votes hardly tell."""
    counts = ballots.named(ballots.alone)
    counts = counts[counts.sum(1) >= 4]
    if len(counts) > _SAMPLE:
        counts = counts[np.random.default_rng(0).choice(len(counts), _SAMPLE, replace=False)]
    scores = beta.logpdf(_CORRELATIONS, *_PRIOR_OF_CORRELATION)
    for i, rho in enumerate(_CORRELATIONS if len(counts) else ()):
        found = _fit(from_counts(counts), rho, _SAMPLE_ROUNDS)
        scores[i] += _row_likelihoods(counts, found.confusion, found.shares, rho).sum()
    return _CORRELATIONS[int(np.argmax(scores))]


def _row_likelihoods(counts: Floats, confusion: Floats, shares: Floats, rho: float) -> Floats:
    """Log of P(votes of a row) when each row draws its own chances of answers from a Dirichlet distribution."""
    size = (1 - rho) / rho
    by_class = np.stack([(gammaln(counts + a) - gammaln(a)).sum(1) for a in size * confusion], 1)
    by_class -= (gammaln(counts.sum(1) + size) - gammaln(size))[:, None]
    return np.asarray(logsumexp(by_class + np.log(shares), axis=1))


def from_counts(counts: Floats) -> Ballots:
    """Return ballots of one annotator who stands for all: how often each label was named on each row (n, K)."""
    row, label = counts.nonzero()
    votes = len(row)
    return Ballots(
        (len(counts), 1, counts.shape[1]),
        row,
        np.zeros(votes, dtype=np.intp),
        counts[row, label].astype(np.float64),
        np.zeros(votes, dtype=bool),
        np.arange(votes),
        label,
    )


def _fit(ballots: Ballots, rho: float, rounds: int) -> Judgement:
    n, _, k = ballots.shape
    sums = _Sums(ballots, rho)
    named, denied = ballots.named(), ballots.named(ballots.denies)
    start = named + 1 / k - denied * (denied > named)
    start = np.maximum(start, _TINY)
    posterior = start / start.sum(1, keepdims=True)
    answers = sums.answers(posterior, np.full((len(ballots.vote), k), 1.0))
    for _ in range(rounds):
        shares = (posterior.sum(0) + 1) / (n + k)
        confusion, chances, accuracy = _annotators(answers, sums)
        of_vote = sums.of_votes(chances)
        log_likelihood = sums.of_rows(np.log(of_vote))
        log_posterior = log_likelihood + np.log(shares)
        before, posterior = posterior, np.exp(log_posterior - logsumexp(log_posterior, axis=1, keepdims=True))
        if np.abs(posterior - before).max() < _CLOSE:
            break
        answers = sums.answers(posterior, chances[sums.pair] / of_vote[ballots.vote])
    return Judgement(log_likelihood, posterior, shares, confusion, accuracy, rho)


class _Sums:
    """Sums over the votes of a row, the labels of a vote, and the votes of an annotator for a label: a pair."""

    def __init__(self, ballots: Ballots, rho: float) -> None:
        n, annotators, k = ballots.shape
        self.shape, self.denies = ballots.shape, ballots.denies
        pairs, pair = np.unique(ballots.annotator[ballots.vote] * k + ballots.label, return_inverse=True)
        self.pair: Numbers = pair
        self.pair_annotator, self.pair_label = np.divmod(pairs, k)
        votes, terms = len(ballots.row), len(ballots.vote)
        on_row = np.bincount(ballots.row, ballots.times, n)
        counts = ballots.times / (1 + (np.maximum(on_row, 1) - 1) * rho)[ballots.row]  # the design effect
        self._rows: Any = sparse.csr_array((counts, (ballots.row, np.arange(votes))), (n, votes))
        self._votes: Any = sparse.csr_array((np.ones(terms), (ballots.vote, np.arange(terms))), (votes, terms))
        # Denials judge rows, not annotators: which label was meant is all but open.
        counted = counts[ballots.vote] * ~ballots.denies[ballots.vote]
        self._pairs: Any = sparse.csr_array((counted, (pair, np.arange(terms))), (len(pairs), terms))
        self._by_annotator: Any = _sums_by(self.pair_annotator, annotators)
        self._by_label: Any = _sums_by(self.pair_label, k)
        self._row_of_term = ballots.row[ballots.vote]
        self.tells_directions = bool((on_row >= 3).sum() >= _ROWS_PER_CLASS * k)

    def of_votes(self, chances: Floats) -> Floats:
        """Chance of each vote (V, K) by true class, from those of the pairs (P, K)."""
        total: Floats = self._votes @ chances[self.pair]
        return np.clip(np.where(self.denies[:, None], 1 - total, total), _TINY, 1.0)

    def of_rows(self, values: Floats) -> Floats:
        """Sum what votes say (V, K) over each row (n, K)."""
        total: Floats = self._rows @ values
        return total

    def answers(self, posterior: Floats, meant: Floats) -> Floats:
        """How often each pair occurred by true class (P, K); ``meant``: the chance that a label was meant."""
        total: Floats = self._pairs @ (posterior[self._row_of_term] * meant)
        return total

    def by_annotator(self, answers: Floats) -> Floats:
        """Sum over the labels of each annotator (A, ...)."""
        total: Floats = self._by_annotator @ answers
        return total

    def by_label(self, answers: Floats) -> Floats:
        """Sum over annotators (K, ...)."""
        total: Floats = self._by_label @ answers
        return total


def _sums_by(group: Numbers, groups: int) -> Any:
    return sparse.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), (groups, len(group)))


def _annotators(answers: Floats, sums: _Sums) -> tuple[Floats, Floats, Floats]:
    """Return the confusion of all (K, K), the chances of the pairs (P, K), and the accuracy of each annotator."""
    _, annotators, k = sums.shape
    together = sums.by_label(answers).T  # (K, K): truths, answers
    if not sums.tells_directions:
        together = (together + together.T) / 2
    right, assumed = (np.trace(together) + 1) / (together.sum() + 2), _ASSUMED_PER_CLASS * k
    one_coin = np.where(np.eye(k, dtype=bool), right, (1 - right) / (k - 1))
    confusion = (together + assumed * one_coin) / (together.sum(1, keepdims=True) + assumed)
    diagonal = np.diag(confusion)

    at_truth = sums.pair_label[:, None] == np.arange(k)  # (P, K)
    own = sums.by_annotator(answers)  # (A, K): votes by true class
    total = own.sum(1)
    expected = (own @ diagonal + _ASSUMED * right) / (total + _ASSUMED)
    correct = sums.by_annotator((answers * at_truth).sum(1))
    accuracy = (correct + _ASSUMED * expected) / (total + _ASSUMED)
    if annotators == 1 or (annotators == 2 and not sums.tells_directions):
        return confusion, confusion[:, sums.pair_label].T, accuracy
    shift = logit(accuracy) - logit(expected)
    hit = expit(logit(diagonal) + shift[:, None])  # (A, K)
    missed = (1 - hit) / (1 - diagonal)
    who = sums.pair_annotator
    chances = np.where(at_truth, hit[who], confusion[:, sums.pair_label].T * missed[who])
    if sums.tells_directions:
        chances = (answers + assumed * chances) / (own[who] + assumed)
    return confusion, chances, accuracy
