"""Commands for models: ``oneof methods``, ``fit``, ``predict``, ``score``, ``disambiguate`` and ``demo``."""

import inspect
from dataclasses import Field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneof.cli.app import app, fold, show_grid
from oneof.cli.model_options import check_size, find_method, maker
from oneof.cli.votes import (
    CountColumns,
    Denial,
    LongColumns,
    VoteColumns,
    VotesFile,
    candidates_option,
    vote_options,
)

if TYPE_CHECKING:
    from oneof.methods import Classifier

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .npz file.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that oneof fit wrote.")]
TableOut = Annotated[Path, typer.Option("--out", metavar="FILE", help="A .csv, .tsv or .parquet file to write.")]
Candidates = Annotated[str, typer.Option(metavar="COLUMN", help="The column of candidate sets.")]
Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Stands between the labels of a cell; without it a cell is one label."),
]
Ids = Annotated[
    list[str] | None, typer.Option("--id", metavar="COLUMN", help="A column that names the rows; may be repeated.")
]
Images = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column of image files, named from the table's folder: learn from them."
    ),
]

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="See oneof methods NAME; may be repeated."),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same machine: same model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")]
Size = Annotated[int | None, typer.Option(help="Scale images to so many pixels a side.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


class Sort(StrEnum):
    """Orders of the rows of ``oneof disambiguate``."""

    MARGIN = "margin"


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show the settings of this method.")] = None,
) -> None:
    """List the methods, or the settings of one."""
    from oneof.comparison.summary import ADVICE
    from oneof.methods import classifiers

    if name is None:
        rows = [[key, (inspect.getdoc(method) or "").partition("\n")[0]] for key, method in classifiers().items()]
        show_grid(["method", "description"], rows)
        typer.echo(ADVICE)
    else:
        rows = [
            [each.name, repr(each.default), _accepted(each), each.metadata.get("doc", "")]
            for each in fields(find_method(name))
        ]
        show_grid(["setting", "default", "accepts", "meaning"], rows)


@app.command()
def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model file to write.")],
    candidates: Candidates = "candidates",
    separator: Separator = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="See oneof methods; auto takes the one that oneof compare recommends."),
    ] = "idgp",
    estimator: Annotated[
        str | None, typer.Option(metavar="NAME", help="What --method em fits: see oneof methods em.")
    ] = None,
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = "auto",
    ids: Ids = None,
    drop: Drop = None,
    images: Images = None,
    size: Size = None,
    quiet: Quiet = False,
) -> None:
    """Learn a model from candidate sets, or from votes of several annotators.

    All columns but those of labels, --id and --drop are features; with --images the images alone are.
    --method auto compares methods first, as oneof compare does, and takes the one that it recommends.
    """
    from oneof.cli.model_tables import read_training
    from oneof.train.runtime import resolve_device

    _check_model_target(out, table)
    check_size(size, images)
    resolve_device(device)
    make = maker(method, estimator, settings or [], seed, device, quiet)
    given = vote_options(candidates_option(candidates), votes, long, counts, votes_file, denial, separator)
    others = [*(ids or []), *(drop or [])]
    rows, y = read_training(table, given, candidates, separator, others, images, size, not quiet)
    model = make(rows, y).fit(rows, y)
    model.save(out)
    typer.echo(_summary(model, y))
    typer.echo(fold(f"{type(model).__name__} model written to {out}"))


def _check_model_target(out: Path, table: Path) -> None:
    from oneof.data import tables

    tables.check_target(out, [table], table=False)
    if tables.is_table(out):
        raise ValueError(f"--out is {str(out)!r}, but a model is no table; name it {out.stem + '.safetensors'!r}")


def _summary(model: "Classifier", y: Any) -> str:
    import numpy as np

    sets = np.asarray(y)
    size = f"{sets.sum(1).mean():.2f} candidates in a set on average"
    return f"{len(sets)} rows, {model.n_features_in_} features, {sets.shape[1]} classes, {size}"


