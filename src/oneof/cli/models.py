"""Commands for models: ``oneof methods``, ``fit``, ``predict``, ``score``, ``disambiguate`` and ``demo``."""

import inspect
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from numpy.typing import NDArray

from oneof import METHODS, encode, load_model
from oneof.cli.app import app, fold, named_values, note, show_grid
from oneof.data import tables
from oneof.data.folder import decode_images, image_paths
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import check
from oneof.metrics import approximated_accuracy, covering_rate
from oneof.nn.networks import NETWORKS
from oneof.train.runtime import resolve_device

_OWN_OPTION = {"random_state": "--seed", "device": "--device", "verbose": "--quiet"}
_NETWORK_NAMES = ["auto", *NETWORKS]

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


class Sort(StrEnum):
    """Orders of the rows of ``oneof disambiguate``."""

    MARGIN = "margin"


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show the settings of this method.")] = None,
) -> None:
    """List the methods, or the settings of one."""
    if name is None:
        rows = [[key, (inspect.getdoc(method) or "").partition("\n")[0]] for key, method in METHODS.items()]
        show_grid(["method", "description"], rows)
    else:
        parameters = fields(_method(name))
        rows = [[each.name, repr(each.default), _accepted(each.name, each.metadata)] for each in parameters]
        show_grid(["setting", "default", "accepts"], rows)


