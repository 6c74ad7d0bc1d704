"""Tables as the commands for models read and write them: rows, candidate sets and results."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.cli.output import note, tell_written, wanted
from oneof.cli.votes import Labels
from oneof.data import label_cells, tables
from oneof.data.embedding import IMAGE_NAMES, class_folders, images_below
from oneof.data.folder import decode_images, image_paths
from oneof.errors import InputError
from oneof.io import tensors as tensor_file
from oneof.io.words import listed, shown
from oneof.labels import encode, encode_sets
from oneof.labels.separators import is_list_text
from oneof.labels.validation import rows_text
from oneof.methods import Model, load_model
from oneof.pipeline import Pipeline, TableEncoder
from oneof.review import apply_decisions

_MARKS = "|;,"  # that may stand between the labels of a cell
_NAMED = 5  # labels in a message
FILE, CANDIDATES = "file", "candidates"  # the columns of a folder of images


def load(path: Path) -> Model:
    """Read a fitted model; a table in its place is told from a damaged model."""
    if tables.is_table(path) and path.is_file():
        raise InputError(f"{str(path)!r} is a table, but a model comes first: write MODEL TABLE in this order")
    return load_model(path)


def read(
    table: Path,
    columns: list[str],
    images: str | None,
    size: int | tuple[int, int] | None = None,
    channels: Any = None,
    form: str | None = None,
    texts: Collection[str] = (),
) -> tables.Table:
    """Read a table, ``-`` in the format ``form``; with ``images`` its rows are the images that this column names.

    The columns ``texts`` are no numbers, whatever they look like. A folder of images stands for a table of its
    files and, where there is a sub-folder for each class, its ``candidates``.
    """
    if table.is_dir():
        data = _folder_table(table, columns, images)
        paths = [table / name for name in data.columns[FILE]]
        return data._replace(rows=decode_images(paths, size, channels, progress=not wanted.quiet))
    if not tables.is_table(table) and _is_model(table):
        raise InputError(f"{str(table)!r} is a model, but a table is needed here; give a file of rows")
    if images is None:
        return tables.read_table(table, columns, texts, form)
    if table.suffix.lower() == ".npz":
        raise InputError(
            f"--images is {images!r}, but {str(table)!r}, as every .npz file, holds its images in x; leave "
            "--images out"
        )
    data = tables.read_table(table, [*columns, images], form=form)
    paths = image_paths(table, images, data.columns[images].tolist())
    return data._replace(rows=decode_images(paths, size, channels, progress=not wanted.quiet))


def _folder_table(folder: Path, columns: list[str], images: str | None) -> tables.Table:
    """Return the columns of a folder of images: their files, and if asked for the names of their sub-folders."""
    if images is not None:
        raise InputError(f"{str(folder)!r} is a folder, whose images have no column; leave --images out")
    unknown = [name for name in columns if name not in (FILE, CANDIDATES)]
    if unknown:
        raise InputError(
            f"{str(folder)!r} is a folder of images, which has the columns {FILE!r} and {CANDIDATES!r} (the names "
            f"of its sub-folders), and none of the name {shown(unknown[0])}; name one of them, or give a table"
        )
    if CANDIDATES in columns:
        files, classes = class_folders(folder)
        return tables.Table(folder, None, pd.DataFrame({FILE: files, CANDIDATES: classes}, dtype=object))
    files = images_below(folder)
    if not files:
        raise InputError(f"there is no image in the folder {str(folder)!r}; check the path")
    return tables.Table(folder, None, pd.DataFrame({FILE: files}, dtype=object))


def read_for(
    model: Model, table: Path, columns: list[str], images: str | None, form: str | None = None
) -> tables.Table:
    """Read a table as a fitted model needs it: images in the size and colours that it was fitted on."""
    if model.input_shape_ is None:
        if table.is_dir():
            raise InputError(
                f"{str(table)!r} is a folder, but the model was fitted on a table of {model.n_features_in_} "
                "features, not on images; give a table"
            )
        if images is not None:
            raise InputError(
                f"--images is {images!r}, but the model was fitted on a table of {model.n_features_in_} features, "
                "not on images; leave --images out"
            )
        encoder = encoder_of(model)
        kinds = encoder.used_columns() if encoder else {}
        texts = [name for name, kind in kinds.items() if kind != "number"]
        return read(table, columns, None, form=form, texts=texts)
    if images is None and not table.is_dir():
        data = read(table, columns, None, form=form)
        if not isinstance(data.rows, np.ndarray):
            raise InputError(
                f"the model was fitted on images, but the rows of {str(table)!r} are no images; pass "
                "--images COLUMN, the column of image files"
            )
        return data
    channels, height, width = model.input_shape_
    return read(table, columns, images, (height, width), channels, form=form)


def encoder_of(model: Model) -> TableEncoder | None:
    """Return the encoder of a model that was fitted on a table with more than numbers."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else None
    return first if isinstance(first, TableEncoder) else None


