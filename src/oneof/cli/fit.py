"""Command that learns a model: ``oneof fit``."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oneof.cli.app import app
from oneof.cli.method_options import method_named, settings_of, shared_settings
from oneof.cli.options import (
    Candidates,
    CandidatesPrefix,
    Cluster,
    Decisions,
    Device,
    Drop,
    EstimatorName,
    Format,
    Gpus,
    Ids,
    Images,
    Kinds,
    MethodName,
    OnDisk,
    Seed,
    Separator,
    Settings,
    Size,
    TablePath,
    Workers,
    check_format,
    check_size,
    column_names,
)
from oneof.cli.output import fold, give, say, wanted
from oneof.cli.votes import (
    CountColumns,
    Denial,
    Labels,
    LongColumns,
    VoteColumns,
    VotesFile,
    label_options,
)
from oneof.errors import InputError

if TYPE_CHECKING:
    from oneof.methods import Classifier


Card = Annotated[
    bool, typer.Option("--card", help="Write a card beside the model: data, scores and settings as Markdown.")
]


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
    method: MethodName = "competition",
    estimator: EstimatorName = None,
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = "auto",
    ids: Ids = None,
    drop: Drop = None,
    kinds: Kinds = None,
    form: Format = None,
    images: Images = None,
    size: Size = None,
    on_disk: OnDisk = None,
    workers: Workers = None,
    cluster: Cluster = None,
    gpus: Gpus = False,
    card: Card = False,
) -> None:
    """Learn a model from candidate sets, or from votes of several annotators.

    All columns but those of labels, --id and --drop are features; with --images, and in a folder with one
    sub-folder a class, the images alone are. What becomes of columns with gaps, categories, dates and text is
    printed, and kept in the model.
    --method auto compares methods first, as oneof compare does, and takes the one that it recommends.
    With --decisions rows that were reviewed count as decided; the table itself stays as it is.
    """
    from oneof.cli.on_disk import in_pieces

    _check_model_target(out, table)
    check_size(size, images, table)
    check_format(form, table)
    train = _trainer(workers, cluster, gpus)
    make = _maker(method, estimator, settings or [], seed, device)
    labels = label_options(candidates, candidates_prefix, separator, votes, long, counts, votes_file, denial)
    pieces = in_pieces(table, on_disk, _hindrances(table, labels, decisions, method, images))
    scale = size or _size_for(settings or [], images is not None or table.is_dir())
    encoded, y = _read(pieces, table, labels, drop, ids, (kinds, images, scale, form, decisions))
    chosen, why = make(encoded.rows, y)
    model = train(chosen, encoded.rows, y)
    encoded.joined(model).save(out, card=card and (why or True))
    _tell({"method": type(model).__name__, **_facts(model, y), "columns": encoded.said, "out": out})


def _read(
    pieces: bool, table: Path, labels: Labels, drop: Drop, ids: Ids, reading: tuple[Any, Any, Any, Any, Any]
) -> tuple[Any, Any]:
    """Return the rows of a table, encoded, and their sets: read in pieces, or whole."""
    from oneof.cli.encoding import training_table
    from oneof.cli.on_disk import training_rows

    dropped, named = column_names(drop), column_names(ids)
    labels.check_apart(dropped, named)
    if pieces:
        return training_rows(table, labels, [*named, *dropped], reading[0])
    return training_table(table, labels, dropped, *reading, named)


def _hindrances(table: Path, labels: Labels, decisions: Any, method: str, images: str | None) -> dict[str, Any]:
    """Return what needs a table in memory, in words, and whether it is asked for."""
    return {
        "standard input is a": str(table) == "-",
        "votes are counted with the": labels.given is not None,
        "--candidates-prefix reads the": labels.prefix is not None,
        "--decisions are merged with the": decisions,
        "--images names the files of a": images,
        f"--method {method.lower()} copies parts of the": method.lower() in ("auto", "em"),
    }


def _tell(facts: dict[str, Any]) -> None:
    """Print what was learned from, and where the model is."""
    give(facts)
    say(
        "{rows} rows, {features} features, {classes} classes, ".format(**facts)
        + f"{facts['mean_set_size']:.2f} candidates in a set on average"
    )
    say(fold(f"{facts['method']} model written to {facts['out']}"))


def _trainer(workers: int | None, cluster: str | None, gpus: bool) -> "Callable[[Any, Any, Any], Classifier]":
    """Return what fits a model: this process, or several workers."""
    if workers is not None:
        from oneof.estimator.with_workers import fit_with_workers

        return partial(fit_with_workers, workers=workers, cluster=cluster, gpus=gpus)
    if cluster is not None or gpus:
        raise InputError("--cluster and --gpus say where workers train; add --workers N, or leave them out")
    return lambda model, rows, y: model.fit(rows, y)


def _maker(
    method: str, estimator: str | None, settings: list[str], seed: int, device: str
) -> "Callable[[Any, Any], tuple[Classifier, str]]":
    """Check the options of a model; return what makes it, given rows and sets, and says why it is this one."""
    from oneof.estimator.fields import check
    from oneof.train.runtime import resolve_device

    resolve_device(device)
    if method.lower() == "auto":
        if estimator is not None:
            raise InputError(f"--estimator is {estimator!r}, but --method is auto; pass --method em with it")
        given = shared_settings(settings)
        return lambda rows, sets: _recommended(rows, sets, given, seed, device)
    cls = method_named(method)
    model = cls(**settings_of([cls], settings), **_options(cls, estimator, seed, device))
    check(model)
    return lambda rows, sets: (model, "")


def _recommended(
    rows: Any, sets: Any, settings: dict[str, Any], seed: int, device: str
) -> "tuple[Classifier, str]":
    """Compare the methods, say which one is taken and why, and return it with the settings that it has."""
    from oneof.comparison import compare

    found = compare(
        rows, sets, settings=settings | {"device": device}, random_state=seed, verbose=int(not wanted.quiet)
    )
    say(found.advice)
    cls = method_named(found.best)
    own = {each.name for each in fields(cls)}
    kept = {name: value for name, value in settings.items() if name in own}
    return cls(**kept, **_options(cls, None, seed, device if "device" in own else "auto")), found.advice


def _size_for(settings: list[str], of_images: bool) -> tuple[int, int] | None:
    """Return the size of images that a pretrained network wants, if --set names one."""
    from oneof.nn.pretrained import input_size, is_pretrained

    named = [text.partition("=")[2].strip() for text in settings if text.partition("=")[0].strip() == "network"]
    return input_size(named[-1]) if of_images and named and is_pretrained(named[-1]) else None


def _check_model_target(out: Path, table: Path) -> None:
    from oneof.data import tables

    tables.check_target(out, [table], table=False)
    if tables.is_table(out):
        raise InputError(f"--out is {str(out)!r}, but a model is no table; name it {out.stem + '.safetensors'!r}")


def _options(cls: "type[Classifier]", estimator: str | None, seed: int, device: str) -> dict[str, Any]:
    """Return the settings that have options of their own, as far as the method has them."""
    names = {each.name for each in fields(cls)}
    if "estimator" not in names and estimator is not None:
        raise InputError(
            f"--estimator is {estimator!r}, but {cls.__name__} trains a network; pass --method em with it"
        )
    if "device" not in names and device not in ("auto", "cpu"):
        raise InputError(f"--device is {device!r}, but {cls.__name__} computes on the CPU; leave it out")
    given = {"estimator": estimator, "random_state": seed, "device": device, "verbose": int(not wanted.quiet)}
    return {name: value for name, value in given.items() if name in names and value is not None}


def _facts(model: "Classifier", y: Any) -> dict[str, Any]:
    """Return what was learned from."""
    from oneof.labels import encode_sets
    from oneof.labels.sparse_sets import set_sizes

    sets, classes = encode_sets(y)
    shape = {"rows": len(sets), "features": model.n_features_in_, "classes": len(classes)}
    return shape | {"mean_set_size": float(set_sizes(sets).mean())}
