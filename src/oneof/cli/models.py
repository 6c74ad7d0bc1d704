"""Commands for models: ``oneof methods``, ``predict``, ``score``, ``disambiguate`` and ``demo``."""

import inspect
from dataclasses import Field, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from oneof.cli import completion
from oneof.cli.app import app
from oneof.cli.method_options import method_named
from oneof.cli.options import (
    Candidates,
    CandidatesPrefix,
    Format,
    HeldOutFlag,
    Ids,
    Images,
    ModelPath,
    Numbers,
    OnDisk,
    Separator,
    TableOut,
    TablePath,
    check_format,
    check_json,
    column_names,
)
from oneof.cli.output import give, say, show_grid, wanted
from oneof.cli.votes import (
    CountColumns,
    Denial,
    LongColumns,
    VoteColumns,
    VotesFile,
    label_options,
    scored_labels,
)


class Sort(StrEnum):
    """Orders of the rows of ``oneof disambiguate``."""

    MARGIN = "margin"
    RANK = "rank"


@app.command()
def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Show the settings of this method.", autocompletion=completion.methods
        ),
    ] = None,
) -> None:
    """List the methods, or the settings of one."""
    from oneof.comparison.summary import ADVICE
    from oneof.methods import classifiers

    if name is None:
        rows = [[key, (inspect.getdoc(method) or "").partition("\n")[0]] for key, method in classifiers().items()]
        show_grid(["method", "description"], rows)
        say(ADVICE)
        give({"methods": dict(rows), "advice": ADVICE})
    else:
        rows = [
            [each.name, repr(each.default), _accepted(each), each.metadata.get("doc", "")]
            for each in fields(method_named(name))
        ]
        header = ["setting", "default", "accepts", "meaning"]
        show_grid(header, rows)
        give({"method": name.lower(), "settings": [dict(zip(header, row, strict=True)) for row in rows]})


@app.command()
def predict(
    model: ModelPath,
    table: TablePath,
    out: TableOut,
    ids: Ids = None,
    images: Images = None,
    form: Format = None,
    on_disk: OnDisk = None,
) -> None:
    """Write the most likely class of every row, or of every image in a folder."""
    from oneof.cli.model_tables import features_for, load, read_for, with_ids, write_results
    from oneof.cli.on_disk import in_pieces, predict_in_pieces
    from oneof.data import tables

    check_json(out)
    check_format(form, table, out)
    tables.check_target(out, [model, table], form=form)
    fitted = load(model)
    hindrances = {
        "standard input and output are": "-" in (str(table), str(out)),
        "a workbook is written from a": out.suffix.lower() == ".xlsx",
        "a model of images needs the": fitted.input_shape_ is not None,
    }
    if in_pieces(table, on_disk, hindrances):
        predict_in_pieces(fitted, table, out, column_names(ids))
        return
    names = column_names(ids) or (["file"] if table.is_dir() else [])
    data = read_for(fitted, table, names, images, form)
    label, probability = fitted.predict_top(features_for(fitted, data, names), 1)
    best = {"prediction": label[:, 0], "probability": probability[:, 0]}
    write_results(with_ids(data.columns[names], best), out, form)


@app.command()
def score(
    model: ModelPath,
    table: TablePath,
    labels: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of true labels or candidate sets.")
    ] = None,
    separator: Separator = None,
    images: Images = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    candidates_prefix: CandidatesPrefix = None,
    form: Format = None,
) -> None:
    """Print how good the predictions are."""
    import numpy as np

    from oneof.cli.model_tables import features_for, labels_for, load, read_for
    from oneof.metrics import approximated_accuracy, covering_rate
    from oneof.scoring import row_values

    check_format(form, table)
    where = scored_labels(labels, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    fitted = load(model)
    data, sets, _ = labels_for(fitted, read_for(fitted, table, where.in_table, images, form), where)
    metrics = [approximated_accuracy, covering_rate, lambda _, inside: np.count_nonzero(inside, axis=1) == 1]
    values = row_values(fitted, features_for(fitted, data, where.in_table), sets, metrics)
    accuracy, covering, plain = float(values[0].mean()), float(values[1].mean()), bool(values[2].all())
    meaning = "every row has one label: this is the accuracy" if plain else "on plain labels it is the accuracy"
    say(f"approximated accuracy  {accuracy:.4f}  ({meaning})")
    say(f"covering rate          {covering:.4f}  (predictions in the set)")
    give(
        {"rows": len(sets), "approximated_accuracy": accuracy, "covering_rate": covering, "one_label_each": plain}
    )


@app.command()
def disambiguate(
    model: ModelPath,
    table: TablePath,
    out: TableOut,
    candidates: Candidates = "candidates",
    separator: Separator = None,
    ids: Ids = None,
    sort: Annotated[Sort | None, typer.Option(help="rank: first the rows that deserve a second look.")] = None,
    held_out: HeldOutFlag = False,
    images: Images = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    candidates_prefix: CandidatesPrefix = None,
    form: Format = None,
) -> None:
    """Write the most likely candidate of every row.

    With it come its probability and the margin to the second, what the model says without regard to the
    candidates, the chance that the truth is outside, why the row deserves a look, its rank, and an empty column
    for decisions, which oneof apply reads. Without --id the rows are numbered from 0.
    """
    import pandas as pd

    from oneof.cli.model_tables import features_for, labels_for, load, read_for, with_ids, write_results
    from oneof.cli.review_tables import judge_rows, write_page
    from oneof.data import tables
    from oneof.labels import SparseSets, dense_form

    names = column_names(ids)
    labels = label_options(candidates, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    if out.suffix.lower() == ".html":
        write_page(model, table, labels, names, images, out, held_out)
        return
    check_json(out)
    check_format(form, table, out)
    tables.check_target(out, [model, table], form=form)
    fitted = load(model)
    apart = [*labels.in_table, *names]
    data, sets, shown = labels_for(fitted, read_for(fitted, table, apart, images, form), labels)
    sets = dense_form(sets) if isinstance(sets, SparseSets) else sets  # all chances of a row are looked at
    judged = judge_rows(fitted, model, features_for(fitted, data, apart), sets, held_out)
    if table.is_dir():
        names = ["file"]
    keys = data.columns[names] if names else pd.DataFrame({"row": range(len(sets))})
    result = with_ids(keys, {"candidates": shown, **judged})
    write_results(result if sort is None else result.sort_values(sort.value, kind="stable"), out, form)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("demo.html"),
    json_out: Numbers = None,
) -> None:
    """Watch IDGP learn real images from ambiguous labels."""
    from oneof.cli.demo import run_demo
    from oneof.data import tables

    for target in [out] if json_out is None else [out, json_out]:
        tables.check_target(target, table=False)
    give(run_demo(out, json_out, say, visible=not wanted.quiet).as_json())


def _accepted(setting: Field[Any]) -> str:
    """Say in words what a setting accepts."""
    option = setting.metadata.get("option")
    return f"see {option} of oneof fit" if option else setting.metadata.get("expected", "")
