"""Where a text table is damaged: what a fast reader refused is looked for line by line, to be named."""

import csv
import gzip
from collections.abc import Collection, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import IO, cast

from oneof.io.words import shown

GAPS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)  # pandas takes these for missing numbers
TRUE, FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")


def opened_bytes(raw: IO[bytes], zipped: bool) -> IO[bytes]:
    """Return what reads the content of an open file, which may be compressed with gzip."""
    return cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if zipped else raw


def first_damage(
    path: Path, delimiter: str, names: Sequence[str], numbers: Collection[str], sound: int
) -> str | None:
    """Say what is wrong with the first line that is; None where nothing is found.

    ``sound`` rows are known to hold numbers where they should.
    """
    places = [(names.index(name), name) for name in numbers]
    with path.open("rb") as raw:
        text = TextIOWrapper(
            opened_bytes(raw, path.name.lower().endswith(".gz")), "utf-8-sig", errors="replace", newline=""
        )
        rows, begin = csv.reader(text, delimiter=delimiter), 1
        count = -1  # of the rows below the header
        try:
            for cells in rows:
                line, begin = begin, rows.line_num + 1
                if not cells:
                    continue
                if len(cells) != len(names):
                    return f"line {line} has {_count(len(cells), 'cell')}, but the header has {len(names)}"
                count += 1
                if count > sound and (found := _no_number(cells, places)):
                    return f"line {line} {found}"
        except (csv.Error, OSError, EOFError) as error:
            return f"line {begin}: {error}"
    return None


def _no_number(cells: Sequence[str], places: Sequence[tuple[int, str]]) -> str | None:
    for place, name in places:
        cell = cells[place].strip()
        if cell in GAPS:
            return gap_in(name)
        if cell in TRUE or cell in FALSE:
            continue
        try:
            value = float(cell)
        except ValueError:
            return f"has {shown(cell, 60)} in the column {shown(name)}, which is no number"
        if not abs(value) < 3.4e38 or "_" in cell:
            return f"has {shown(cell, 60)} in the column {shown(name)}, which is no finite number of 32 bits"
    return None


def gap_in(column: str) -> str:
    """Say that there is nothing in a column, and what fills gaps."""
    return f"has nothing in the column {shown(column)} (an encoder fills gaps: --kind, or encoder= of open_table)"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + "s" * (number != 1)
