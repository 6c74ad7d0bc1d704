"""Tables on disk: CSV, TSV, Parquet and npz, known by their extension. Nothing is unpickled."""

import csv
import gzip
import tempfile
import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.io.arguments import check_text
from oneof.io.files import replacing
from oneof.io.words import alternatives, listed, reason, shortened, shown
from oneof.labels import encode

_DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_WRITABLE = (*_DELIMITERS, ".parquet")
_READABLE = (*_WRITABLE, ".npz")
_JOIN = "|"  # between the labels of a list, in files that hold text only


class Table(NamedTuple):
    """The rows of a file, and apart from them the columns of labels and ids."""

    path: Path
    rows: Any  # all columns as a DataFrame; of an npz the array x
    columns: Any  # a DataFrame of labels and ids, as they are written in the file
    as_written: tuple[str, ...] = ()  # columns that ``rows``, too, holds as written, not yet as numbers


def read_table(path: Path, columns: Sequence[str] = ()) -> Table:
    """Read a table.

    Parameters
    ----------
    path : Path
        A .csv, .tsv (both also .gz), .parquet or .npz file; an npz holds ``x``, one array for each column, and
        optionally ``classes``, the names of the columns of a 0/1 matrix.
    columns : sequence of str
        Columns of labels and ids. In text files they are read as written: "NA" may be a class and "007" an id. One
        may be a feature as well.

    Returns
    -------
    Table
    """
    kind = _kind(path, _READABLE)
    _check_path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {shown(path)}; check the path of the table")
    columns = list(dict.fromkeys(columns))
    if kind == ".npz":
        table = _read_npz(path, columns)
    else:
        table = _read_parquet(path, columns) if kind == ".parquet" else _read_text(path, kind, columns)
    if not len(table.rows):
        raise ValueError(f"{shown(path)} has no rows, but at least one is needed; fill the table")
    return table


def is_table(path: Path) -> bool:
    """Return whether the name of a file is that of a table."""
    return path.name.lower().endswith(_READABLE)


def write_table(frame: Any, path: Path) -> None:
    """Write a DataFrame as .csv, .tsv (both also .gz) or .parquet; after an error the old file is unchanged."""
    kind = _kind(path, _WRITABLE)
    with replacing(path) as part:
        if kind == ".parquet":
            frame.to_parquet(part, index=False)
            return
        text = frame.apply(lambda column: column.map(_as_text) if column.dtype == object else column)
        zipped = kind.endswith(".gz")
        # A fixed time stamp and name: the same rows give the same bytes.
        with (
            part.open("wb") as raw,
            gzip.GzipFile(path.name, "wb", fileobj=raw, mtime=1) if zipped else raw as file,
        ):
            text.to_csv(file, sep=_DELIMITERS[kind], index=False, mode="wb")


def check_target(path: Path, inputs: Collection[Path] = (), table: bool = True) -> None:
    """Refuse a path that cannot be written to or is an input, before the work on what is written there begins."""
    if table:
        _kind(path, _WRITABLE)
    _check_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{shown(path)} is a folder, but a file is to be written; add a file name")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {shown(path.parent)} does not exist; create it first")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"{shown(path)} is an input and would be overwritten; write to another file")
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
    frame = table.rows.drop(columns=list(apart), errors="ignore")
    unnamed = [name for name in frame if name.startswith("Unnamed: ")]
    if unnamed:  # most often the row numbers that pandas wrote, which are no feature
        raise ValueError(
            f"{shown(table.path)} has a column without a name, but features have names; name it, or fit with "
            f"--drop {shown(unnamed[0])}"
        )
    return _as_floats(frame, table.as_written)


def named_features(table: Table, names: Sequence[str]) -> Any:
    """Return the columns that a model was fitted on, in its order; a table may hold others."""
    if isinstance(table.rows, np.ndarray):
        return table.rows
    missing = [name for name in names if name not in table.rows]
    if missing:
        raise ValueError(
            f"{shown(table.path)} lacks the columns {listed(missing)} that the model was fitted on; add them"
        )
    return _as_floats(table.rows[list(names)], table.as_written)


def _kind(path: Path, kinds: tuple[str, ...]) -> str:
    """Return the extension of a path, one of ``kinds``."""
    for kind in kinds:
        if path.name.lower().endswith(kind):
            if kind == ".parquet":
                _need_pyarrow(path)
            return kind
    raise ValueError(
        f"{shown(path)} must end in {', '.join(kinds[:-1])} or {kinds[-1]}; rename or convert the file"
    )