@app.command()
def predict(model: ModelPath, table: TablePath, out: TableOut, ids: Ids = None, images: Images = None) -> None:
    """Write the most likely class of every row."""
    from oneof.cli.model_tables import features_for, load, read_for, with_ids, write_results
    from oneof.data import tables

    tables.check_target(out, [model, table])
    names = list(dict.fromkeys(ids or []))
    fitted = load(model)
    data = read_for(fitted, table, names, images)
    probabilities = fitted.predict_proba(features_for(fitted, data, names))
    best = {"prediction": fitted.classes_[probabilities.argmax(1)], "probability": probabilities.max(1)}
    write_results(with_ids(data.columns[names], best), out)


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
) -> None:
    """Print how good the predictions are."""
    from oneof.cli.model_tables import candidates_for, features_for, load, read_for
    from oneof.metrics import approximated_accuracy, covering_rate

    given = vote_options(("--labels", labels), votes, long, counts, votes_file, denial, separator)
    if given is None and labels is None:
        raise ValueError(
            "there is nothing to score by; pass --labels COLUMN, or votes by --votes, --long or --counts"
        )
    fitted = load(model)
    apart = given.in_table if given else [str(labels)]
    data = read_for(fitted, table, apart, images)
    if given:
        data, judged = given.read(data, fitted.classes_)
        sets = judged.weights
    else:
        sets = candidates_for(fitted, data, apart[0], separator)
    probabilities = fitted.predict_proba(features_for(fitted, data, apart))
    plain = bool(((sets > 0).sum(1) == 1).all())
    meaning = "every row has one label: this is the accuracy" if plain else "on plain labels it is the accuracy"
    typer.echo(f"approximated accuracy  {approximated_accuracy(probabilities, sets).mean():.4f}  ({meaning})")
    typer.echo(f"covering rate          {covering_rate(probabilities, sets).mean():.4f}  (predictions in the set)")


@app.command()
def disambiguate(
    model: ModelPath,
    table: TablePath,
    out: TableOut,
    candidates: Candidates = "candidates",
    separator: Separator = None,
    ids: Ids = None,
    sort: Annotated[Sort | None, typer.Option(help="margin: first the rows that deserve a second look.")] = None,
    images: Images = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
) -> None:
    """Write the most likely candidate of every row.

    With it come its probability and the margin to the second; without --id the rows are numbered from 0.
    """
    import pandas as pd

    from oneof.cli.model_tables import candidates_for, features_for, load, read_for, with_ids, write_results
    from oneof.data import tables

    tables.check_target(out, [model, table])
    names = list(dict.fromkeys(ids or []))
    given = vote_options(candidates_option(candidates), votes, long, counts, votes_file, denial, separator)
    fitted = load(model)
    apart = [*(given.in_table if given else [candidates]), *names]
    data = read_for(fitted, table, apart, images)
    sets: Any
    if given:
        data, judged = given.read(data, fitted.classes_)
        sets, shown = judged, [fitted.classes_[row].tolist() for row in judged.candidates]
    else:
        sets, shown = candidates_for(fitted, data, candidates, separator), data.columns[candidates]
    decision = fitted.disambiguate(features_for(fitted, data, apart), sets)
    keys = data.columns[names] if names else pd.DataFrame({"row": range(len(sets))})
    result = with_ids(keys, {"candidates": shown, **decision._asdict()})
    write_results(result if sort is None else result.sort_values(sort.value, kind="stable"), out)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("demo.html"),
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the numbers.")
    ] = None,
) -> None:
    """Watch IDGP learn real images from ambiguous labels."""
    from oneof.cli.demo import run_demo
    from oneof.data import tables

    for target in [out] if json_out is None else [out, json_out]:
        tables.check_target(target, table=False)
    run_demo(out, json_out, typer.echo)


def _accepted(setting: Field[Any]) -> str:
    """Say in words what a setting accepts."""
    option = setting.metadata.get("option")
    return f"see {option} of oneof fit" if option else setting.metadata.get("expected", "")
