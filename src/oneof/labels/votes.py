"""Candidate sets from the labels that several annotators gave."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from oneof.io.words import shown
from oneof.labels.names import number_labels
from oneof.labels.reading import flatten, is_blank, unwrap
from oneof.labels.validation import Encoded, check_encoded
from oneof.labels.vote_columns import check_vote_columns


def from_votes(votes: Any, classes: Any = None, min_votes: int = 1) -> Encoded:
    """Turn the labels given by several annotators into candidate sets.

    Parameters
    ----------
    votes : 2-d array, DataFrame or nested lists, one row per sample
        The label each annotator gave; None, NaN, ``pandas.NA`` and ``""`` are missing votes.
        Nested lists may be ragged. A DataFrame with one row per vote is first turned into such a table:
        ``votes.pivot(index="task", columns="worker", values="label")``.
    classes : sequence of str or int, optional
        All classes, in the order of the columns; by default the sorted labels of `votes`.
    min_votes : int, default=1
        How many annotators must give a label to make it a candidate.

    Returns
    -------
    candidates, classes : ndarray of bool, shape (n, K), and ndarray, shape (K,)
        As `encode` returns them; class names that NaN turned into whole floats are integers again.

    Examples
    --------
    >>> candidates, classes = from_votes([["cat", "dog", "cat"], ["dog", None, "dog"]], min_votes=2)
    >>> candidates.tolist(), classes.tolist()
    ([[True, False], [False, True]], ['cat', 'dog'])
    """
    if isinstance(min_votes, bool) or not isinstance(min_votes, Integral):
        raise TypeError(f"min_votes is {shown(min_votes)}, but must be an integer: pass 1 or more")
    if min_votes < 1:
        raise ValueError(f"min_votes is {min_votes}, but must be at least 1: pass 1 or more")
    ballots = _read_ballots(votes)
    labels, rows = flatten(ballots)
    cast = np.array([not is_blank(label) for label in labels], dtype=bool)
    labels = [
        int(label) if isinstance(label, float) and label.is_integer() else label
        for label, given in zip(labels, cast, strict=True)
        if given
    ]
    rows = rows[cast]
    codes, names = number_labels(labels, rows, classes, "votes")
    cells, counts = np.unique(rows * len(names) + codes, return_counts=True)
    candidates = np.zeros((len(ballots), len(names)), dtype=bool)
    candidates.flat[cells[counts >= min_votes]] = True
    return check_encoded(
        candidates,
        names,
        f"no label reaches min_votes={shown(min_votes, 40)} in {{rows}}, but every row needs at least one "
        "candidate label: lower min_votes or drop the rows",
    )


def _read_ballots(votes: Any) -> list[Any]:
    """Return one list-like of votes per row."""
    votes = unwrap(votes, "votes")
    if sparse.issparse(votes):
        raise TypeError("votes is a sparse matrix, which cannot tell 0 from no vote: pass a dense array")
    if not isinstance(votes, list):
        check_vote_columns(votes)
    ballots: list[Any] = votes if isinstance(votes, list) else np.asarray(votes).tolist()
    for row, ballot in enumerate(ballots):
        if not isinstance(ballot, list | tuple) and getattr(ballot, "ndim", 0) != 1:
            raise TypeError(
                f"votes holds a {type(ballot).__name__} in row {row}, but each row must list the labels of "
                "all annotators: pass a 2-d array, a DataFrame or nested lists"
            )
    return ballots
