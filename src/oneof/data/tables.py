"""Tables on disk, known by their extension, and on standard input and output; their columns as features."""

import csv
import sys
import tempfile
from collections.abc import Collection, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oneof.data.table_formats import READABLE, WRITABLE, Content, Table, kind_of, read, writer
from oneof.errors import InputError
from oneof.io.files import replacing
from oneof.io.words import listed, reason, shown

__all__ = [
    "Table",
    "check_target",
    "is_standard",
    "is_table",
    "mixed_features",
    "named_columns",
    "named_features",
    "numeric_features",
    "read_table",
    "write_table",
]


def is_standard(path: Path) -> bool:
    """Return whether a path is ``-``, which stands for standard input or output."""
    return str(path) == "-"


def read_table(
    path: Path, columns: Sequence[str] = (), texts: Collection[str] = (), form: str | None = None
) -> Table:
    """Read a table.

    Parameters
    ----------
    path : Path
        A .csv, .tsv, .jsonl (all also .gz), .parquet, .xlsx or .npz file, or ``-`` for standard input. Of a
        workbook the first sheet is read. An npz holds ``x``, one array for each column, and optionally
        ``classes``, the names of the columns of a 0/1 matrix.
    columns : sequence of str
        Columns of labels and ids. In text files they are read as written: "NA" may be a class and "007" an id. One
        may be a feature as well.
    texts : collection of str
        Other columns that hold text, also where all of it looks like numbers.
    form : str, optional
        The format of standard input, such as "tsv"; without it, "csv".

    Returns
    -------
    Table
    """
    kind, content = _opened(path, form)
    if is_standard(path):
        path = Path("standard input")  # as messages call it
    table = read(path, kind, content, list(dict.fromkeys(columns)), texts)
    if not len(table.rows):
        raise InputError(f"{shown(path)} has no rows, but at least one is needed; fill the table")
    return table


def _opened(path: Path, form: str | None) -> tuple[str, Content]:
    """Return the kind of a table and what it is read from."""
    kind = _standard_kind(form, READABLE) if is_standard(path) else kind_of(path, READABLE)
    if is_standard(path):
        return kind, BytesIO(sys.stdin.buffer.read())
    _check_path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path of the table")
    return kind, path


def _standard_kind(form: str | None, kinds: Sequence[str]) -> str:
    """Return the kind of standard input or output."""
    names = [kind.removeprefix(".") for kind in kinds]
    if form is not None and form not in names:
        raise InputError(
            f"the format of - is {shown(form)}, but must be one of {', '.join(names)}; pass one of these"
        )
    return kind_of(Path(f"-.{form or 'csv'}"), kinds)


def is_table(path: Path) -> bool:
    """Return whether the name of a file is that of a table."""
    return is_standard(path) or path.name.lower().endswith(READABLE)


def write_table(frame: Any, path: Path, form: str | None = None) -> None:
    """Write a DataFrame as .csv, .tsv, .jsonl (all also .gz), .parquet or .xlsx, or to standard output.

    After an error the old file is unchanged.
    """
    if is_standard(path):
        content = BytesIO()
        writer(_standard_kind(form, WRITABLE), "-")(frame, content)
        sys.stdout.buffer.write(content.getvalue())
        sys.stdout.flush()
        return
    write = writer(kind_of(path, WRITABLE), path.name)
    with replacing(path) as part, part.open("wb") as file:
        write(frame, file)


def check_target(path: Path, inputs: Collection[Path] = (), table: bool = True, form: str | None = None) -> None:
    """Refuse a path that cannot be written to or is an input, before the work on what is written there begins."""
    if is_standard(path):
        if not table:
            raise InputError("what is written is no table, but only tables go to standard output; name a file")
        _standard_kind(form, WRITABLE)
        return
    if table:
        kind_of(path, WRITABLE)
    _check_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{shown(path)} is a folder, but a file is to be written; add a file name")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {shown(path.parent)} does not exist; create it first")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"{shown(path)} is an input and would be overwritten; write to another file")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise OSError(
            f"the folder {shown(path.parent)} cannot be written to ({error.strerror}); choose another"
        ) from None


