"""The way back: decisions, from a journal or a table that people filled in, merged into the labels of a fit."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.data.tables import is_table, read_table
from oneof.errors import InputError, KindError
from oneof.io.arguments import as_path
from oneof.io.words import listed, shown
from oneof.labels import WeightedSets, encode_weights
from oneof.review.journal import Decision, entries_of, in_force

NONE_OF_THESE = "none of these"
ROW, DECISION = "row", "decision"  # columns of a table that people fill in
_NONE = (NONE_OF_THESE, "none")
_FIRST_LINE = 2**20  # bytes of it that are looked at


class Decided(NamedTuple):
    """Labels with decisions merged in, and the numbers of the rows that they belong to."""

    y: Any
    rows: NDArray[np.intp]


def apply_decisions(
    y: Any,
    decisions: Any,
    classes: Any = None,
    separator: str | None = None,
    none: str = "others",
    ids: Any = None,
) -> Decided:
    """Merge decisions into candidate sets.

    A row that was decided becomes a set of one. "None of these" removes the candidates: all other classes are
    left; where there are no others, or with ``none="drop"``, the row goes.

    Parameters
    ----------
    y : candidate sets
        All that `fit` takes, votes too. It stays as it is.
    decisions : path, dict, or list of paths
        A journal of ``oneof review`` (.jsonl), or a table with the columns ``row`` (from 0) and ``decision``: a
        class, ``none of these``, or nothing. A dict has classes by row, None for none of these. Of several files,
        none may contradict another.
    classes, separator : as for :func:`oneof.encode`
        The names of the classes, and what splits strings.
    none : {"others", "drop"}, default="others"
        What "none of these" means for a fit.
    ids : DataFrame, optional
        Columns that name the rows, by which a table without ``row`` is matched.

    Returns
    -------
    Decided
        ``y``, the new labels, and ``rows``, the numbers of the rows that are left, for ``X[rows]``.

    Examples
    --------
    >>> new = apply_decisions([["cat", "dog"], ["cat", "cow"], ["dog", "cow"]], {0: "dog", 1: None})
    >>> new.y.to_numpy().astype(int).tolist(), new.rows.tolist()
    ([[0, 0, 1], [0, 0, 1], [0, 1, 1]], [0, 1, 2])
    """
    if not isinstance(none, str) or none not in ("others", "drop"):
        raise InputError(f"none is {shown(none, 60)}, but must be 'others' or 'drop'")
    if not isinstance(ids, pd.DataFrame | None):
        raise KindError(f"ids is {shown(ids, 60)}, but must be a DataFrame of columns that name the rows, or None")
    weights, names = encode_weights(y, classes, separator)
    number = {label: k for k, label in enumerate(names.tolist())}
    merged = _merged(decisions, ids, number)
    _check(merged, weights > 0, names)
    new = weights.copy()
    dropped: list[int] = []
    for row, entry in merged.items():
        if entry["action"] == "label":
            new[row] = 0
            new[row, number[entry["label"]]] = 1
        elif none == "drop" or (weights[row] > 0).all():
            dropped.append(row)
        else:
            new[row] = weights[row] == 0
    rows = np.setdiff1d(np.arange(len(new)), dropped)
    if not len(rows):
        raise InputError("the decisions leave no row to learn from; take some of them back")
    kept = new[rows]
    return Decided(WeightedSets(kept, names) if kept.dtype != bool else pd.DataFrame(kept, columns=names), rows)


def read_decisions(path: str | PathLike[str], ids: Any = None) -> dict[int, Decision]:
    """Return the decisions that count, by row, of a journal or of a table that people filled in."""
    path = as_path(path, "decisions")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path of the decisions")
    return in_force(entries_of(path)) if _is_journal(path) else _from_table(path, ids)


def _is_journal(path: Path) -> bool:
    """Tell a journal from a table: both may be JSON lines, but a table has a column of decisions."""
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return not is_table(path)
    with path.open("rb") as file:
        return f'"{DECISION}"'.encode() not in file.readline(_FIRST_LINE)


def _merged(decisions: Any, ids: Any, number: Mapping[Any, int]) -> dict[int, Decision]:
    """Bring decisions of any form together; refuse those that contradict each other."""
    if isinstance(decisions, Mapping):
        return {_row(row): _in_classes(_entry(row, label), number) for row, label in decisions.items()}
    if isinstance(decisions, str | PathLike):
        decisions = [decisions]
    if not isinstance(decisions, Sequence):
        raise KindError(
            f"decisions is {shown(decisions, 80)}, but must be a file, a list of files, or a dict of classes by "
            f"row"
        )
    merged: dict[int, Decision] = {}
    source: dict[int, Any] = {}
    for path in decisions:
        for row, read in read_decisions(path, ids).items():
            entry = _in_classes(read, number)
            if row in merged and _meaning(merged[row]) != _meaning(entry):
                raise InputError(
                    f"row {row} is {_words(merged[row])} in {shown(source[row], 60)}, but {_words(entry)} in "
                    f"{shown(path, 60)}; settle it in one of them"
                )
            merged[row], source[row] = entry, path
    return merged


def _row(row: Any) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or row < 0:
        raise KindError(
            f"decisions names the row {shown(row, 40)}, but rows are numbered from 0; pass a dict such as "
            "{17: 'cat', 20: None}"
        )
    return int(row)


def _entry(row: Any, label: Any) -> Decision:
    if label is None:
        return {"row": int(row), "action": "none"}
    if isinstance(label, bool) or not isinstance(label, str | int | np.str_ | np.integer):
        raise KindError(
            f"row {int(row)} is decided as {shown(label, 60)}, but a class is a text or a whole number; pass one, "
            "or None"
        )
    return {"row": int(row), "action": "label", "label": str(label) if isinstance(label, str) else int(label)}


def _meaning(entry: Decision) -> tuple[str, str]:
    return entry["action"], str(entry.get("label", ""))


def _words(entry: Decision) -> str:
    return NONE_OF_THESE if entry["action"] == "none" else f"decided as {shown(entry['label'], 40)}"


def _in_classes(entry: Decision, number: Mapping[Any, int]) -> Decision:
    """Write a label as the classes are, since tables hold text; "none" is one only where a class has this name."""
    if entry["action"] != "label" or entry["label"] in number:
        return entry
    text = str(entry["label"])
    same = next((name for name in number if str(name) == text), None)
    if same is None and text.lower() in _NONE:
        return {"row": entry["row"], "action": "none"}
    return entry if same is None else {**entry, "label": same}


def _check(merged: Mapping[int, Decision], sets: NDArray[np.bool_], names: NDArray[Any]) -> None:
    """Refuse decisions about rows, candidates or classes that are not there."""
    known = set(names.tolist())
    beyond = [row for row in merged if row >= len(sets)]
    if beyond:
        raise InputError(
            f"decisions names the rows {listed(beyond, 5)}, but there are {len(sets)} rows, numbered from 0; pass "
            "the labels that were reviewed"
        )
    for row, entry in merged.items():
        had = entry.get("candidates")
        if had is not None and {str(label) for label in had} != {str(label) for label in names[sets[row]]}:
            raise InputError(
                f"row {row} was decided when its candidates were {listed(had, 5)}, but now they are "
                f"{listed(names[sets[row]].tolist(), 5)}; pass the labels that were reviewed, or decide it again"
            )
        if entry["action"] == "label" and entry["label"] not in known:
            raise InputError(
                f"row {row} is decided as {shown(entry['label'], 40)}, but the classes are "
                f"{listed(names.tolist(), 5)}; mend the decision"
            )


def _from_table(path: Path, ids: Any) -> dict[int, Decision]:
    """Read a table that people filled in: rows by number, or by the columns that name them."""
    keys = [ROW] if ids is None or not len(ids.columns) else list(ids.columns)
    header = read_table(path).rows
    if hasattr(header, "columns") and ROW in header.columns:
        keys = [ROW]
    cells = read_table(path, [*keys, DECISION]).columns
    filled = [
        str(cell).strip() if isinstance(cell, str | int | float) and cell == cell else ""
        for cell in cells[DECISION]
    ]
    found: dict[int, Decision] = {}
    for row, text in zip(_rows_of(path, cells[keys], keys, ids), filled, strict=True):
        if not text:
            continue
        entry = _entry(row, text)
        if row in found and _meaning(found[row]) != _meaning(entry):
            raise InputError(
                f"{shown(path)} decides row {row} twice, as {_words(found[row])} and as {_words(entry)}; keep one "
                f"line"
            )
        found[row] = entry
    return found


def _rows_of(path: Path, cells: Any, keys: list[str], ids: Any) -> Iterable[int]:
    """Return the number of the row that each line of a table names."""
    if keys == [ROW]:
        numbers = pd.to_numeric(cells[ROW].astype(str), errors="coerce")  # as text: integers have no bounds
        bad = ~(numbers.ge(0) & (numbers % 1 == 0))
        if bad.any():
            raise InputError(
                f"the column {ROW!r} of {shown(path)} holds {shown(cells[ROW][bad].iloc[0])}, but rows are "
                f"numbered "
                "from 0; mend it"
            )
        return [int(number) for number in numbers]
    index = pd.MultiIndex.from_frame(ids.astype(str))
    if not index.is_unique:
        raise InputError(f"the columns {listed(keys)} name some rows twice; name the rows by other columns")
    places = index.get_indexer(pd.MultiIndex.from_frame(cells.astype(str)))
    if (places < 0).any():
        lost = cells[places < 0].iloc[0].tolist()
        raise InputError(
            f"{shown(path)} decides the row {shown(lost)}, which the table does not have; mend {listed(keys)}"
        )
    return [int(place) for place in places]
