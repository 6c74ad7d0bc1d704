"""What candidate sets can teach before any training: their sizes, and the labels that always come together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneof.data.corrupt import true_labels
from oneof.labels import encode

Counts = NDArray[np.int64]

ENOUGH = 10  # rows from which on "always" is more than chance
_BLOCK = 2**16  # rows whose products float32 counts exactly
_LISTED = 5  # sentences of one kind, and names in a sentence
_LONGEST = 40  # letters of a name, and of a bar
_LINES = 20  # sizes or labels in a list


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
        """The largest of these; by true classes it is the ambiguity degree of Cour et al. (JMLR 2011)."""
        return float(self.others.max()) if (self.rows >= ENOUGH).any() else None

    @property
    def always(self) -> list[tuple[int, int]]:
        """The pairs (j, k) for which k accompanies j in every row, those with most rows first."""
        pairs = np.argwhere(self.others == 1)
        order = np.argsort(-self.rows[pairs[:, 0]], kind="stable")
        return [(int(j), int(k)) for j, k in pairs[order]]


@dataclass(frozen=True, eq=False)
class Inspection:
    """What `inspect` counted."""

    names: tuple[str, ...]
    rows: int
    sizes: Counts  # (K + 1,): how many sets have 0, 1, ..., K labels
    by_set: Companions
    by_truth: Companions | None  # None where the truth is unknown, as is the next
    outside: int | None  # rows whose truth is no candidate

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
        Candidate sets in any form that :func:`oneof.encode` takes.
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
    if y is not None:
        truth = true_labels(y, len(names))
        if len(truth) != len(sets):
            raise ValueError(f"y has {len(truth)} labels, but must have one for each of the {len(sets)} sets")
        counts = np.stack([sets[truth == j].sum(0) for j in range(len(names))])
        by_truth = _companions(np.bincount(truth, minlength=len(names)), counts)
        outside = int((~sets[np.arange(len(sets)), truth]).sum())
    return Inspection(
        names=tuple(map(one_line, names.tolist())),
        rows=len(sets),
        sizes=np.bincount(sets.sum(1), minlength=1 + len(names)),
        by_set=_companions(sets.sum(0), _together(sets)),
        by_truth=by_truth,
        outside=outside,
    )


def _together(sets: NDArray[np.bool_]) -> Counts:
    """Count for each two labels the sets that hold both."""
    counts = np.zeros((sets.shape[1], sets.shape[1]), dtype=np.int64)
    for start in range(0, len(sets), _BLOCK):
        block = sets[start : start + _BLOCK].astype(np.float32)
        counts += (block.T @ block).astype(np.int64)
    return counts


def _companions(rows: Counts, counts: Counts) -> Companions:
    return Companions(rows, counts / np.maximum(rows, 1)[:, None])


def one_line(name: Any) -> str:
    """Write a name on one line, without what controls a terminal or turns the direction of text."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(name)).split()) or "(blank)"


# --- in words ----------------------------------------------------------------------------------------------------


def shorten(name: str, longest: int = _LONGEST) -> str:
    """Cut the middle out of a name that is too long: many differ at their end alone."""
    tail = longest // 3
    return name if len(name) <= longest else f"{name[: longest - tail - 1]}…{name[-tail:]}"


