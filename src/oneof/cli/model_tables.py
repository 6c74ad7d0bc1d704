"""Tables as the commands for models read and write them: rows, candidate sets and results."""

from pathlib import Path
from typing import Any

import pandas as pd
import typer
from numpy.typing import NDArray

from oneof.cli.app import fold, note
from oneof.data import label_cells, tables
from oneof.data.folder import decode_images, image_paths
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.words import shown
from oneof.labels import encode
from oneof.labels.separators import is_list_text


def read(
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


def read_for(model: PartialLabelClassifier, table: Path, columns: list[str], images: str | None) -> tables.Table:
    """Read a table as a fitted model needs it: images in the size and colours that it was fitted on."""
    if images is None or model.input_shape_ is None:
        return read(table, columns, images)
    channels, height, width = model.input_shape_
    return read(table, columns, images, (height, width), channels)


def read_labels(data: tables.Table, column: str, separator: str | None, classes: Any = None) -> list[Any]:
    """Read labels or sets of labels; a cell that looks like a set but is taken for one label gets a hint."""
    if separator == "":
        raise ValueError("--separator is '', but must have a character; pass one such as '|'")
    cells = label_cells.label_sets(data.columns[column], separator, classes)
    if label_cells.are_json_lists(data.columns[column]):
        note("hint", f"the cells of {shown(column)} are JSON lists and are read as lists of labels")
    known = set() if classes is None else set(classes.tolist())
    _hint_at_sets(column, [cell for cell in cells if isinstance(cell, str) and cell not in known])
    # As sets of one: encode would warn of what the hint has said.
    return [[cell] if isinstance(cell, str) else cell for cell in cells]


def _hint_at_sets(column: str, labels: list[str]) -> None:
    """Say how cells are read as sets that look like sets, but were taken for one label each."""
    label, fix = next(filter(is_list_text, labels), None), 'write them as JSON lists, such as ["cat", "dog"]'
    for mark in "|;,":
        if label is None:
            label = next((each for each in labels if mark in each), None)
            fix = f"pass --separator {mark!r} to split them"
    if label is not None:
        note("hint", f"cells of {shown(column)} such as {shown(label)} count as one label each; {fix}")


def candidates_for(
    model: PartialLabelClassifier, data: tables.Table, column: str, separator: str | None
) -> NDArray[Any]:
    """Return the candidate sets of a column as a boolean matrix over the model's classes."""
    return encode(read_labels(data, column, separator, model.classes_), model.classes_)[0]


def features_for(model: PartialLabelClassifier, data: tables.Table, apart: list[str]) -> Any:
    """Return the features that the model knows by name, or else all that there are."""
    names = getattr(model, "feature_names_in_", None)
    return tables.numeric_features(data, apart) if names is None else tables.named_features(data, names)


def joined(keys: Any, results: dict[str, Any]) -> Any:
    """Put ids and results side by side; none may hide another."""
    for name in keys:
        if name in results:
            raise ValueError(f"the id column {name!r} has the name of a result; rename it or leave out --id")
    return pd.concat([keys, pd.DataFrame(results, index=keys.index)], axis=1)


def write(result: Any, out: Path) -> None:
    """Write results, and say so."""
    tables.write_table(result, out)
    typer.echo(fold(f"{len(result)} rows written to {out}"))
