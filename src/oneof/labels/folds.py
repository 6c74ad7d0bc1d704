"""CandidateKFold: folds in which every label is a candidate about equally often."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from oneof.errors import InputError, KindError
from oneof.io.words import shown
from oneof.labels.encoding import encode_sets
from oneof.labels.sparse_sets import SparseSets


class CandidateKFold(BaseCrossValidator):  # type: ignore[misc]
    """Splits rows into folds that keep the labels of candidate sets in balance.

    Every fold gets about a ``1 / n_splits`` share of the rows that have a label among their candidates, for every
    label, and of all rows. So training parts hardly ever lack a label, as they do where rows sorted by class are
    cut into folds. Rows are dealt out label by label, the one with the fewest rows left first, each row to the
    fold that lacks the label most (iterative stratification: Sechidis, Tsoumakas & Vlahavas, ECML PKDD 2011).

    Pass it as ``cv`` to ``cross_val_score``, ``GridSearchCV`` and the like. ``y`` may be all that
    :func:`oneof.encode` takes.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether rows are dealt out in a random order instead of their own.
    random_state : int, RandomState or None, default=None
        Seed of the order; only with ``shuffle``.

    Examples
    --------
    >>> folds = CandidateKFold(2)
    >>> [test.tolist() for _, test in folds.split([[0]] * 4, [["a"], ["a"], ["b", "c"], ["b", "c"]])]
    [[0, 2], [1, 3]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, Integral):
            raise KindError(f"n_splits is {shown(n_splits)}, but must be a whole number: pass 2 or more")
        if n_splits < 2:
            raise InputError(
                f"n_splits is {shown(n_splits, 40)}, but one fold leaves no rows to learn from: pass 2 or more"
            )
        if not isinstance(shuffle, bool):
            raise KindError(f"shuffle is {shown(shuffle)}, but must be True or False")
        if not shuffle and random_state is not None:
            raise InputError(
                f"random_state is {shown(random_state)}, but there is no random order to seed: pass shuffle=True"
            )
        self.n_splits: int = int(n_splits)
        self.shuffle: bool = shuffle
        self.random_state: Any = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are those of scikit-learn's interface."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Give the numbers of training and test rows, fold by fold; ``groups`` has no effect."""
        found, _ = encode_sets(y)
        candidates = found if isinstance(found, SparseSets) else SparseSets(found)
        rows = len(candidates)
        shape = getattr(X, "shape", None)
        if isinstance(shape, tuple) or hasattr(type(X), "__len__"):
            given = next(iter(shape), 0) if isinstance(shape, tuple) else len(X)  # one number has no rows
            if given != rows:
                raise InputError(f"X has {given} rows and y has {rows}: pass one candidate set for each row of X")
        if rows < self.n_splits:
            raise InputError(
                f"n_splits is {shown(self.n_splits, 40)}, but there are {rows} rows, and every fold needs one: "
                "lower n_splits"
            )
        fold = self._folds(candidates)
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def _folds(self, candidates: SparseSets) -> NDArray[np.intp]:
        """Return the fold of every row."""
        n = len(candidates)
        order = check_random_state(self.random_state).permutation(n) if self.shuffle else np.arange(n)
        rows_of = candidates.matrix[order].tocsc()  # places in the order at which each label is a candidate
        starts, labels = candidates.matrix.indptr, candidates.matrix.indices
        fold = np.full(n, -1)
        # How many rows, and rows of each label, every fold still lacks.
        room = np.full(self.n_splits, n / self.n_splits)
        total = np.bincount(labels, minlength=candidates.shape[1])
        lacks = np.tile(total / self.n_splits, (self.n_splits, 1))
        left = total.copy()
        while (some := np.flatnonzero(left)).size:
            label = some[np.lexsort((total[some], left[some]))[0]]
            rows = order[np.sort(rows_of.indices[rows_of.indptr[label] : rows_of.indptr[label + 1]])]
            for row in rows[fold[rows] < 0]:
                best = max(range(self.n_splits), key=lambda k: (lacks[k, label], room[k], -k))
                fold[row] = best
                room[best] -= 1
                own = labels[starts[row] : starts[row + 1]]
                lacks[best, own] -= 1
                left[own] -= 1
        return fold