@app.command()
def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model file to write.")],
    candidates: Candidates = "candidates",
    separator: Separator = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="See oneof methods.")] = "idgp",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="See oneof methods NAME; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same machine: same model.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    ids: Ids = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")
    ] = None,
    images: Images = None,
    size: Annotated[int | None, typer.Option(help="Scale images to so many pixels a side.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Learn a model from candidate sets.

    All columns but those of --candidates, --id and --drop are features; with --images the images alone are.
    """
    tables.check_target(out, [table], table=False)
    resolve_device(device)
    cls = _method(method)
    model = cls(**_settings(cls, settings or []), random_state=seed, device=device, verbose=0 if quiet else 1)
    check(model)
    apart = [candidates, *(ids or []), *(drop or [])]
    data = _read(table, apart, images, size, progress=not quiet)
    sets, classes = encode(read_labels(data, candidates, separator))
    model.fit(tables.numeric_features(data, apart), pd.DataFrame(sets, columns=classes))
    model.save(out)
    typer.echo(
        f"{len(sets)} rows, {model.n_features_in_} features, {len(classes)} classes, "
        f"{sets.sum(1).mean():.2f} candidates in a set on average"
    )
    typer.echo(fold(f"{cls.__name__} model written to {out}"))


@app.command()
def predict(model: ModelPath, table: TablePath, out: TableOut, ids: Ids = None, images: Images = None) -> None:
    """Write the most likely class of every row."""
    tables.check_target(out, [model, table])
    names = list(dict.fromkeys(ids or []))
    fitted = load_model(model)
    data = _read_for(fitted, table, names, images)
    probabilities = fitted.predict_proba(_features(fitted, data, names))
    best = {"prediction": fitted.classes_[probabilities.argmax(1)], "probability": probabilities.max(1)}
    _write(_joined(data.columns[names], best), out)


@app.command()
def score(
    model: ModelPath,
    table: TablePath,
    labels: Annotated[str, typer.Option(metavar="COLUMN", help="The column of true labels or candidate sets.")],
    separator: Separator = None,
    images: Images = None,
) -> None:
    """Print how good the predictions are."""
    fitted = load_model(model)
    data = _read_for(fitted, table, [labels], images)
    sets = _candidates(fitted, data, labels, separator)
    probabilities = fitted.predict_proba(_features(fitted, data, [labels]))
    plain = bool((sets.sum(1) == 1).all())
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
) -> None:
    """Write the most likely candidate of every row.

    With it come its probability and the margin to the second; without --id the rows are numbered from 0.
    """
    tables.check_target(out, [model, table])
    names = list(dict.fromkeys(ids or []))
    fitted = load_model(model)
    data = _read_for(fitted, table, [candidates, *names], images)
    sets = _candidates(fitted, data, candidates, separator)
    decision = fitted.disambiguate(_features(fitted, data, [candidates, *names]), sets)
    keys = data.columns[names] if names else pd.DataFrame({"row": range(len(sets))})
    result = _joined(keys, {"candidates": data.columns[candidates], **decision._asdict()})
    _write(result if sort is None else result.sort_values(sort.value, kind="stable"), out)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("demo.html"),
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the numbers.")
    ] = None,
) -> None:
    """Watch IDGP learn real images from ambiguous labels."""
    from oneof.cli.demo import run_demo

    for target in [out] if json_out is None else [out, json_out]:
        tables.check_target(target, table=False)
    run_demo(out, json_out, typer.echo)


def _method(name: str) -> type[PartialLabelClassifier]:
    if name.lower() not in METHODS:
        raise ValueError(f"{name!r} is no method; choose one of {', '.join(METHODS)}")
    return METHODS[name.lower()]


def _read(
    table: Path,
    columns: list[str],
    images: str | None,
    size: int | tuple[int, int] | None = None,
    channels: Any = None,
    progress: bool = True,
) -> tables.Table:
    """Read a table; with ``images`` its rows are the images that this column names."""
    if images is None:
        return tables.read_table(table, columns)
    data = tables.read_table(table, [*columns, images])
    paths = image_paths(table, images, data.columns[images].tolist())
    return data._replace(rows=decode_images(paths, size, channels, progress=progress))


def _read_for(model: PartialLabelClassifier, table: Path, columns: list[str], images: str | None) -> tables.Table:
    """Read a table as a fitted model needs it: images in the size and colours that it was fitted on."""
    if images is None or model.input_shape_ is None:
        return _read(table, columns, images)
    channels, height, width = model.input_shape_
    return _read(table, columns, images, (height, width), channels)


def _accepted(name: str, metadata: Any) -> str:
    """Say in words what a setting accepts."""
    if name in _OWN_OPTION:
        return f"see {_OWN_OPTION[name]} of oneof fit"
    others = {"network": f"one of {_NETWORK_NAMES}", "checkpoint": "a path or None"}
    return str(metadata.get("expected", others.get(name, "")))


def _settings(cls: type[PartialLabelClassifier], texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE texts into the hyper-parameters of a method."""
    allowed = [each.name for each in fields(cls) if each.name not in _OWN_OPTION]
    settings = named_values(texts, "lr=0.05")
    for name in settings:
        if name in _OWN_OPTION:
            raise ValueError(f"--set {name} has an option of its own; use {_OWN_OPTION[name]}")
        if name not in allowed:
            raise ValueError(f"{cls.__name__} has no setting {name!r}; {tables.alternatives(name, allowed)}")
    if settings.get("network", "auto") not in _NETWORK_NAMES:
        raise ValueError(f"network is {settings['network']!r}, but must be one of {_NETWORK_NAMES}")
    return settings


def read_labels(data: tables.Table, column: str, separator: str | None, classes: Any = None) -> list[Any]:
    """Read labels or sets of labels; a cell that looks like a set but is taken for one label gets a hint."""
    cells = tables.label_sets(data.columns[column], separator, classes)
    known = set() if classes is None else set(classes.tolist())
    whole = [cell for cell in cells if isinstance(cell, str) and cell not in known]
    for mark in "|;,":
        cell = next((cell for cell in whole if mark in cell), None)
        if cell is not None:
            count_as = f"cells of {column!r} such as {cell!r} count as one label each"
            note("hint", f"{count_as}; pass --separator {mark!r} to split them")
            break
    return cells


def _features(model: PartialLabelClassifier, data: tables.Table, apart: list[str]) -> Any:
    """Return the features that the model knows by name, or else all that there are."""
    names = getattr(model, "feature_names_in_", None)
    return tables.numeric_features(data, apart) if names is None else tables.named_features(data, names)


def _candidates(
    model: PartialLabelClassifier, data: tables.Table, column: str, separator: str | None
) -> NDArray[Any]:
    """Return the candidate sets of a column as a boolean matrix over the model's classes."""
    return encode(read_labels(data, column, separator, model.classes_), model.classes_)[0]


def _joined(keys: Any, results: dict[str, Any]) -> Any:
    """Put ids and results side by side; none may hide another."""
    for name in keys:
        if name in results:
            raise ValueError(f"the id column {name!r} has the name of a result; rename it or leave out --id")
    return pd.concat([keys, pd.DataFrame(results, index=keys.index)], axis=1)


def _write(result: Any, out: Path) -> None:
    tables.write_table(result, out)
    typer.echo(fold(f"{len(result)} rows written to {out}"))
