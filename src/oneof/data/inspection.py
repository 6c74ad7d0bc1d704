"""What candidate sets can teach before any training: their sizes, and the labels that always come together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneof.data.corrupt import true_labels
from oneof.errors import InputError
from oneof.labels import Votes, encode
from oneof.pages.frame import one_line

Counts = NDArray[np.int64]

ENOUGH = 10  # rows from which on "always" is more than chance
_BLOCK = 2**16  # rows whose products float32 counts exactly
_LISTED = 20  # rows of a kind


@dataclass(frozen=True, eq=False)
class Companions:
    """How often label k accompanies label j: in the sets that hold j, or in those whose truth is j."""

    rows: Counts  # (K,): how many rows were counted for j
    share: NDArray[np.float64]  # (K, K): the share of them whose set holds k; 0 where there is none

    @property
    def others(self) -> NDArray[np.float64]:
        """The shares of other labels alone, 0 for labels with fewer than `ENOUGH` rows."""
        others = np.where(self.rows[:, None] >= ENOUGH, self.share, 0.0)
        np.fill_diagonal(others, 0)
        return others

    @property
    def ambiguity(self) -> float | None:
        """The largest share of `others`; by true classes, the ambiguity degree of Cour et al. (JMLR 2011)."""
        return float(self.others.max()) if (self.rows >= ENOUGH).any() else None

    @property
    def always(self) -> list[tuple[int, int]]:
        """The pairs (j, k) for which k accompanies j in every row, those with most rows first."""
        pairs = np.argwhere(self.others == 1)
        order = np.argsort(-self.rows[pairs[:, 0]], kind="stable")
        return [(int(j), int(k)) for j, k in pairs[order]]


@dataclass(frozen=True)
class FoundRow:
    """A row that is worth a look: its number, counted from 0, its candidates, and why."""

    number: int
    labels: tuple[str, ...]
    why: str


@dataclass(frozen=True, eq=False)
class Inspection:
    """What `inspect` counted."""

    names: tuple[str, ...]
    rows: int
    sizes: Counts  # (K + 1,): how many sets have 0, 1, ..., K labels
    by_set: Companions
    by_truth: Companions | None  # None where the truth is unknown
    outside: int | None  # rows whose truth is no candidate; None where the truth is unknown
    votes: Votes | None = None  # where the sets come from votes
    found: tuple[FoundRow, ...] = ()  # rows without their truth, and those with the most candidates

    @property
    def mean_size(self) -> float:
        """The mean number of candidates."""
        return float(self.sizes @ np.arange(len(self.sizes)) / self.rows)

    @property
    def one_label(self) -> float:
        """The share of sets with one label."""
        return float(self.sizes[1] / self.rows)

    @property
    def full(self) -> float:
        """The share of sets with all labels."""
        return float(self.sizes[-1] / self.rows)

    @property
    def frequency(self) -> NDArray[np.float64]:
        """The share of rows whose set holds each class."""
        return self.by_set.rows / self.rows

    @property
    def everywhere(self) -> list[int]:
        """The labels that are in every set."""
        return [int(k) for k in np.flatnonzero(self.by_set.rows == self.rows)]

    @property
    def never(self) -> list[int]:
        """The labels that are in no set."""
        return [int(k) for k in np.flatnonzero(self.by_set.rows == 0)]

    @property
    def seldom(self) -> list[int]:
        """The labels in too few sets to say what always accompanies them."""
        return [int(k) for k in np.flatnonzero((self.by_set.rows > 0) & (self.by_set.rows < ENOUGH))]


def inspect(candidates: Any, classes: Any = None, y: ArrayLike | None = None) -> Inspection:
    """Count what candidate sets say about each label.

    Parameters
    ----------
    candidates : array of shape (n, K)
        Candidate sets in any form that :func:`oneof.encode` takes; of votes, annotators are looked at, too.
    classes : sequence of length K, optional
        The name of each class, as for :func:`oneof.encode`.
    y : array of int of shape (n,), optional
        The numbers of the true classes, where they are known.

    Returns
    -------
    Inspection
    """
    sets, names = encode(candidates, classes)
    by_truth = outside = None
    missed = np.array([], dtype=np.int64)
    if y is not None:
        truth = true_labels(y, len(names))
        if len(truth) != len(sets):
            raise InputError(f"y has {len(truth)} labels, but must have one for each of the {len(sets)} sets")
        counts = np.stack([sets[truth == j].sum(0) for j in range(len(names))])
        by_truth = _companions(np.bincount(truth, minlength=len(names)), counts)
        missed = np.flatnonzero(~sets[np.arange(len(sets)), truth])
        outside = len(missed)
    shown = tuple(one_line(str(name)) or "(blank)" for name in names.tolist())
    return Inspection(
        names=shown,
        rows=len(sets),
        sizes=np.bincount(sets.sum(1), minlength=1 + len(names)),
        by_set=_companions(sets.sum(0), _together(sets)),
        by_truth=by_truth,
        outside=outside,
        votes=candidates if isinstance(candidates, Votes) else None,
        found=_worth_a_look(sets, shown, missed),
    )


def _worth_a_look(sets: NDArray[np.bool_], names: tuple[str, ...], missed: Counts) -> tuple[FoundRow, ...]:
    """Return rows whose truth is no candidate, and those with the most candidates, a few of each."""
    sizes = sets.sum(1)
    largest = np.argsort(-sizes, kind="stable")[:_LISTED]

    def row(number: int, why: str) -> FoundRow:
        return FoundRow(number, tuple(names[k] for k in np.flatnonzero(sets[number])), why)

    found = [row(i, "its truth is no candidate") for i in missed[:_LISTED].tolist()]
    return (*found, *(row(i, f"{sizes[i]} candidates") for i in largest.tolist() if sizes[i] > 1))


def _together(sets: NDArray[np.bool_]) -> Counts:
    """Count for each two labels the sets that hold both."""
    counts = np.zeros((sets.shape[1], sets.shape[1]), dtype=np.int64)
    for start in range(0, len(sets), _BLOCK):
        block = sets[start : start + _BLOCK].astype(np.float32)
        counts += (block.T @ block).astype(np.int64)
    return counts


def _companions(rows: Counts, counts: Counts) -> Companions:
    return Companions(rows, counts / np.maximum(rows, 1)[:, None])
