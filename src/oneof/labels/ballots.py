"""Votes in the forms in which users have them, read into ballots: wide, long and counts."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from oneof.errors import InputError, KindError
from oneof.io.arguments import as_array, as_floats
from oneof.io.words import listed, shown
from oneof.labels.annotators import Ballots, from_counts
from oneof.labels.names import are_numbers, column_names, columns_of, number_labels
from oneof.labels.reading import is_blank, to_python, unwrap
from oneof.labels.separators import warn_of_joined
from oneof.labels.validation import rows_text
from oneof.labels.vote_columns import (
    check_no_counts,
    check_vote_columns,
    warn_of_denials,
    warn_of_ids,
    warn_of_swapped,
)


class Read(NamedTuple):
    """Votes, and the names of classes, annotators and rows; None where there are none."""

    ballots: Ballots
    classes: NDArray[Any]
    annotators: list[Any] | None
    tasks: NDArray[Any] | None
    numbered: bool = False  # classes are numbers of columns


class Marks(NamedTuple):
    """How cells are written: what stands between several labels, and before labels that are denied."""

    separator: str | None
    denial: str | None

    def read(self, cell: Any) -> tuple[list[Any], bool]:
        """Return the labels of a cell, none where it is empty, and whether it denies them."""
        denies = bool(self.denial) and isinstance(cell, str) and cell.lstrip().startswith(self.denial or "")
        if denies:
            cell = cell.lstrip()[len(self.denial or "") :].strip()
        if self.separator is not None and isinstance(cell, str):
            cell = [part.strip() for part in cell.split(self.separator)]
        several = isinstance(cell, list | tuple | set | frozenset) or getattr(cell, "ndim", 0) == 1
        labels = to_python(cell if several else [cell])
        return [_whole(label) for label in labels if not is_blank(label)], denies


def _whole(label: Any) -> Any:
    """Turn the floats that gaps make of integers back."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def read_wide(votes: Any, classes: Any, marks: Marks) -> Read:
    """Read one row a sample and one column an annotator; in ragged rows nobody knows who voted."""
    rows = _rows(votes)
    lengths = {len(row) for row in rows}
    names: list[Any] | None = None
    if len(lengths) == 1:
        names = votes.columns.tolist() if isinstance(votes, pd.DataFrame) else list(range(lengths.pop()))
    cells = ((i, a if names is not None else 0, cell) for i, row in enumerate(rows) for a, cell in enumerate(row))
    return _read(cells, len(rows), names, None, classes, marks)


def read_long(votes: Any, columns: Any, tasks: Any, classes: Any, marks: Marks) -> Read:
    """Read one row a vote; labels that one annotator gave one row together are one vote."""
    task, worker, label = _columns(votes, columns)
    numbers, names = pd.factorize(votes[task])
    if tasks is not None:
        names = pd.Index(_task_names(tasks))
        numbers = names.get_indexer(votes[task])
        if (numbers < 0).any():
            unknown = votes[task][numbers < 0].unique()
            raise InputError(
                f"votes has the tasks {listed(unknown)}, which are not in tasks: add them, or drop their votes"
            )
    elif (numbers < 0).any():
        empty = rows_text(np.flatnonzero(numbers < 0))
        raise InputError(f"the column {shown(task)} is empty in {empty}: name the samples, or drop the rows")
    who, workers = pd.factorize(votes[worker])
    if (who < 0).any():
        raise InputError(
            f"the column {shown(worker)} is empty in {rows_text(np.flatnonzero(who < 0))}: name the annotators, "
            "or drop the rows"
        )
    cells = zip(numbers.tolist(), who.tolist(), votes[label].tolist(), strict=True)
    return _read(cells, len(names), workers.tolist(), np.asarray(names), classes, marks)


def read_counts(counts: Any, classes: Any) -> Read:
    """Read a matrix (n, K) of how often each label was named."""
    if sparse.issparse(counts):
        counts = counts.toarray()
    matrix = as_floats(counts, "counts")
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"counts has shape {matrix.shape}, but must be (n, K): pass one row per sample")
    rows, columns = (~(np.isfinite(matrix) & (matrix >= 0) & (np.floor(matrix) == matrix))).nonzero()
    if rows.size:
        raise InputError(
            f"counts holds {matrix[rows[0], columns[0]]:g} in {rows_text(rows)}, but must hold whole numbers of "
            "votes, at least 0: mend the rows, or pass weights to oneof.WeightedSets"
        )
    names = column_names(columns_of(counts), classes, matrix.shape[1], "counts")
    warn_of_ids(matrix, names)
    numbered = classes is None and are_numbers(columns_of(counts))
    return Read(from_counts(matrix), names, None, None, numbered)


