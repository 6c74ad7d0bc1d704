"""Annotations in tables: our own columns, crowd-kit's long frames and cleanlab's matrix of annotators."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.data.exchange.annotations import (
    Annotations,
    Mark,
    build,
    check_one_label_a_vote,
    check_workers,
    warn_of_loss,
)
from oneof.data.exchange.json_files import plain
from oneof.data.exchange.label_studio import suggestions
from oneof.data.label_cells import label_sets
from oneof.data.tables import read_table, write_table
from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.words import alternatives, listed, reason, shown, warn
from oneof.labels.ballots import Marks
from oneof.labels.names import class_names

LONG = ("task", "worker", "label")  # the columns of crowd-kit
_SEPARATOR = "|"
_RESULTS = (("prediction", "probability"), ("label", "probability"))  # of oneof predict, and of disambiguate
_MATRIX = "labels_multiannotator"  # what cleanlab calls its matrix


def read_our_table(
    path: Path,
    candidates: str | None = None,
    separator: str | None = _SEPARATOR,
    votes: Sequence[str] | None = None,
    id: str | None = None,
) -> Annotations:
    """Read sets in the column ``candidates``, or ``votes`` in columns, one an annotator; or what a model predicts.

    ``id`` names the column of the tasks, otherwise rows are numbered.
    """
    names = read_table(path).rows
    if isinstance(names, np.ndarray):
        raise InputError(f"{shown(path)} is an archive of arrays, but a table with columns is needed; give one")
    if votes is None and candidates is None and "candidates" in names:
        candidates = "candidates"
    apart = [*(votes or ([candidates] if candidates else [])), *([id] if id else [])]
    results = next((pair for pair in _RESULTS if {*pair} <= {*names}), None) if votes is None else None
    if not apart and results is None:
        raise InputError(
            f"{shown(path)} has no column 'candidates'; {alternatives('candidates', list(names))} Name the column "
            "of candidate sets, or those of votes"
        )
    table = read_table(path, [*apart, *(results[:1] if results else [])])
    columns, data = table.columns, table.rows.drop(columns=[*apart, *(results or []), "margin"], errors="ignore")
    marks = _wide(columns[list(votes)], separator) if votes else _sets(columns, candidates, separator)
    ids = columns[id].tolist() if id else list(range(len(columns)))
    if id is None and results and "row" in data:  # as oneof disambiguate numbers rows, in any order
        ids = data.pop("row").tolist()
    suggested: list[tuple[Any, float] | None] = []
    if results:
        scores = pd.to_numeric(table.rows[results[1]], errors="coerce")
        suggested = [(label, p) if label else None for label, p in zip(columns[results[0]], scores, strict=True)]
    found = build(ids, marks, data.astype(object).where(data.notna(), None), shown(path), suggested=suggested)
    order = np.argsort(found.tasks, kind="stable") if id is None else np.arange(len(found))
    return found.take(order)


def _sets(columns: Any, candidates: str | None, separator: str | None) -> list[Mark]:
    if candidates is None:
        return []
    cells = label_sets(columns[candidates], separator)
    sets = [cell if isinstance(cell, list) else [] if cell is None else [cell] for cell in cells]
    return [(row, None, label) for row, labels in enumerate(sets) for label in labels]


def _wide(columns: Any, separator: str | None) -> list[Mark]:
    read = Marks(separator, None).read
    return [
        (row, worker, label)
        for row, cells in enumerate(columns.itertuples(index=False, name=None))
        for worker, cell in zip(columns, cells, strict=True)
        for label in read(cell)[0]
    ]


def write_our_table(annotations: Annotations, path: Path) -> None:
    """Write a column of sets, or one of votes for each annotator where tasks have several votes."""
    data = annotations.data.map(
        lambda cell: cell if np.isscalar(cell) or cell is None else json.dumps(plain(cell))
    )
    columns = {"id": annotations.tasks} | {str(name): data[name] for name in data}
    added: dict[str, Any] = {}
    if several_votes(annotations):
        cells: dict[Any, list[Any]] = {who: [None] * len(annotations) for who in annotations.workers}
        for row, votes in enumerate(annotations.votes):
            for who, labels in votes.items():
                cells[who][row] = labels
        added = {str(who): each for who, each in cells.items()}
    elif len(annotations.marks):
        added = {"candidates": annotations.sets}
    if annotations.suggestions is not None:
        pairs = list(suggestions(annotations))
        added["prediction"] = [each and [each[0]] for each in pairs]
        columns |= {"probability": [each and each[1] for each in pairs]}
    taken = [name for name in added if name in columns]
    if taken:
        raise InputError(f"the tasks have data called {listed(taken)}, as columns of labels are; rename them")
    texts = path.name.lower().endswith(".parquet")
    sets = {
        name: cells if texts and name == "candidates" else _joined(cells, annotations)
        for name, cells in added.items()
    }
    write_table(pd.DataFrame(columns | sets), path)


def _joined(cells: list[Any], annotations: Annotations) -> list[Any]:
    """Write each set as a text: its labels with ``|`` between them, as JSON lists where a label has one."""
    if any(_SEPARATOR in str(name) for name in annotations.classes.tolist()):
        return ["" if not cell else json.dumps(plain(cell), ensure_ascii=False) for cell in cells]
    return ["" if not cell else _SEPARATOR.join(map(str, cell)) for cell in cells]


def several_votes(annotations: Annotations) -> bool:
    """Say whether somebody's votes are worth columns: more than one vote on some task, by known annotators."""
    return bool(annotations.workers) and int(annotations.votes_a_task.max(initial=0)) > 1


