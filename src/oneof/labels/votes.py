"""Candidate sets from the labels that several annotators gave, with what the votes say of each label."""

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from oneof.errors import InputError, KindError
from oneof.io.words import shown
from oneof.labels.annotators import Ballots, Judgement, judge
from oneof.labels.ballots import Marks, Read, read_counts, read_long, read_wide
from oneof.labels.crowd import AGGREGATIONS, aggregated
from oneof.labels.validation import check_encoded
from oneof.labels.weighted import LEAST_WEIGHT, WeightedSets

_MANY = 2**53  # votes; more, no float counts


@dataclass(frozen=True, eq=False, repr=False)
class Votes(WeightedSets):
    """Candidate sets with the weights that votes give them; `from_votes` and `vote_counts` make them.

    Attributes
    ----------
    weights : array of shape (n, K)
        ``P(votes of the row | y = j)`` of the candidates j, the largest of each row 1; 0 for other labels.
    candidates : boolean array of shape (n, K)
        The labels that were named.
    classes : array of shape (K,)
        The name of each column.
    counts : array of shape (n, K)
        How often each label was named.
    posterior : array of shape (n, K)
        ``P(y = j | votes of the row)``, without features.
    consensus, quality : arrays of shape (n,)
        The most likely candidate of each row by its votes alone, and how likely it is.
    annotators : DataFrame or None
        For each annotator the number of votes, the accuracy (how often they are estimated to be right) and the
        agreement (how often others gave the same label to the same row). None where it is not known who voted.
    pairs : DataFrame or None
        Two annotators, on how many rows both voted, and on which share of them they agree; the worst first.
    confusion : array of shape (K, K)
        Chance of each answer (columns) for each true class, of all annotators together.
    correlation : float
        Of votes on one row beyond what its true class explains: how hard some rows are for everybody.
    tasks : array of shape (n,) or None
        The names of the rows, where votes came as a long table.

    Examples
    --------
    >>> from oneof import from_votes
    >>> votes = from_votes([["cat", "dog", "cat"], ["dog", None, "dog"], ["cat", "cat", "cat"]])
    >>> votes.consensus.tolist(), votes.counts.astype(int).tolist()
    (['cat', 'dog', 'cat'], [[2, 1], [0, 2], [3, 0]])
    """

    counts: NDArray[np.float64] = field(metadata={"rows": True})
    posterior: NDArray[np.float64] = field(metadata={"rows": True})
    annotators: Any
    pairs: Any
    confusion: NDArray[np.float64]
    correlation: float
    tasks: NDArray[Any] | None = field(metadata={"rows": True})

    @property
    def consensus(self) -> NDArray[Any]:
        """The most likely candidate of each row by its votes alone."""
        names: NDArray[Any] = self.classes[self._best]
        return names

    @property
    def quality(self) -> NDArray[np.float64]:
        """How likely the consensus is."""
        values: NDArray[np.float64] = self.posterior[np.arange(len(self)), self._best]
        return values

    @property
    def _best(self) -> NDArray[np.intp]:
        best: NDArray[np.intp] = np.where(self.candidates, self.posterior, -1.0).argmax(1)
        return best


def from_votes(
    votes: Any,
    classes: Any = None,
    min_votes: int = 1,
    *,
    long: tuple[Any, Any, Any] | None = None,
    tasks: Any = None,
    separator: str | None = None,
    denial: str | None = None,
    aggregate: str | None = None,
) -> Votes:
    """Turn the labels given by several annotators into candidate sets with weights.

    Each label that was named is a candidate. Its weight is the likelihood of the row's votes if it were the true
    label, by Dawid and Skene's model of annotators, which is estimated from all votes; see `Votes`.

    Parameters
    ----------
    votes : 2-d array, DataFrame or nested lists, one row per sample
        The label each annotator gave, one column an annotator; None, NaN, ``pandas.NA`` and ``""`` are missing
        votes, a list or set holds several labels, one of which the annotator holds for true. Nested lists may be
        ragged; then nobody knows who voted. With ``long`` a DataFrame with one row per vote.
    classes : sequence of str or int, optional
        All classes, in the order of the columns; by default the sorted labels of `votes`.
    min_votes : int, default=1
        How many annotators must name a label to make it a candidate.
    long : three column names, optional
        Those of sample, annotator and label, such as ``("task", "worker", "label")``.
    tasks : sequence, optional
        With ``long`` the samples in the order of the rows of X; by default in the order in which they come.
    separator : str, optional
        Splits strings such as ``"cat|dog"`` into several labels of one vote.
    denial : str, optional
        What stands before labels that an annotator excludes, such as ``"not "``. Where a row has nothing but
        denials, all other labels are its candidates.
    aggregate : {"dawid-skene", "glad", "mmsr"}, optional
        Let crowd-kit judge the votes instead (``pip install oneof[votes]``); votes of one label only.

    Returns
    -------
    Votes
        What `fit`, `score` and `disambiguate` take as y. ``candidates, classes = from_votes(...)`` works, too.

    Examples
    --------
    >>> votes = from_votes([["cat", "dog", "cat"], ["dog", None, "dog"], ["cat", "cat", "cat"]])
    >>> votes.candidates.tolist(), votes.consensus.tolist()
    ([[True, True], [False, True], [True, False]], ['cat', 'dog', 'cat'])
    """
    _check_arguments(min_votes, long, tasks, separator, denial, aggregate)
    marks = Marks(separator, denial)
    read = read_wide(votes, classes, marks) if long is None else read_long(votes, long, tasks, classes, marks)
    return _weighed(read, min_votes, aggregate)