def _read(
    cells: Iterable[tuple[int, int, Any]],
    rows: int,
    annotators: list[Any] | None,
    tasks: NDArray[Any] | None,
    classes: Any,
    marks: Marks,
) -> Read:
    """Number the labels of all cells, each with its row and its annotator."""
    votes: dict[Any, list[Any]] = {}  # in the order in which they come
    for serial, (row, annotator, cell) in enumerate(cells):
        labels, denies = marks.read(cell)
        if labels:
            key = (row, annotator, denies) if annotators is not None else (row, serial, denies)
            votes.setdefault(key, []).extend(labels)
    of_row = np.array([row for row, _, _ in votes], dtype=np.intp)
    sizes = [len(labels) for labels in votes.values()]
    vote = np.repeat(np.arange(len(votes)), sizes)
    flat = [label for labels in votes.values() for label in labels]
    if classes is None:
        warn_of_joined(flat)
    codes, names = number_labels(flat, of_row[vote], classes, "votes")
    if marks.denial is None:
        warn_of_denials(names)
    vote, codes = np.unique(np.stack([vote, codes]), axis=1)  # a label that is named twice is named
    ballots = Ballots(
        shape=(rows, len(annotators or [0]), len(names)),
        row=of_row,
        annotator=np.array([who if annotators else 0 for _, who, _ in votes], dtype=np.intp),
        times=np.ones(len(votes)),
        denies=np.array([denies for _, _, denies in votes], dtype=bool),
        vote=vote,
        label=codes,
    )
    return Read(ballots, names, annotators, tasks)


def _rows(votes: Any) -> list[Any]:
    """Return one list of cells per row."""
    votes = unwrap(votes, "votes")
    if sparse.issparse(votes):
        raise KindError("votes is a sparse matrix, which cannot tell 0 from no vote: pass a dense array")
    if not isinstance(votes, list):
        check_vote_columns(votes)
    rows: list[Any] = votes if isinstance(votes, list) else np.asarray(votes).tolist()
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple) and getattr(row, "ndim", 0) != 1:
            raise KindError(
                f"votes holds a {type(row).__name__} in row {number}, but each row must list the labels of "
                "all annotators: pass a 2-d array, a DataFrame or nested lists"
            )
    check_no_counts(votes)
    return rows


def _columns(votes: Any, columns: Any) -> tuple[Any, Any, Any]:
    """Check the names of the columns of task, worker and label."""
    if not isinstance(votes, pd.DataFrame):
        raise KindError(
            f"votes is of type {type(votes).__name__}, but long names columns of a DataFrame: pass one row for "
            "each vote as a DataFrame"
        )
    if isinstance(columns, str) or not isinstance(columns, Sequence) or len(columns) != 3:
        raise KindError(
            f"long is {shown(columns, 60)}, but must name three columns: pass long=('task', 'worker', 'label')"
        )
    missing = [name for name in columns if not isinstance(name, Hashable) or name not in votes.columns]
    if missing or len(set(columns)) < 3:
        what = f"lacks the columns {listed(missing)}" if missing else "is to have one column for two purposes"
        raise InputError(
            f"votes {what} of long={shown(tuple(columns), 80)}; it has {listed(votes.columns)}: name the columns "
            "of task, worker and label"
        )
    twice = [name for name in columns if (votes.columns == name).sum() > 1]
    if twice:
        raise InputError(f"votes has several columns of the name {shown(twice[0])}: rename them")
    warn_of_swapped(*columns)
    if not len(votes):
        raise InputError("votes has 0 rows, but at least one is needed: pass one row for each vote")
    return columns[0], columns[1], columns[2]


def _task_names(tasks: Any) -> list[Any]:
    array = as_array(tasks, "tasks")
    if array.ndim != 1 or array.dtype.kind not in "biufUOMm":
        raise KindError(f"tasks is {shown(tasks, 60)}, but must be a list of the names of the rows of X: pass one")
    names: list[Any] = array.tolist()
    if not pd.Index(names).is_unique:
        raise InputError("tasks names a task more than once, but each is one row of X: name each exactly once")
    return names
