"""Formats of tables: how the rows of each kind of file are read and written. Nothing is unpickled."""

import gzip
import json
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.errors import InputError
from oneof.io.arguments import check_text
from oneof.io.schema import has_half_characters
from oneof.io.words import alternatives, listed, reason, shortened, shown, warn
from oneof.labels import encode

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
JSON_LINES = (".jsonl", ".jsonl.gz", ".ndjson")
WRITABLE = (*DELIMITERS, *JSON_LINES, ".parquet", ".xlsx")
READABLE = (*WRITABLE, ".npz")
_PACKAGES = {".parquet": ("pyarrow", "oneof[parquet]"), ".xlsx": ("openpyxl", "oneof[excel]")}
_JOIN = "|"  # between the labels of a list, in files that hold text only
_MOST_EXCEL_ROWS = 2**20 - 1  # below the header


class Table(NamedTuple):
    """The rows of a file, and apart from them the columns of labels and ids."""

    path: Path
    rows: Any  # all columns as a DataFrame; of an npz the array x
    columns: Any  # a DataFrame of labels and ids, as they are written in the file
    as_written: tuple[str, ...] = ()  # columns that ``rows``, too, holds as written, not yet as numbers


Content = Path | BytesIO  # a file, or what came from standard input


def kind_of(path: Path, kinds: Sequence[str]) -> str:
    """Return the extension of a path, one of ``kinds``."""
    for kind in kinds:
        if path.name.lower().endswith(kind):
            _need_package(path, kind)
            return kind
    raise InputError(
        f"{shown(path)} must end in {', '.join(kinds[:-1])} or {kinds[-1]}; rename or convert the file"
    )


def _need_package(path: Path, kind: str) -> None:
    package, extra = _PACKAGES.get(kind, (None, None))
    try:
        if package is not None:
            __import__(package)
    except ImportError:
        raise InputError(f"{shown(path)} needs {package}, which is missing; pip install {extra}") from None


# --- reading ------------------------------------------------------------------------------------------------


def read(path: Path, kind: str, content: Content, columns: list[str], texts: Collection[str]) -> Table:
    """Read a table of a kind; ``columns`` are set apart, ``texts`` are no numbers whatever they look like."""
    if kind == ".npz":
        return _read_npz(path, content, columns)
    if kind == ".parquet":
        return _read_parquet(path, content, columns)
    if kind == ".xlsx":
        return _read_excel(path, content, columns)
    if kind in JSON_LINES:
        return _read_json_lines(path, kind, content, columns)
    return _read_text(path, kind, content, columns, texts)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error of a reader into one sentence about the file; readers raise errors of many kinds."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"{shown(path)} cannot be read ({reason(error)}); mend the file, or give it the extension of its "
            "format"
        ) from None


def _read_text(path: Path, kind: str, content: Content, columns: list[str], texts: Collection[str]) -> Table:
    # As bytes, since pandas would look for missing values among the strings that a converter returns.
    converters = dict.fromkeys(columns, str.encode)
    dtype = {name: str for name in texts if name not in columns}
    zipped = "gzip" if kind.endswith(".gz") else None
    with _reading(path), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        options: dict[str, Any] = {"index_col": False, "converters": converters, "dtype": dtype}
        frame = pd.read_csv(content, sep=DELIMITERS[kind], compression=zipped, **options)
    _check_columns(path, columns, frame)
    for name in columns:
        frame[name] = pd.Series(map(bytes.decode, frame[name]), dtype=str)
    return Table(path, frame, frame[columns], tuple(columns))


def _read_json_lines(path: Path, kind: str, content: Content, columns: list[str]) -> Table:
    records = []
    with _reading(path):
        raw = content.read_bytes() if isinstance(content, Path) else content.read()
        text = (gzip.decompress(raw) if kind.endswith(".gz") else raw).decode("utf-8-sig")
        for number, line in enumerate(text.split("\n"), start=1):  # other line ends may stand inside a string
            if line.strip():
                records.append(_record(number, line))
        names = dict.fromkeys(name for record in records for name in record)
        cells = {name: pd.Series([record.get(name) for record in records], dtype=object) for name in names}
        frame = pd.DataFrame(cells, index=range(len(records)))
    _check_columns(path, columns, frame)
    return Table(path, frame.infer_objects(), frame[columns])


def _record(number: int, line: str) -> dict[str, Any]:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise InputError(
            f"line {number} is {shown(record, 60)}, but must be an object with a value for each column"
        )
    if "\\u" in line and has_half_characters(record):
        raise InputError(f"line {number} has half of a character, such as \\ud800")
    return record