def read_crowd_kit(path: Path, long: Sequence[str] = LONG) -> Annotations:
    """Read a long table, one row for each vote: the columns of task, worker and label."""
    task, worker, label = long
    columns = read_table(path, list(long)).columns
    for name in long:
        blank = columns[name].isna() | (columns[name].astype(str) == "")
        if blank.any():
            row = int(blank.to_numpy().argmax())
            raise InputError(f"the column {shown(name)} of {shown(path)} is empty in row {row}; fill it in")
    numbers, tasks = pd.factorize(columns[task])
    marks = list(zip(numbers.tolist(), columns[worker].tolist(), columns[label].tolist(), strict=True))
    return build(tasks.tolist(), marks, pd.DataFrame(index=range(len(tasks))), shown(path))


def write_crowd_kit(annotations: Annotations, path: Path) -> None:
    """Write a long table, one row for each vote."""
    check_workers(annotations, "crowd-kit")
    check_one_label_a_vote(annotations, "crowd-kit")
    _warn(annotations, "a long table")
    marks = annotations.marks
    task, worker, label = LONG
    tasks = annotations.tasks[marks["row"].to_numpy(np.intp)]
    write_table(pd.DataFrame({task: tasks, worker: marks["worker"], label: marks["label"]}), path)


def read_cleanlab(path: Path, classes: Sequence[Any] | None = None) -> Annotations:
    """Read a matrix of class numbers, one column an annotator, NaN for no vote; ``classes`` names the numbers."""
    matrix, workers, names, tasks = _read_matrix(path)
    if classes is not None:
        names = class_names(list(classes))
    voted = ~np.isnan(matrix)
    most = int(matrix[voted].max(initial=-1))
    bad = voted & ~((matrix >= 0) & (matrix % 1 == 0))
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise InputError(
            f"{shown(path)} holds {matrix[bad][0]:g} in row {row}, but cleanlab numbers classes from 0; mend it"
        )
    if names is None:
        names = np.arange(max(most + 1, 2))
    if most >= len(names):
        raise InputError(
            f"{shown(path)} holds the class {most}, but classes has {len(names)} names; name all of them"
        )
    rows, columns = np.nonzero(voted)
    numbers = matrix[rows, columns].astype(np.intp)
    marks = list(zip(rows.tolist(), [workers[c] for c in columns], names[numbers].tolist(), strict=True))
    return build(
        tasks or list(range(len(matrix))), marks, pd.DataFrame(index=range(len(matrix))), shown(path), names
    )


def _read_matrix(path: Path) -> tuple[NDArray[np.float64], list[Any], Any, list[Any] | None]:
    """Return the matrix, the annotators, and the classes and tasks, None where the file does not name them."""
    if path.suffix.lower() not in (".npy", ".npz"):
        frame = read_table(path).rows
        matrix = frame.apply(pd.to_numeric, errors="coerce")
        if (matrix.isna() & frame.notna()).any().any():
            raise InputError(f"{shown(path)} holds text, but cleanlab's matrix holds numbers; read it as a table")
        return matrix.to_numpy(np.float64), frame.columns.tolist(), None, None
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path")
    try:
        content = np.load(path, allow_pickle=False)
        arrays = (
            {_MATRIX: content}
            if isinstance(content, np.ndarray)
            else {name: content[name] for name in content.files}
        )
        matrix = arrays[_MATRIX].astype(np.float64)
        if matrix.ndim != 2 or not matrix.size:
            raise InputError(f"its shape is {matrix.shape}")
        names, tasks, who = (arrays.get(each) for each in ("classes", "tasks", "annotators"))
        if (tasks is not None and tasks.shape != matrix.shape[:1]) or (
            who is not None and who.shape != matrix.shape[1:]
        ):
            raise InputError("its parts have different sizes")
    except Exception as error:  # NumPy raises errors of many kinds
        raise InputError(
            f"{shown(path)} holds no matrix (n, annotators) ({reason(error)}); save it again"
        ) from None
    workers = list(range(matrix.shape[1])) if who is None else who.tolist()
    return matrix, workers, names, None if tasks is None else tasks.tolist()


def write_cleanlab(annotations: Annotations, path: Path) -> None:
    """Write the matrix: a .csv or .npy file, or an .npz file, which holds the names, too."""
    check_workers(annotations, "cleanlab")
    check_one_label_a_vote(annotations, "cleanlab")
    _warn(annotations, "cleanlab's matrix", unlabelled=False)
    number = {name: code for code, name in enumerate(annotations.classes.tolist())}
    column = {who: code for code, who in enumerate(annotations.workers)}
    matrix = np.full((len(annotations), len(column)), np.nan)
    for row, who, label in annotations.marks.itertuples(index=False, name=None):
        matrix[row, column[who]] = number[label]
    kind = path.suffix.lower()
    if kind not in (".npy", ".npz"):
        write_table(pd.DataFrame(matrix, columns=list(map(str, column))).astype("Int64"), path)
    else:
        with replacing(path) as part, part.open("wb") as file:
            if kind == ".npy":
                np.save(file, matrix)
            else:
                who = np.array(list(map(str, column)))
                named = {"classes": annotations.classes, "annotators": who, "tasks": annotations.tasks}
                arrays: dict[str, Any] = {_MATRIX: matrix, **named}
                np.savez(file, **arrays)
    if kind != ".npz" and annotations.classes.tolist() != list(range(len(number))):
        order = ",".join(map(str, annotations.classes.tolist()))
        warn(f"cleanlab numbers classes: those of {shown(path)} are, from 0, {shown(order)}; keep them")


def _warn(annotations: Annotations, tool: str, unlabelled: bool = True) -> None:
    lost = ["what a model suggests"] if annotations.suggestions is not None else []
    empty = int((annotations.votes_a_task == 0).sum())
    if empty and unlabelled:
        lost.append(f"{empty} tasks without a label")
    warn_of_loss(tool, lost)