def _check_path(path: Path) -> None:
    """Refuse a path that no file can have, such as one that is too long."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else reason(error)
        raise OSError(f"{shown(path)} cannot be opened ({why}); choose another path") from None


def _need_pyarrow(path: Path) -> None:
    try:
        import pyarrow  # noqa: F401, PLC0415 - pyarrow is optional
    except ImportError:
        raise ValueError(f"{shown(path)} needs pyarrow, which is missing; pip install oneof[parquet]") from None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error of a reader into one sentence about the file; readers raise errors of many kinds."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"{shown(path)} cannot be read ({reason(error)}); mend the file, or give it the extension of its "
            "format"
        ) from None


def _read_text(path: Path, kind: str, columns: list[str]) -> Table:
    # As bytes, since pandas would look for missing values among the strings that a converter returns.
    converters = dict.fromkeys(columns, str.encode)
    with _reading(path), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        frame = pd.read_csv(path, sep=_DELIMITERS[kind], index_col=False, converters=converters)
    _check_columns(path, columns, frame)
    for name in columns:
        frame[name] = pd.Series(map(bytes.decode, frame[name]), dtype=str)
    return Table(path, frame, frame[columns], tuple(columns))


def _inferred(column: Any) -> Any:
    """Return a column of text with the type that `pandas.read_csv` gives it: numbers, booleans, gaps or text."""
    text = StringIO()
    # In quotes, because pandas skips empty lines.
    column.to_csv(text, index=False, header=False, quoting=csv.QUOTE_ALL)
    text.seek(0)
    return pd.read_csv(text, header=None).squeeze(axis=1)


def _read_parquet(path: Path, columns: list[str]) -> Table:
    with _reading(path):
        frame = pd.read_parquet(path)
        frame.columns = frame.columns.map(str)
        if not frame.columns.is_unique:
            raise ValueError(f"{listed(frame.columns[frame.columns.duplicated()])} occurs more than once")
        # An index with a name may be an id, but is no feature.
        indexed = frame.reset_index() if any(frame.index.names) else frame.reset_index(drop=True)
        _check_encoding(indexed)
    _check_columns(path, columns, indexed)
    return Table(path, frame.reset_index(drop=True), indexed[columns])


def _check_encoding(frame: Any) -> None:
    """Refuse text that is no UTF-8, which pyarrow reads without a word and cannot turn into strings."""
    import pyarrow  # noqa: PLC0415 - pyarrow is optional

    for name, column in frame.items():
        if isinstance(column.dtype, pd.StringDtype):
            try:
                pyarrow.array(column).validate(full=True)
            except pyarrow.ArrowException:
                raise ValueError(f"the column {shown(name)} holds text that is no UTF-8") from None


def _read_npz(path: Path, columns: list[str]) -> Table:
    with _reading(path):
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no zip archive")
        with np.load(path, allow_pickle=False) as file:
            names = file.files
            arrays = {name: file[name] for name in {"x", "classes", *columns} if name in names}
    _check_columns(path, ["x", *columns], names)
    for name, array in arrays.items():
        _check_member(path, name, array)
    x = arrays["x"]
    if x.ndim not in (2, 3, 4) or 0 in x.shape[1:]:
        raise ValueError(
            f"the array x of {shown(path)} has shape {x.shape}, but must be a table (n, features) or images "
            "(n, height, width[, channels]); reshape it"
        )
    for name in columns:
        if arrays[name].shape[:1] != x.shape[:1]:
            raise ValueError(
                f"the array {shown(name)} of {shown(path)} has shape {arrays[name].shape}, but x has {len(x)} "
                "rows; give both as many rows"
            )
    cells = {name: _matrix_sets(arrays[name], arrays.get("classes")) for name in columns}
    return Table(path, x, pd.DataFrame(cells, index=range(len(x))))


def _check_member(path: Path, name: str, array: Any) -> None:
    """Refuse what cannot be rows, labels or ids."""
    kinds = "biuf" if name == "x" else "biufU"
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
        kind = shortened(str(array.dtype), 60) if isinstance(array, np.ndarray) else "bytes, no array"
        expected = "numbers" if name == "x" else "numbers or text"
        raise ValueError(
            f"the array {shown(name)} of {shown(path)} is of type {kind}, but must hold {expected}; convert it "
            "and write it with numpy.savez"
        )
    check_text(array, f"the array {shown(name)} of {shown(path)}")


def _matrix_sets(array: NDArray[Any], classes: NDArray[Any] | None) -> Any:
    """Turn the rows of a 0/1 matrix into lists of class names; a vector stays as it is."""
    if array.ndim == 1 or not len(array):
        return array.ravel()
    candidates, names = encode(array, classes)
    return pd.Series([names[row].tolist() for row in candidates], dtype=object)


def _check_columns(path: Path, wanted: list[str], names: Collection[str]) -> None:
    for name in wanted:
        if name not in names:
            raise ValueError(f"{shown(path)} has no column {shown(name)}; {alternatives(name, names)}")


def _as_floats(frame: Any, as_written: Collection[str]) -> Any:
    """Return numeric and boolean columns as floats, gaps as NaN; refuse any other column by name."""
    columns = {name: _inferred(frame[name]) if name in as_written else frame[name] for name in frame}
    foreign = [name for name, column in columns.items() if not _is_numeric(column)]
    if foreign:
        example = columns[foreign[0]].dropna().iloc[:1].tolist()
        such_as = f" (such as {shown(str(example[0]))})" if example else ""
        raise ValueError(
            f"the columns {listed(foreign)} hold no numbers{such_as}, but features must; turn them into numbers, "
            "or fit with --drop or --id to set them apart"
        )
    return pd.DataFrame({name: column.to_numpy(dtype=float, na_value=np.nan) for name, column in columns.items()})


def _is_numeric(column: Any) -> bool:
    """Return whether a column holds numbers or booleans; booleans with gaps are objects."""
    return bool(
        pd.api.types.is_numeric_dtype(column) or pd.api.types.infer_dtype(column, skipna=True) == "boolean"
    )


def _as_text(cell: Any) -> Any:
    return _JOIN.join(map(str, cell)) if isinstance(cell, list | np.ndarray) else cell
