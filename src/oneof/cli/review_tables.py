"""Tables as the commands for review read and write them: judged rows, and copies with decisions."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oneof.cli.model_tables import encoder_of, features_for, labels_for, load, read_for, read_labels
from oneof.cli.output import fold, give, say, wanted
from oneof.cli.votes import Labels
from oneof.data import label_cells, tables
from oneof.data.folder import image_paths
from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.progress import StageProgress
from oneof.io.words import shown
from oneof.labels import SparseSets, Votes, WeightedSets, decide, dense_form
from oneof.methods import Classifier, Model
from oneof.pipeline import Pipeline
from oneof.review import apply_decisions
from oneof.review.held_out import Predictions, held_out_for, predict_own
from oneof.review.journal import Journal
from oneof.review.listing import listing
from oneof.review.material import Material
from oneof.review.own_columns import OwnColumns
from oneof.review.ranking import Ranking, rank, weights_beyond
from oneof.review.session import Session, check_journal
from oneof.review.static import static_page

_PAGE_ROWS = 300  # of a page of ``oneof disambiguate``


def labels_over(classes: Any, sets: Any) -> Any:
    """Return candidate sets over the classes of a model, in a form that a fit takes."""
    return sets if isinstance(sets, WeightedSets) else pd.DataFrame(sets, columns=classes)


def held_out(model: Classifier, path: Path, rows: Any, sets: Any) -> Predictions:
    """Return predictions by models that have not seen the rows, with a bar while they are made."""
    y = labels_over(model.classes_, sets)
    with StageProgress("held-out predictions", ["5 fits"], not wanted.quiet) as progress:
        return held_out_for(path, model, rows, y, progress.advance)


def without_encoder(model: Model, rows: Any) -> tuple[Classifier, Any]:
    """Return the classifier of a pipeline and the rows as it sees them: other fits take the same columns."""
    return (model.steps[-1][1], model[:-1].transform(rows)) if isinstance(model, Pipeline) else (model, rows)


def judge_rows(fitted: Model, path: Path, rows: Any, sets: Any, by_others: bool) -> dict[str, Any]:
    """Return the columns of ``oneof disambiguate``, by the model itself or by others."""
    model, rows = without_encoder(fitted, rows)
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
    columns = {**choice._asdict(), **listing(ranking, classes)}
    if choice.outside is not None and getattr(model, "outside", 0) != 0:  # then the model knows it itself
        columns["outside"] = choice.outside
    return columns


def inside_posterior(ranking: Ranking, weights: Any) -> Any:
    """Return the chances of the candidates (n, K), given that the truth is one of them."""
    inside = np.where(weights > 0, ranking.posterior, 0)
    total = inside.sum(1, keepdims=True)
    return np.where(
        total > 0, inside / np.where(total > 0, total, 1), (weights > 0) / (weights > 0).sum(1, keepdims=True)
    )


def material_of(
    path: Path, table: Path, labels: Labels, ids: list[str], images: str | None, text: str | None
) -> tuple[Classifier, Material]:
    """Read a model, and a table as a review shows it."""
    fitted = load(path)
    others = [*ids, *([text] if text else []), *([images] if images else [])]
    apart = list(dict.fromkeys([*labels.in_table, *others]))
    shown_only = images is not None and getattr(fitted, "input_shape_", None) is None  # it learned from features
    data = read_for(fitted, table, apart, None if shown_only else images)
    data, sets, _ = labels_for(fitted, data, labels)
    sets = dense_form(sets) if isinstance(sets, SparseSets) else sets
    given = labels.given
    ballots = data.columns[given.columns] if given is not None and given.kind == "votes" else None
    given_rows = features_for(fitted, data, apart)
    model, rows = without_encoder(fitted, given_rows)
    cells = data.columns
    names = [" ".join(map(str, row)) for row in cells[ids].itertuples(index=False)] if ids else None
    if names is None and images is not None:
        names = cells[images].astype(str).tolist()
    return model, Material(
        title=table.name,
        X=rows,
        y=labels_over(model.classes_, sets),
        classes=model.classes_,
        names=names,
        texts=cells[text].astype(str).tolist() if text else None,
        images=None if images is None else image_paths(table, images, cells[images].tolist()),
        root=table.parent,
        ballots=ballots,
        **_made_of(fitted, given_rows),
    )


def _made_of(fitted: Model, rows: Any) -> dict[str, Any]:
    """Return what a review is told of the steps before a classifier, and of the table that they are given."""
    if not isinstance(fitted, Pipeline):
        return {}
    told: dict[str, Any] = {"steps": fitted.steps[:-1]}
    encoder = encoder_of(fitted)
    if encoder is not None and len(fitted.steps) == 2:  # others mix the columns
        return {**told, "own": OwnColumns(rows, encoder.used_columns(), encoder.sources())}
    return {**told, "columns": [str(name) for name in fitted[:-1].get_feature_names_out()]}


def ranked(model: Classifier, path: Path, material: Material, by_others: bool = True) -> Ranking:
    """Rank the rows of a review."""
    found = held_out(model, path, material.X, material.y) if by_others else predict_own(model, material.X)
    return rank(found, material.weights, material.counts, material.beyond)


@contextmanager
def open_session(model: Classifier, path: Path, material: Material, journal: Path) -> Iterator[Session]:
    """Open and check the journal first, since predictions may take long, and then the review."""
    with Journal(journal) as opened:
        check_journal(opened, material)
        yield Session(model, path, material, ranked(model, path, material), opened)


def write_page(
    path: Path, table: Path, labels: Labels, ids: list[str], images: str | None, out: Path, by_others: bool
) -> None:
    """Write the queue of a table as one page, judged by the model itself or by others."""
    model, material = material_of(path, table, labels, ids, images, None)
    write_static(model, path, material, out, _PAGE_ROWS, [path, table], by_others)


def write_static(
    model: Classifier,
    path: Path,
    material: Material,
    out: Path,
    limit: int,
    inputs: list[Path],
    by_others: bool = True,
) -> None:
    """Write the first rows of the queue as one page."""
    tables.check_target(out, inputs, table=False)
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--static is {shown(out)}, but a page is written; name it {out.stem + '.html'!r}")
    ranking = ranked(model, path, material, by_others)
    with replacing(out) as part:
        part.write_text(static_page(material, ranking, limit, model), encoding="utf-8")
    give({"rows": min(limit, len(material)), "out": out})
    say(fold(f"the first {min(limit, len(material))} rows of the queue written to {out}"))


def apply_to_table(
    table: Path, decisions: list[Path], column: str, separator: str | None, ids: list[str], none: str
) -> pd.DataFrame:
    """Return the table, as it is written, with decisions in its column of candidate sets."""
    if table.suffix.lower() == ".npz":
        raise InputError(
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
        raise InputError(
            f"row {row} is none of these, so that all other classes are left, but a cell holds one label; pass "
            "--separator '|' to write sets, or --none drop"
        )
    return separator.join(map(str, labels))