def percent(share: float) -> str:
    """Write a share, claiming neither never nor always where it is not so."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{100 * share:.1f}%"


def quoted(name: str) -> str:
    """Write a name in a sentence."""
    return f"'{shorten(name)}'"


def size_bins(inspection: Inspection, most: int = _LINES) -> list[tuple[str, int]]:
    """Return set sizes and how many sets have them, neighbours joined where there are more than ``most``."""
    largest = int(inspection.sizes.nonzero()[0][-1])
    width = -(-largest // most)
    ends = [(low, min(low + width - 1, largest)) for low in range(1, largest + 1, width)]
    return [
        (str(low) if low == high else f"{low}-{high}", int(inspection.sizes[low : high + 1].sum()))
        for low, high in ends
    ]


def head_numbers(inspection: Inspection) -> dict[str, str]:
    """Return the numbers that say most, by what they count."""
    numbers = {
        "rows": str(inspection.rows),
        "classes": str(len(inspection.names)),
        "labels a set, on average": f"{inspection.mean_size:.2f}",
        "of sets have one label": percent(inspection.one_label),
        "of sets have all labels": percent(inspection.full),
    }
    for companions, words in (
        (inspection.by_set, "of a label's sets share one other label, at most"),
        (inspection.by_truth, "of a class's rows share one wrong label, at most"),
    ):
        if companions is not None and companions.ambiguity is not None:
            numbers[words] = percent(companions.ambiguity)
    return numbers


def findings(inspection: Inspection, quote: Callable[[str], str] = quoted) -> list[str]:
    """Say in sentences what stands out, the gravest first; ``quote`` writes the name of a class."""
    classes = len(inspection.names)
    if inspection.full == 1:
        return [f"Every set holds all {classes} labels: there is nothing to learn."]
    names, said = [quote(name) for name in inspection.names], []
    if inspection.one_label == 1:
        said.append("Every set holds one label: these are plain labels.")
    if inspection.outside:
        share = percent(inspection.outside / inspection.rows)
        said.append(
            f"The truth is no candidate in {_rows(inspection.outside)} ({share}), which no method expects."
        )
    if inspection.by_truth:
        said += _about_truths(inspection.by_truth, names)
    said += _about_sets(inspection, names)
    if inspection.full:
        full = _rows(int(inspection.sizes[-1]))
        said.append(
            f"All {classes} labels are candidates in {full} ({percent(inspection.full)}), which say nothing."
        )
    if inspection.never:
        said.append(f"In no set, so that they cannot be learnt: {_some(names, inspection.never)}.")
    if inspection.seldom:
        seldom = _some(names, inspection.seldom)
        said.append(f"In fewer than {ENOUGH} sets, too few to say what always accompanies them: {seldom}.")
    return said


def _about_truths(companions: Companions, names: list[str]) -> list[str]:
    """Name the wrong labels that no row of a class is without."""
    pairs = companions.always
    if not pairs:
        return []
    rows = int(companions.rows[sorted({j for j, _ in pairs})].sum())
    share = percent(rows / int(companions.rows.sum()))
    certain = [
        f"{names[k]} is a candidate in all {companions.rows[j]} rows whose truth is {names[j]}." for j, k in pairs
    ]
    return [
        *_first(certain),
        f"A model that is sure of such a companion in these {rows} rows ({share} of all) is wrong in each, and "
        "yet its covering rate and approximated accuracy on them are 100%.",
    ]


def _about_sets(inspection: Inspection, names: list[str]) -> list[str]:
    """Name the labels that no set is without, and those that always accompany another."""
    companions, everywhere, said = inspection.by_set, inspection.everywhere, []
    if everywhere:
        said.append(
            f"In every set: {_some(names, everywhere)}. A model that is always sure of one such label has a "
            "covering rate and an approximated accuracy of 100%."
        )
    pairs = [(j, k) for j, k in companions.always if k not in everywhere]
    if pairs:
        said += _first(_never_apart(pairs, companions, names))
        said.append(
            "A model that answers such a companion in place of the label scores as high or higher on covering "
            "rate and approximated accuracy: only true labels can choose between the two."
        )
    elif not everywhere and companions.ambiguity:
        (j, k), share = np.argwhere(companions.others == companions.ambiguity)[0], percent(companions.ambiguity)
        closest = f"{names[k]} comes closest, in {share} of the sets that hold {names[j]}"
        said.append(f"No label always accompanies another; {closest}.")
    return said


def _never_apart(pairs: list[tuple[int, int]], companions: Companions, names: list[str]) -> list[str]:
    """Give labels that are never apart one sentence together, and every other pair its own."""
    known, done, together, one_way = set(pairs), set[int](), [], []
    for j, k in pairs:
        rows = f"{companions.rows[j]} rows"
        if (k, j) not in known:
            one_way.append(
                f"{names[k]} is in every set that holds {names[j]} ({rows}): no set speaks for {names[j]} against "
                f"{names[k]}."
            )
        elif j not in done:
            group = sorted({j, *(k for i, k in pairs if i == j and (k, i) in known)})
            done.update(group)
            together.append(
                f"{_some(names, group)} always come together ({rows}): exchanging them changes no set, so the "
                "sets cannot tell which of them is true."
            )
    return together + one_way


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _first(sentences: list[str]) -> list[str]:
    """Keep a few sentences, and say how many more there are."""
    more = len(sentences) - _LISTED
    return sentences[:_LISTED] + [f"And {more} more like that."] * (more > 0)


def _some(names: list[str], chosen: list[int]) -> str:
    """List names, a few and how many more."""
    more = len(chosen) - _LISTED
    shown = [names[k] for k in chosen[:_LISTED]] + [f"{more} more"] * (more > 0)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def lines(inspection: Inspection) -> list[str]:
    """Return what was found as plain text, one string a line."""
    names = [quoted(name) for name in inspection.names]
    shown = np.argsort(-inspection.by_set.rows, kind="stable")[:_LINES].tolist()
    more = len(names) - len(shown)
    return [
        *(f"{number:>10} {name}" for name, number in head_numbers(inspection).items()),
        "",
        *(f"- {sentence}" for sentence in findings(inspection)),
        "",
        "labels in a set",
        *_bars([(size, count / inspection.rows) for size, count in size_bins(inspection)]),
        "",
        "share of sets that hold a label",
        *_bars([(names[k], inspection.frequency[k]) for k in shown]),
        *([f"and {more} more"] if more else []),
    ]


def _bars(shares: list[tuple[str, float]]) -> list[str]:
    width = max(len(name) for name, _ in shares)
    return [
        f"{name:>{width}} {percent(share):>10} {'#' * round(_LONGEST * share)}".rstrip() for name, share in shares
    ]
