"""What a column of a table is: numbers, dates, categories or free text; and its cells, read as such."""

import datetime
import re
import sys
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oneof.errors import InputError
from oneof.io.words import shown

Array = NDArray[Any]
KINDS = ("number", "category", "date", "text", "drop")
MOST_CATEGORIES = 40  # of text; columns with more different texts are free text

_NUMERIC = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m-%d-%Y", "%d-%m-%Y")
_DAYS = (*_NUMERIC, "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
_OTHER_ORDER = {"%m/%d/%Y": "%d/%m/%Y", "%m-%d-%Y": "%d-%m-%Y"}
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}.*)?")
ISO = "ISO8601"  # as pandas calls it


class Kind(NamedTuple):
    """What a column is."""

    name: str  # one of KINDS
    why: str = ""  # it is left out or doubtful
    fix: str = ""  # of what is doubtful
    format: str | None = None  # of dates that are written as text


def find_kind(name: Any, column: Any, wanted: str | None = None) -> Kind:
    """Tell what a column is; ``wanted`` is what it shall be. Cells that cannot be features are refused.

    A text that is another one in every row, without spaces, is taken for an identifier and left out.
    """
    if wanted == "drop":
        return Kind("drop", "as asked")
    if types.is_complex_dtype(column.dtype):
        raise InputError(
            f"Complex data not supported: the column {shown(name)} is of type {column.dtype}; pass real and "
            "imaginary parts"
        )
    known = column[_is_present(column)]
    if not len(known):
        return Kind("drop", "it is empty")
    if wanted in ("category", "text", "number"):
        return Kind(wanted)
    found = _kind_of_type(name, known) or _kind_of_text(known)
    if wanted == "date" and found.name != "date":
        raise InputError(
            f"the column {shown(name)} holds {shown(known.iloc[0], 60)}, which is read as no date; write dates as "
            "2024-12-31"
        )
    return found


def _kind_of_type(name: Any, known: Any) -> Kind | None:
    """Tell the kind of a column by its type, or by that of its cells; None of text."""
    kind = known.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return Kind("category")
    if types.is_numeric_dtype(kind) or types.is_timedelta64_dtype(kind):
        return Kind("number")
    if types.is_datetime64_any_dtype(kind):
        return Kind("date")
    inferred = types.infer_dtype(known, skipna=True)
    if inferred in ("boolean", "integer", "floating", "mixed-integer-float", "decimal", "timedelta"):
        return Kind("number")
    if inferred in ("datetime", "datetime64", "date"):
        return Kind("date")
    strange = [cell for cell in known if not isinstance(cell, str | int | float | np.generic | datetime.date)]
    if strange:
        raise InputError(
            f"the column {shown(name)} holds {shown(strange[0], 60)} of type {type(strange[0]).__name__}, but "
            "features are numbers, dates, categories and text; convert the column or drop it"
        )
    return None


def _kind_of_text(known: Any) -> Kind:
    texts = pd.Series(as_texts(known))
    if pd.to_numeric(texts, errors="coerce").notna().all():
        return Kind("number")
    distinct = texts.unique()
    form = _date_format(distinct)
    if form is not None:
        return form
    if len(distinct) == 1:
        return Kind("drop", f"every row has {shown(distinct[0], 40)}")
    if len(distinct) == len(texts) and not any(" " in text for text in distinct):
        why = "a different text in every row, as identifiers have"
        return Kind("drop", why, "drop it, or say that it is text to learn from it")
    return Kind("category" if len(distinct) <= MOST_CATEGORIES else "text")


def _date_format(distinct: Array) -> Kind | None:
    """Return the kind of texts that are all dates of one format, None of others."""
    if all(_ISO.fullmatch(text) for text in distinct):
        return Kind("date", format=ISO) if _fits(distinct, ISO) else None
    if not all(text[0].isalnum() and text[-1].isdigit() for text in distinct):
        return None
    for day in _DAYS:
        for time in _TIMES:
            if _fits(distinct[:1], day + time) and _fits(distinct, day + time):
                other = _OTHER_ORDER.get(day)
                both = other is not None and _fits(distinct, other + time)
                why = f"{shown(distinct[0])} is read month first, and may be meant day first" if both else ""
                return Kind("date", why, "write dates as 2024-12-31" * both, day + time)
    return None


def _fits(texts: Array, form: str) -> bool:
    return bool(_parsed(pd.Series(texts), form).notna().all())


def _parsed(texts: Any, form: str | None) -> Any:
    return pd.to_datetime(texts, format=form, utc=True, errors="coerce")


def _is_present(column: Any) -> Array:
    """Tell which cells are neither missing nor blank."""
    present: Array = column.notna().to_numpy()
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        present = present & np.array([not isinstance(cell, str) or bool(cell.strip()) for cell in column])
    return present


_LARGE = float("inf")


def _is_too_large(cell: Any) -> bool:
    """Tell whether a cell is an integer beyond what a float holds."""
    return isinstance(cell, int) and abs(cell) > sys.float_info.max


def as_numbers(name: Any, column: Any) -> Array:
    """Return cells as floats, gaps as NaN; timedeltas are days. A cell that is no number is refused."""
    if types.is_timedelta64_dtype(column.dtype):
        return np.asarray(column.dt.total_seconds().to_numpy(dtype=float) / 86400)
    if types.is_numeric_dtype(column.dtype):
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
    else:
        cells = column.astype(object).map(lambda cell: _LARGE if _is_too_large(cell) else cell)
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    bad = np.flatnonzero((np.isnan(numbers) & _is_present(column)) | np.isinf(numbers))
    if bad.size:
        raise InputError(
            f"the column {shown(name)} holds {shown(column.iloc[bad[0]], 60)} in row {bad[0]}, but is a column of "
            "finite numbers; mend the cell or leave it empty"
        )
    return np.asarray(numbers, dtype=float)


def as_texts(column: Any) -> Array:
    """Return cells as texts, gaps as None; whole numbers are written without a decimal point."""
    present = _is_present(column)
    cells = zip(column.astype(object), present, strict=True)
    texts = np.empty(len(column), dtype=object)
    texts[:] = [_text(cell) if there else None for cell, there in cells]
    return texts


def _text(cell: Any) -> str:
    whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return str(int(cell) if whole else cell).strip()


def as_dates(name: Any, column: Any, form: str | None) -> Any:
    """Return cells as times in UTC without a zone, gaps as NaT; a cell of another format is refused."""
    present = _is_present(column)
    if types.is_datetime64_any_dtype(column.dtype):
        form = None
    cells = column.astype(object).where(present, None)
    if form is None and any(isinstance(cell, str) for cell in cells):
        form = ISO  # pandas would guess whether 1/2/2026 is in January, with a warning of its own
    dates = _parsed(cells.map(lambda cell: cell.strip() if isinstance(cell, str) else cell), form)
    bad = np.flatnonzero(dates.isna().to_numpy() & present)
    if bad.size:
        written = "" if form is None else " such as 2024-12-31" if form == ISO else f" of the format {form}"
        raise InputError(
            f"the column {shown(name)} holds {shown(column.iloc[bad[0]], 60)} in row {bad[0]}, but is a column of "
            f"dates{written}; mend the cell or leave it empty"
        )
    return dates.dt.tz_localize(None)