def features(data: tables.Table, apart: Sequence[str]) -> Any:
    """Return the features to fit on; a column of image files gets another advice than other text does."""
    if isinstance(data.rows, np.ndarray):
        return data.rows
    if len(data.rows) < 2:
        raise InputError(f"{str(data.path)!r} has 1 row, but a model is fitted on at least 2; add rows")
    for name in data.rows.columns.difference(list(apart), sort=False):
        refuse_image(name, data.rows[name].iloc[0])
    return tables.mixed_features(data, apart)


def refuse_image(column: str, cell: Any) -> None:
    """Refuse a column that names image files."""
    if isinstance(cell, str) and cell.lower().endswith(IMAGE_NAMES):
        fix = f"pass --images {column} to learn from them, or --drop {column} to leave them out"
        raise InputError(f"the column {column!r} names image files (such as {cell!r}); {fix}")


def read_training(
    table: Path,
    labels: Labels,
    others: Sequence[str],
    images: str | None,
    size: int | tuple[int, int] | None,
    form: str | None = None,
    texts: Collection[str] = (),
    decisions: Sequence[Path] | None = None,
    ids: Sequence[str] = (),
) -> tuple[Any, Any]:
    """Return the features of a table and what it is labelled with: see `labels_of`.

    ``others`` are the columns that are no features besides those of labels; ``decisions`` are merged into the
    labels.
    """
    apart = [*labels.in_table, *others, *ids]
    data, y = labels_of(read(table, apart, images, size, form=form, texts=texts), labels)
    rows = features(data, apart)
    if not decisions:
        return rows, y
    y, kept = apply_decisions(y, decisions, ids=data.columns[list(ids)])
    return (rows[kept] if isinstance(rows, np.ndarray) else rows.iloc[kept].reset_index(drop=True)), y


def features_for(model: Model, data: tables.Table, apart: list[str]) -> Any:
    """Return the features that the model knows by name, or else all that there are."""
    encoder = encoder_of(model)
    if encoder is not None:
        if isinstance(data.rows, np.ndarray):
            raise InputError(
                f"{str(data.path)!r} holds an array, but the model was fitted on a table; give a table"
            )
        return tables.named_columns(data, list(encoder.used_columns()))
    names = getattr(model, "feature_names_in_", None)
    rows = tables.numeric_features(data, apart) if names is None else tables.named_features(data, names)
    if model.input_shape_ is None and rows.ndim == 2 and rows.shape[1] != model.n_features_in_:
        raise InputError(
            f"{str(data.path)!r} has {rows.shape[1]} features, but the model was fitted on "
            f"{model.n_features_in_}; give those that it was fitted on, in the same order"
        )
    return rows


def read_labels(data: tables.Table, column: str, separator: str | None, classes: Any = None) -> list[Any]:
    """Read labels or sets of labels.

    Without ``classes``, a cell that looks like a set but is taken for one label gets a hint; a label that is not
    among them is refused.
    """
    if separator == "":
        raise InputError("--separator is '', but must have a character; pass one such as '|'")
    cells = label_cells.label_sets(data.columns[column], separator, classes)
    if label_cells.are_json_lists(data.columns[column]):
        note("hint", f"the cells of {shown(column)} are JSON lists and are read as lists of labels")
    if classes is not None:
        _check_known(cells, column, classes, may_split=separator is None)
    elif (found := _looks_like_set(label_cells.unsplit(cells) if separator else cells)) is not None:
        cell, fix = found
        note("hint", f"cells of {shown(column)} such as {shown(cell)} count as one label each; {fix}")
    # As sets of one: encode would warn of what the hint has said.
    return [[cell] if isinstance(cell, str) else cell for cell in cells]


def labels_of(data: tables.Table, labels: Labels) -> tuple[tables.Table, Any]:
    """Return the table and what it is labelled with: votes, or sets: a frame, or of very many classes lists."""
    if labels.given is not None:
        return labels.given.read(data)
    if labels.prefix is not None:
        data = one_hot_sets(data, labels.prefix, labels.column)
    cells = read_labels(data, labels.column, labels.separator)
    sets, classes = encode_sets(cells)
    return data, pd.DataFrame(sets, columns=classes) if isinstance(sets, np.ndarray) else cells