def _read_excel(path: Path, content: Content, columns: list[str]) -> Table:
    with _reading(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of openpyxl, about styles
        with pd.ExcelFile(content, engine="openpyxl") as file:
            sheets = file.sheet_names
            # Cells have types: text that looks like a number is text.
            frame = file.parse(sheets[0], keep_default_na=False, na_values=[""], dtype=object).infer_objects()
        frame.columns = frame.columns.map(str)
    if len(sheets) > 1:
        warn(
            f"{shown(path)} has the sheets {listed(sheets)}, of which the first is read; move another to the front"
        )
    _check_columns(path, columns, frame)
    return Table(path, frame, frame[columns])


def _read_parquet(path: Path, content: Content, columns: list[str]) -> Table:
    with _reading(path):
        frame = pd.read_parquet(content)
        frame.columns = frame.columns.map(str)
        if not frame.columns.is_unique:
            raise InputError(f"{listed(frame.columns[frame.columns.duplicated()])} occurs more than once")
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
                raise InputError(f"the column {shown(name)} holds text that is no UTF-8") from None


def _read_npz(path: Path, content: Content, columns: list[str]) -> Table:
    with _reading(path):
        if not zipfile.is_zipfile(content):
            raise InputError("it is no zip archive")
        with np.load(content, allow_pickle=False) as file:
            names = file.files
            arrays = {name: file[name] for name in {"x", "classes", *columns} if name in names}
    _check_columns(path, ["x", *columns], names)
    for name, array in arrays.items():
        _check_member(path, name, array)
    x = arrays["x"]
    if x.ndim not in (2, 3, 4) or 0 in x.shape[1:]:
        raise InputError(
            f"the array x of {shown(path)} has shape {x.shape}, but must be a table (n, features) or images "
            "(n, height, width[, channels]); reshape it"
        )
    for name in columns:
        if arrays[name].shape[:1] != x.shape[:1]:
            raise InputError(
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
        raise InputError(
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
            raise InputError(f"{shown(path)} has no column {shown(name)}; {alternatives(name, names)}")


# --- writing ------------------------------------------------------------------------------------------------


def writer(kind: str, name: str) -> Callable[[Any, IO[bytes]], None]:
    """Return what writes a DataFrame of a kind into an open file; ``name`` stands in a gzip file."""
    if kind == ".parquet":
        return lambda frame, file: frame.to_parquet(file, index=False)
    if kind == ".xlsx":
        return _write_excel
    return lambda frame, file: _write_text(frame, file, kind, name)


def _write_text(frame: Any, raw: Any, kind: str, name: str) -> None:
    if not kind.endswith(".gz"):
        return write_text(frame, raw, kind)
    with zipped_file(raw, name) as file:
        return write_text(frame, file, kind.removesuffix(".gz"))


def zipped_file(raw: IO[bytes], name: str) -> gzip.GzipFile:
    """Return what compresses into an open file; its time is fixed: the same rows give the same bytes."""
    return gzip.GzipFile(name, "wb", fileobj=raw, mtime=1)


def write_text(frame: Any, raw: Any, kind: str, header: bool = True) -> None:
    """Write a frame as text that is not compressed, with or without a line of names."""
    if kind in JSON_LINES:
        for record in frame.astype(object).to_dict("records"):
            cells = {key: _as_json(cell) for key, cell in record.items()}
            raw.write((json.dumps(cells, ensure_ascii=False, allow_nan=False) + "\n").encode())
    else:
        _texts(frame).to_csv(raw, sep=DELIMITERS[kind], index=False, header=header, mode="wb")


def _write_excel(frame: Any, raw: IO[bytes]) -> None:
    from openpyxl import Workbook  # noqa: PLC0415 - openpyxl is optional
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415

    if len(frame) > _MOST_EXCEL_ROWS:
        raise InputError(
            f"there are {len(frame)} rows, but a sheet of Excel has {_MOST_EXCEL_ROWS}; write a .csv or .parquet "
            "file"
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet()

    def cell(value: Any) -> Any:
        made = WriteOnlyCell(sheet, value=_as_json(value))
        if isinstance(value, str):
            made.data_type = "s"  # text that begins with = is no formula
        return made

    sheet.append([cell(str(name)) for name in frame])
    for row in _texts(frame).itertuples(index=False, name=None):
        sheet.append([cell(value) for value in row])
    book.save(raw)


def _texts(frame: Any) -> Any:
    """Return a frame whose lists are joined, as files of text hold them."""
    return frame.apply(lambda column: column.map(_as_text) if column.dtype == object else column)


def _as_text(cell: Any) -> Any:
    return _JOIN.join(map(str, cell)) if isinstance(cell, list | np.ndarray) else cell


def _as_json(cell: Any) -> Any:
    if isinstance(cell, np.ndarray | np.generic):
        cell = cell.tolist()
    if isinstance(cell, list | str | bool | int | None | Mapping):
        return cell
    return None if pd.isna(cell) else cell if isinstance(cell, float) else str(cell)
