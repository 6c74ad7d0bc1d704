"""Tables that cannot be votes: one row for each vote, columns of ids, dates and measurements, or of counts."""

from typing import Any

import numpy as np
import pandas as pd

from oneof.errors import InputError, KindError
from oneof.io.words import listed, shown, warn
from oneof.labels.reading import is_blank

_TASKS = {"task", "item", "sample", "example", "instance", "question", "image", "document", "unit", "row"}
_WORKERS = {"worker", "annotator", "rater", "labeler", "labeller", "coder", "judge", "user"}
_LABELS = {"label", "vote", "answer", "class", "category", "response", "annotation", "rating"}
_KINDS = (("task", _TASKS), ("worker", _WORKERS), ("label", _LABELS))
_DENIAL = "not "
_ENOUGH = 10  # votes in a column, from which on it tells whether others give the same labels
_MANY, _LESS = 30, 0.5  # rows, from which on variances tell; of those that columns without a relation have
_SHARED = 0.1  # of the votes in a column; below it, its values are hardly those of the other columns


def check_vote_columns(votes: Any) -> None:
    """Refuse a table that cannot be votes, and warn of a column that hardly can."""
    # Objects stay what they are: pandas cannot make strings of every Python string.
    is_objects = isinstance(votes, np.ndarray) and votes.dtype.kind == "O"
    table = pd.DataFrame(votes, dtype=object if is_objects else None)
    given = "votes" if isinstance(votes, pd.DataFrame) else "pandas.DataFrame(votes)"
    _check_names(table)
    filled = [column[[not is_blank(cell) for cell in column]] for _, column in table.items()]
    for name, column in zip(table.columns, filled, strict=True):
        _check_kind(name, column, given)
    try:
        apart = _apart(filled)
    except TypeError:  # values that cannot be compared are no labels, which is said where labels are read
        return
    names = [table.columns[k] for k in apart]
    if len(apart) == table.shape[1]:
        raise InputError(
            f"the columns {listed(names)} of votes have no values in common, but each must hold the labels of one "
            "annotator: if every row holds one vote, "
            + _long(given, *(names if len(names) == 3 else ("task", "worker", "label")))
        )
    for k, name in zip(apart, names, strict=True):
        if filled[k].is_unique:
            raise InputError(
                f"the column {shown(name)} of votes has a different value in every row and hardly any of the "
                f"other columns, so that it holds ids, not labels: pass {given}.drop(columns={shown(name)})"
            )
        warn(
            f"hardly any value of the column {shown(name)} of votes occurs in another column, but annotators give "
            "the same labels: drop the column if it holds none, or if every row holds one vote, "
            + _long(given, "task", "worker", "label")
        )


def check_no_counts(votes: Any) -> None:
    """Refuse a table with a column for each class, of counts or of 0 and 1, and warn of what looks like one.

    The numbers of such a row share its votes, so that they have a fixed sum, or one that varies less than the sum
    of columns without a relation: Var(sum_a v_a) < sum_a Var(v_a). Of annotators it varies more, for they agree.
    """
    try:
        numbers = np.asarray(votes)
    except ValueError:  # rows of different lengths, as they have with annotators alone
        return
    if numbers.dtype.kind not in "biuf" or numbers.ndim != 2 or len(numbers) < _ENOUGH or numbers.shape[1] < 3:
        return  # of two columns it cannot be told: two people may disagree in every row
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all() or (numbers % 1 != 0).any() or numbers.min() < 0 or numbers.max() > 2**32:
        return
    apart = numbers.var(axis=0).sum()
    sums, fix = numbers.sum(axis=1), "the matrix itself as y" if numbers.max() <= 1 else "vote_counts(votes)"
    if apart > 0 and (sums == sums[0]).all():
        raise InputError(
            f"the numbers of every row of votes add up to {sums[0]:g}, as those of a column for each class do, "
            f"but from_votes takes a column for each annotator: pass {fix}, or class names in place of numbers"
        )
    if len(numbers) >= _MANY and sums.var() < _LESS * apart:
        warn(
            "where one column of votes holds a larger number, others hold smaller ones, as columns of classes do, "
            f"while annotators agree: pass {fix} if the columns are classes"
        )