def labels_for(model: Model, data: tables.Table, labels: Labels) -> tuple[tables.Table, Any, Any]:
    """Return the table, its sets over the model's classes (votes, a matrix or sparse), and how they are shown."""
    if labels.given is not None:
        data, judged = labels.given.read(data, model.classes_)
        return data, judged, [model.classes_[row].tolist() for row in judged.candidates]
    if labels.prefix is not None:
        data = one_hot_sets(data, labels.prefix, labels.column)
    cells = read_labels(data, labels.column, labels.separator, model.classes_)
    return data, encode_sets(cells, model.classes_)[0], data.columns[labels.column]


def one_hot_sets(data: tables.Table, prefix: str, column: str) -> tables.Table:
    """Return a table in which one column of lists takes the place of columns of 0 and 1, one for each class."""
    if isinstance(data.rows, np.ndarray):
        raise InputError(
            f"--candidates-prefix is {prefix!r}, but {str(data.path)!r} has no columns; pass --candidates"
        )
    names = [name for name in data.rows if name.startswith(prefix) and len(name) > len(prefix)]
    if len(names) < 2:
        raise InputError(
            f"--candidates-prefix is {prefix!r}, but {len(names)} columns of {str(data.path)!r} begin with it; "
            f"there are {listed(data.rows)}"
        )
    if column in data.rows and column not in data.columns:
        raise InputError(
            f"{str(data.path)!r} has a column {column!r} beside those of {prefix!r}; pass --drop {column}"
        )
    matrix = data.rows[names].rename(columns=lambda name: name.removeprefix(prefix))
    sets, classes = encode(matrix)
    cells = pd.Series([classes[row].tolist() for row in sets], dtype=object)
    return data._replace(rows=data.rows.drop(columns=names), columns=data.columns.assign(**{column: cells}))


def truth_for(data: tables.Table, column: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the class number of the true label of every row."""
    cells = label_cells.label_sets(data.columns[column], None, classes)
    _check_known(cells, column, classes, may_split=False)
    sets = encode(cells, classes)[0]
    several = np.flatnonzero(sets.sum(1) > 1)
    if len(several):
        raise InputError(
            f"the column {column!r} has several labels in {rows_text(several)}, but --truth is the column of true "
            "labels, one in each row; name another column"
        )
    number: NDArray[Any] = sets.argmax(1)
    return number


def with_ids(keys: Any, results: dict[str, Any]) -> Any:
    """Put ids and results side by side; none may hide another."""
    for name in keys:
        if name in results:
            raise InputError(f"the id column {name!r} has the name of a result; rename it or leave out --id")
    return pd.concat([keys, pd.DataFrame(results, index=keys.index)], axis=1)


def write_results(result: Any, out: Path, form: str | None = None) -> None:
    """Write results, and say so."""
    tables.write_table(result, out, form)
    tell_written(len(result), list(result), out)


def _is_model(path: Path) -> bool:
    try:
        tensor_file.read(path, "model")
    except (ValueError, OSError):
        return False
    return True


def _check_known(cells: Sequence[Any], column: str, classes: NDArray[Any], may_split: bool) -> None:
    """Refuse labels that are not among the classes, with the option that may be missing."""
    known = set(classes.tolist())
    rows: list[int] = []
    unknown: dict[Any, None] = {}  # in the order in which they occur
    for row, cell in enumerate(cells):
        strange = [label for label in (cell if isinstance(cell, list) else [cell]) if not _is_in(label, known)]
        rows += [row] * bool(strange)
        unknown |= dict.fromkeys(strange)
    if not rows:
        return
    found = _looks_like_set(cell for cell in cells if not _is_in(cell, known)) if may_split else None
    raise InputError(
        f"the column {shown(column)} has labels such as {listed(unknown, _NAMED)} in {rows_text(rows)}, but the "
        f"classes are {listed(classes, _NAMED)}; {found[1] if found else 'mend the cells or name another column'}"
    )


def _is_in(label: Any, known: set[Any]) -> bool:
    """Compare a label; gaps, and what can be no label, are for others to refuse."""
    if label is None or not isinstance(label, Hashable) or label != label:  # NaN is not itself
        return True
    return label in known


def _looks_like_set(cells: Iterable[Any]) -> tuple[str, str] | None:
    """Return a cell that seems to hold several labels, and how such cells are split."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    for cell in filter(is_list_text, texts):
        return cell, 'write them as JSON lists, such as ["cat", "dog"]'
    marked = ((cell, mark) for mark in _MARKS for cell in texts if mark in cell)
    return next(((cell, f"pass --separator {mark!r} to split them") for cell, mark in marked), None)