def numeric_features(table: Table, apart: Collection[str] = ()) -> Any:
    """Return all columns but those in ``apart``; refuse columns without numbers."""
    if isinstance(table.rows, np.ndarray):
        return table.rows
    return _as_floats(_named(table, apart), table.as_written)


def mixed_features(table: Table, apart: Collection[str] = ()) -> Any:
    """Return all columns but those in ``apart``: floats where all are numbers without gaps, else as they are."""
    if isinstance(table.rows, np.ndarray):
        return table.rows
    frame = _inferred_columns(_named(table, apart), table.as_written)
    complete = all(_is_numeric(frame[name]) and frame[name].notna().all() for name in frame)
    return _as_floats(frame, ()) if complete and len(frame.columns) else frame


def _named(table: Table, apart: Collection[str]) -> Any:
    """Return the columns that are not in ``apart``; refuse those without a name."""
    frame = table.rows.drop(columns=list(apart), errors="ignore")
    unnamed = [name for name in frame if name.startswith("Unnamed: ")]
    if unnamed:  # most often the row numbers that pandas wrote, which are no feature
        raise InputError(
            f"{shown(table.path)} has a column without a name, but features have names; name it, or fit with "
            f"--drop {shown(unnamed[0])}"
        )
    return frame


def named_features(table: Table, names: Sequence[str]) -> Any:
    """Return the columns that a model was fitted on, in its order, as numbers; a table may hold others."""
    if isinstance(table.rows, np.ndarray):
        return table.rows
    return _as_floats(named_columns(table, names), table.as_written)


def named_columns(table: Table, names: Sequence[str]) -> Any:
    """Return columns of a table with rows of cells, as they are, in the order of their names."""
    missing = [name for name in names if name not in table.rows]
    if missing:
        raise InputError(
            f"{shown(table.path)} lacks the columns {listed(missing)} that the model was fitted on; add them"
        )
    return table.rows[list(names)]


def _check_path(path: Path) -> None:
    """Refuse a path that no file can have, such as one that is too long."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else reason(error)
        raise OSError(f"{shown(path)} cannot be opened ({why}); choose another path") from None


def _inferred(column: Any) -> Any:
    """Return a column of text with the type that `pandas.read_csv` gives it: numbers, booleans, gaps or text."""
    text = StringIO()
    # In quotes, because pandas skips empty lines.
    column.to_csv(text, index=False, header=False, quoting=csv.QUOTE_ALL)
    text.seek(0)
    return pd.read_csv(text, header=None).squeeze(axis=1)


def _inferred_columns(frame: Any, as_written: Collection[str]) -> Any:
    columns = {name: _inferred(frame[name]) if name in as_written else frame[name] for name in frame}
    return pd.DataFrame(columns, index=frame.index)


def _as_floats(frame: Any, as_written: Collection[str]) -> Any:
    """Return numeric and boolean columns as floats, gaps as NaN; refuse any other column by name."""
    columns = _inferred_columns(frame, as_written)
    foreign = [name for name, column in columns.items() if not _is_numeric(column)]
    if foreign:
        example = columns[foreign[0]].dropna().iloc[:1].tolist()
        such_as = f" (such as {shown(str(example[0]))})" if example else ""
        raise InputError(
            f"the columns {listed(foreign)} hold no numbers{such_as}, but features must; turn them into numbers, "
            "or fit with --drop or --id to set them apart"
        )
    return pd.DataFrame({name: column.to_numpy(dtype=float, na_value=np.nan) for name, column in columns.items()})


def _is_numeric(column: Any) -> bool:
    """Return whether a column holds numbers or booleans; booleans with gaps are objects."""
    return bool(
        pd.api.types.is_numeric_dtype(column) or pd.api.types.infer_dtype(column, skipna=True) == "boolean"
    )