def _check_names(table: Any) -> None:
    """Refuse a table that has a column of annotators and one of labels, by their names."""
    kinds: dict[str | None, Any] = {}
    for name in table.columns:
        kinds.setdefault(_kind(name), name)
    if {"worker", "label"} <= kinds.keys():
        rest = [name for name in table.columns if name not in (kinds["worker"], kinds["label"])]
        task = kinds.get("task", rest[0] if rest else "task")
        raise InputError(
            f"votes has a row for each vote, with the columns {listed(table.columns)}, but must have a row for "
            "each sample and a column for each annotator: " + _long("votes", task, kinds["worker"], kinds["label"])
        )


def _kind(name: Any) -> str | None:
    """Tell by its name what a column of long votes holds."""
    plain = "".join(filter(str.isalnum, str(name).lower()))
    plains = {plain, plain.removesuffix("id"), plain.removesuffix("s")}
    return next((kind for kind, known in _KINDS if plains & known), None)


def warn_of_swapped(*columns: Any) -> None:
    """Warn where two of the columns of task, worker and label have each other's names."""
    roles = [kind for kind, _ in _KINDS]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        if _kind(columns[one]) == roles[other] and _kind(columns[other]) == roles[one]:
            warn(
                f"long takes {shown(columns[one], 40)} for the {roles[one]} and {shown(columns[other], 40)} for "
                f"the {roles[other]} of a vote: swap them unless they are called so by chance"
            )


def warn_of_denials(names: Any) -> None:
    """Warn where one class is the denial of another."""
    texts = {name for name in names.tolist() if isinstance(name, str)}
    denied = next((name for name in sorted(texts) if name.removeprefix(_DENIAL) in texts - {name}), None)
    if denied is not None:
        warn(
            f"votes holds {shown(denied.removeprefix(_DENIAL))} and {shown(denied)}, which count as one class "
            f"each: pass denial={_DENIAL!r} if the latter excludes the former"
        )


def warn_of_ids(counts: Any, names: Any) -> None:
    """Warn of columns of counts that hold another number in every row."""
    if len(counts) >= _ENOUGH:
        for name, column in zip(names.tolist(), counts.T, strict=True):
            if len(np.unique(column)) == len(column):
                warn(
                    f"the column {shown(name)} of counts has a different value in every row, as ids have: drop it "
                    "unless it counts votes"
                )


def _long(given: str, task: Any, worker: Any, label: Any) -> str:
    return f"pass from_votes({given}, long=({shown(task, 40)}, {shown(worker, 40)}, {shown(label, 40)}))"


def _check_kind(name: Any, column: Any, given: str) -> None:
    """Refuse dates and measurements."""
    if column.dtype.kind in "mM" or (len(column) and isinstance(column.iloc[0], pd.Timestamp)):
        raise KindError(
            f"the column {shown(name)} of votes holds dates, but votes are class names: pass "
            f"{given}.drop(columns={shown(name)})"
        )
    if column.dtype.kind == "f" and (column % 1 != 0).any():
        value = column[column % 1 != 0].iloc[0]
        raise InputError(
            f"the column {shown(name)} of votes holds {shown(value)}, but votes are class names: pass "
            f"{given}.drop(columns={shown(name)}), or turn its numbers into names"
        )


def _apart(columns: list[Any]) -> list[int]:
    """Return the numbers of the columns that have hardly a value in common with all the others."""
    if len(columns) < 2 or min(map(len, columns)) < _ENOUGH:
        return []
    values = [set(column) for column in columns]
    return [
        k
        for k, column in enumerate(columns)
        if column.isin(set().union(*values[:k], *values[k + 1 :])).mean() <= _SHARED
    ]