def vote_counts(counts: Any, classes: Any = None, min_votes: int = 1) -> Votes:
    """Turn counts of votes into candidate sets with weights, as `from_votes` does.

    Parameters
    ----------
    counts : array or DataFrame of shape (n, K)
        How many annotators named each label; who they were is not known.
    classes : sequence of str or int, optional
        The name of each column; by default those of a DataFrame, else its number.
    min_votes : int, default=1
        How many annotators must name a label to make it a candidate.

    Returns
    -------
    Votes
        The candidates and their weights, which `fit` takes as y.

    Examples
    --------
    >>> vote_counts([[2, 1, 0], [0, 0, 3]], ["cat", "cow", "dog"]).candidates.tolist()
    [[True, True, False], [False, False, True]]
    """
    _check_min_votes(min_votes)
    return _weighed(read_counts(counts, classes), min_votes, None)


def _weighed(read: Read, min_votes: int, aggregate: str | None) -> Votes:
    ballots, counts = read.ballots, read.ballots.named()
    few, fix = f"reaches min_votes={shown(min_votes, 40)}", "lower min_votes or drop the rows"
    if min_votes == 1:
        few, fix = "is voted for", "drop the rows, or gather votes on them"
    candidates, names = check_encoded(
        _candidates(ballots, counts, min_votes),
        read.classes,
        f"no label {few} in {{rows}}, but every row needs at least one candidate label: {fix}",
    )
    found = judge(ballots)
    if aggregate is not None:
        found = aggregated(found, ballots, aggregate)
    log_weights = np.where(candidates, found.log_likelihood, -np.inf)
    weights = np.exp(log_weights - log_weights.max(1, keepdims=True))
    table, pairs = (None, None) if read.annotators is None else _tables(ballots, found, read.annotators)
    return Votes(
        weights=np.where(candidates, np.maximum(weights, LEAST_WEIGHT), 0.0),
        classes=names,
        counts=counts,
        posterior=found.posterior,
        annotators=table,
        pairs=pairs,
        confusion=found.confusion,
        correlation=found.correlation,
        tasks=read.tasks,
        numbered=read.numbered,
    )


def _candidates(ballots: Ballots, counts: NDArray[np.float64], min_votes: int) -> NDArray[np.bool_]:
    """The labels that enough annotators named; of rows with nothing but denials, those that fewest deny."""
    denied = ballots.named(ballots.denies)
    only_denied = ~counts.any(1, keepdims=True) & denied.any(1, keepdims=True)
    return np.where(
        only_denied, denied == denied.min(1, keepdims=True, initial=np.inf), counts >= min(min_votes, _MANY)
    )


def _tables(ballots: Ballots, found: Judgement, names: list[Any]) -> tuple[Any, Any]:
    """Return one line for each annotator, and one for each two who have rows in common."""
    n, annotators, k = ballots.shape
    vote = ballots.vote[ballots.alone[ballots.vote]]
    label = ballots.label[ballots.alone[ballots.vote]]
    who, row = ballots.annotator[vote], ballots.row[vote]
    common = _together(who, row, (annotators, n))
    agreed = _together(who, row * k + label, (annotators, n * k))
    with np.errstate(invalid="ignore"):
        agreement = _off_diagonal(agreed) / _off_diagonal(common)
    table = pd.DataFrame(
        {
            "votes": np.bincount(ballots.annotator, minlength=annotators),
            "accuracy": found.accuracy,
            "agreement": agreement,
        },
        index=pd.Index(names, name="annotator"),
    )
    upper = sparse.triu(common, k=1).tocoo()
    (first, second), index = upper.coords, pd.Index(names)
    both = np.asarray(agreed[first, second]).ravel() if upper.nnz else np.zeros(0)
    pairs = pd.DataFrame(
        {
            "first": index[first],
            "second": index[second],
            "rows": upper.data.astype(int),
            "agreement": both / upper.data,
        }
    )
    return table, pairs.sort_values(["agreement", "rows"], ascending=[True, False], ignore_index=True)


def _together(who: NDArray[np.intp], what: NDArray[np.intp], shape: tuple[int, int]) -> Any:
    """Count for each two annotators what both have."""
    table = sparse.csr_array((np.ones(len(who)), (who, what)), shape)
    return table @ table.T


def _off_diagonal(counts: Any) -> NDArray[np.float64]:
    """Sum the counts of each annotator with all others."""
    others: NDArray[np.float64] = np.asarray(counts.sum(1)).ravel() - counts.diagonal()
    return others


def _check_min_votes(min_votes: Any) -> None:
    if isinstance(min_votes, bool) or not isinstance(min_votes, Integral):
        raise KindError(f"min_votes is {shown(min_votes)}, but must be an integer: pass 1 or more")
    if min_votes < 1:
        raise InputError(f"min_votes is {min_votes}, but must be at least 1: pass 1 or more")


def _check_arguments(min_votes: Any, long: Any, tasks: Any, separator: Any, denial: Any, aggregate: Any) -> None:
    _check_min_votes(min_votes)
    for name, value, example in (("separator", separator, "'|'"), ("denial", denial, "'not '")):
        if not isinstance(value, str | None):
            raise KindError(f"{name} is {shown(value)}, but must be a string: pass one such as {example}, or None")
        if value == "":
            raise InputError(f"{name} is '', but must have a character: pass one such as {example}, or None")
    if tasks is not None and long is None:
        raise InputError("tasks is given, but only long votes name their tasks: pass long, or leave tasks out")
    if not (aggregate is None or (isinstance(aggregate, str) and aggregate in AGGREGATIONS)):
        raise InputError(
            f"aggregate is {shown(aggregate, 60)}, but must be one of {', '.join(map(repr, AGGREGATIONS))} or None"
        )
