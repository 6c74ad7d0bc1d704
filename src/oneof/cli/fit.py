"""Command that learns a model: ``oneof fit``."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneof.cli.app import app, fold
from oneof.cli.method_options import method_named, settings_of, shared_settings
from oneof.cli.options import (
    Candidates,
    CandidatesPrefix,
    Decisions,
    Device,
    Drop,
    Format,
    Ids,
    Images,
    Kinds,
    Quiet,
    Seed,
    Separator,
    Settings,
    Size,
    TablePath,
    check_format,
    check_size,
    column_names,
)
from oneof.cli.votes import (
    CountColumns,
    Denial,
    LongColumns,
    VoteColumns,
    VotesFile,
    label_options,
)

if TYPE_CHECKING:
    from oneof.methods import Classifier


@app.command()
def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model file to write.")],
    candidates: Candidates = "candidates",
    candidates_prefix: CandidatesPrefix = None,
    separator: Separator = None,
    votes: VoteColumns = None,
    long: LongColumns = None,
    counts: CountColumns = None,
    votes_file: VotesFile = None,
    denial: Denial = None,
    decisions: Decisions = None,
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
    kinds: Kinds = None,
    form: Format = None,
    images: Images = None,
    size: Size = None,
    quiet: Quiet = False,
) -> None:
    """Learn a model from candidate sets, or from votes of several annotators.

    All columns but those of labels, --id and --drop are features; with --images the images alone are. What becomes
    of columns with gaps, categories, dates and text is printed, and kept in the model.
    --method auto compares methods first, as oneof compare does, and takes the one that it recommends.
    With --decisions rows that were reviewed count as decided; the table itself stays as it is.
    """
    from oneof.cli.encoding import training_table
    from oneof.train.runtime import resolve_device

    _check_model_target(out, table)
    check_size(size, images)
    check_format(form, table)
    resolve_device(device)
    make = _maker(method, estimator, settings or [], seed, device, quiet)
    labels = label_options(candidates, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    encoded, y = training_table(
        table, labels, column_names(drop), kinds, images, size, not quiet, form, decisions, column_names(ids)
    )
    model = make(encoded.rows, y).fit(encoded.rows, y)
    encoded.joined(model).save(out)
    typer.echo(f"{_summary(model, y)}\n{fold(f'{type(model).__name__} model written to {out}')}")


def _maker(
    method: str, estimator: str | None, settings: list[str], seed: int, device: str, quiet: bool
) -> "Callable[[Any, Any], Classifier]":
    """Check the options of a model; return what makes it, given rows and candidate sets."""
    from oneof.estimator.fields import check

    if method.lower() == "auto":
        if estimator is not None:
            raise ValueError(f"--estimator is {estimator!r}, but --method is auto; pass --method em with it")
        given = shared_settings(settings)
        return lambda rows, sets: _recommended(rows, sets, given, seed, device, quiet)
    cls = method_named(method)
    model = cls(**settings_of([cls], settings), **_options(cls, estimator, seed, device, quiet))
    check(model)
    return lambda rows, sets: model


def _recommended(
    rows: Any, sets: Any, settings: dict[str, Any], seed: int, device: str, quiet: bool
) -> "Classifier":
    """Compare the methods, say which one is taken and why, and return it with the settings that it has."""
    from oneof.comparison import compare

    found = compare(rows, sets, settings=settings | {"device": device}, random_state=seed, verbose=int(not quiet))
    typer.echo(found.advice)
    cls = method_named(found.best)
    own = {each.name for each in fields(cls)}
    kept = {name: value for name, value in settings.items() if name in own}
    return cls(**kept, **_options(cls, None, seed, device if "device" in own else "auto", quiet))


def _check_model_target(out: Path, table: Path) -> None:
    from oneof.data import tables

    tables.check_target(out, [table], table=False)
    if tables.is_table(out):
        raise ValueError(f"--out is {str(out)!r}, but a model is no table; name it {out.stem + '.safetensors'!r}")


def _options(
    cls: "type[Classifier]", estimator: str | None, seed: int, device: str, quiet: bool
) -> dict[str, Any]:
    """Return the settings that have options of their own, as far as the method has them."""
    names = {each.name for each in fields(cls)}
    if "estimator" not in names and estimator is not None:
        raise ValueError(
            f"--estimator is {estimator!r}, but {cls.__name__} trains a network; pass --method em with it"
        )
    if "device" not in names and device not in ("auto", "cpu"):
        raise ValueError(f"--device is {device!r}, but {cls.__name__} computes on the CPU; leave it out")
    given = {"estimator": estimator, "random_state": seed, "device": device, "verbose": 0 if quiet else 1}
    return {name: value for name, value in given.items() if name in names and value is not None}


def _summary(model: "Classifier", y: Any) -> str:
    import numpy as np

    sets = np.asarray(y)
    size = f"{sets.sum(1).mean():.2f} candidates in a set on average"
    return f"{len(sets)} rows, {model.n_features_in_} features, {sets.shape[1]} classes, {size}"
