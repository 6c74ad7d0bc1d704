"""Tables as the commands for review read and write them: judged rows, and copies with decisions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oneof.cli.model_tables import read_labels
from oneof.data import label_cells, tables
from oneof.io.progress import StageProgress
from oneof.io.words import shown
from oneof.labels import Votes, WeightedSets, decide
from oneof.methods import Classifier
from oneof.review import apply_decisions
from oneof.review.held_out import Predictions, held_out_for, predict_own
from oneof.review.listing import listing
from oneof.review.ranking import Ranking, rank, weights_beyond


def labels_over(classes: Any, sets: Any) -> Any:
    """Return candidate sets over the classes of a model, in a form that a fit takes."""
    return sets if isinstance(sets, WeightedSets) else pd.DataFrame(sets, columns=classes)


def held_out(model: Classifier, path: Path, rows: Any, sets: Any, visible: bool = True) -> Predictions:
    """Return predictions by models that have not seen the rows, with a bar while they are made."""
    y = labels_over(model.classes_, sets)
    with StageProgress("held-out predictions", ["5 fits"], visible) as progress:
        return held_out_for(path, model, rows, y, progress.advance)


def judge_rows(model: Classifier, path: Path, rows: Any, sets: Any, by_others: bool) -> dict[str, Any]:
    """Return the columns of ``oneof disambiguate``, by the model itself or by others that have not seen the rows."""
    weights = sets.weights if isinstance(sets, WeightedSets) else sets
    counts, beyond = (sets.counts, weights_beyond(sets)) if isinstance(sets, Votes) else (None, None)
    classes = model.classes_
    if by_others:
        ranking = rank(held_out(model, path, rows, sets), weights, counts, beyond)
        choice = decide(inside_posterior(ranking, weights), classes)
    else:
        choice = model.disambiguate(rows, sets)
        number = {label: k for k, label in enumerate(classes.tolist())}
        answer = np.array([number[label] for label in choice.label.tolist()])
        ranking = rank(predict_own(model, rows), weights, counts, beyond, answer)
    return {**choice._asdict(), **listing(ranking, classes)}


def inside_posterior(ranking: Ranking, weights: Any) -> Any:
    """Return the chances of the candidates (n, K), given that the truth is one of them."""
    inside = np.where(weights > 0, ranking.posterior, 0)
    total = inside.sum(1, keepdims=True)
    return np.where(
        total > 0, inside / np.where(total > 0, total, 1), (weights > 0) / (weights > 0).sum(1, keepdims=True)
    )


def apply_to_table(
    table: Path, decisions: list[Path], column: str, separator: str | None, ids: list[str], none: str
) -> pd.DataFrame:
    """Return the table, as it is written, with decisions in its column of candidate sets."""
    if table.suffix.lower() == ".npz":
        raise ValueError(
            f"{shown(table)} holds arrays, which are not written; pass the decisions to oneof fit --decisions"
        )
    every = tables.read_table(table).rows.columns.tolist()
    data = tables.read_table(table, list(dict.fromkeys([*every, column, *ids])))
    y, rows = apply_decisions(
        read_labels(data, column, separator), decisions, none=none, ids=data.columns[ids] if ids else None
    )
    copy = data.columns[every].iloc[rows].reset_index(drop=True)
    before = label_cells.label_sets(data.columns[column].iloc[rows], separator)
    cells: list[Any] = copy[column].tolist()
    lists = label_cells.are_json_lists(data.columns[column]) or any(
        isinstance(cell, list | np.ndarray) for cell in cells
    )
    for i, (new, old) in enumerate(zip(y.to_numpy(), before, strict=True)):
        labels = y.columns[new].tolist()
        if {*map(str, labels)} != {*map(str, old if isinstance(old, list) else [old])}:
            cells[i] = _cell(labels, int(rows[i]), separator, cells[i], lists)
    copy[column] = pd.Series(cells, dtype=object)
    return copy


def _cell(labels: list[Any], row: int, separator: str | None, old: Any, lists: bool) -> Any:
    """Write a set as the cells of its column are written."""
    if lists:
        return json.dumps(labels) if isinstance(old, str) else labels
    if len(labels) == 1:
        return labels[0]
    if separator is None:
        raise ValueError(
            f"row {row} is none of these, so that all other classes are left, but a cell holds one label; pass "
            "--separator '|' to write sets, or --none drop"
        )
    return separator.join(map(str, labels))
