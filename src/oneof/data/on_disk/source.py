"""What is asked of a table that is read in pieces, and how its columns are judged."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from oneof.data.on_disk.damage import gap_in
from oneof.errors import InputError
from oneof.io.words import alternatives, listed, shown

Take = Callable[[NDArray[np.float64]], NDArray[Any]]  # is given features (n, d), and says what is kept of them
Show = Callable[[float], None]  # is told which share of the table has been read
ROWS = 2**15  # that are read together
NUMERIC = ("number", "truth", "gaps")  # kinds; gaps are refused with their lines


class Piece(NamedTuple):
    """Some rows: what was taken of their features, part by part, and the columns that are kept as written."""

    taken: list[NDArray[Any]]
    written: Any  # a DataFrame

    @classmethod
    def of_frame(cls, frame: Any, written: Sequence[str], numbers: Sequence[str], take: Take) -> "Piece":
        """Return the rows of a frame, with gaps as NaN."""
        exact = frame[list(numbers)].to_numpy(dtype=np.float64, na_value=np.nan)
        return cls([take(exact)], frame[list(written)])


class Rows(Protocol):
    """Rows that are read in pieces."""

    name: str  # of their table, as messages call it

    def identity(self) -> list[Any]:
        """Return what tells this content from every other, without reading it, in a form that JSON can hold."""
        ...

    def pieces(self, written: Sequence[str], numbers: Sequence[str], take: Take, show: Show) -> Iterator[Piece]:
        """Give the rows: some columns as they are written, of others what ``take`` makes of their numbers."""
        ...

    def refuse(self, numbers: Sequence[str], sound: int, why: str) -> NoReturn:
        """Raise ValueError: behind so many sound rows there is one that is not."""
        ...


class Source(Rows, Protocol):
    """A table that is read in pieces, as often as needed."""

    def key(self) -> str:
        """Return where the table is: what it holds there may change."""
        ...

    def kinds(self) -> dict[str, str]:
        """Return the columns: of each "number", "truth" or, of numbers with gaps, "gaps", or else an example."""
        ...

    def frames(
        self, written: Sequence[str], numbers: Sequence[str], texts: Sequence[str], show: Show
    ) -> Iterator[Any]:
        """Give the rows as frames, gaps as missing: some columns as written, numbers as read, texts as texts."""
        ...

    def typed(self, texts: Any, kept: Sequence[str]) -> Any:
        """Return a frame of texts with the types that a reader of the whole table gives; some columns are kept."""
        ...


def files_identity(files: Sequence[Path]) -> list[Any]:
    """Return sizes and times of files, by which a change is seen."""
    states = [(file, file.stat()) for file in files]
    return [[str(file.absolute()), state.st_size, state.st_mtime_ns] for file, state in states]


def ahead(pieces: Iterator[Any]) -> Iterator[Any]:
    """Give pieces, while a thread reads the next one."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = reader.submit(next, pieces, None)
            yield piece


def check_names(columns: Sequence[str], name: str) -> None:
    """Refuse columns without a name."""
    unnamed = [column for column in columns if column.startswith("Unnamed: ")]
    if unnamed:  # most often the row numbers that pandas wrote, which are no feature
        raise InputError(
            f"{name} has a column without a name, but features have names; name it, or drop {shown(unnamed[0])}"
        )


def check_numbers(kinds: dict[str, str], name: str, advice: str) -> None:
    """Refuse columns that hold no numbers, with what to do about it."""
    foreign = {column: kind for column, kind in kinds.items() if kind not in NUMERIC}
    if foreign:
        raise InputError(
            f"the columns {listed(foreign)} of {name} hold no numbers (such as "
            f"{shown(next(iter(foreign.values())), 40)}), but numbers are needed; {advice}"
        )


def check_unchanged(source: Rows, rows: int, identity: Any) -> None:
    """Refuse a table without rows, and one that is not what it was when it was opened."""
    if not rows:
        raise InputError(f"{source.name} has no rows, but at least one is needed; fill the table")
    if source.identity() != identity:
        raise InputError(f"{source.name} was changed while it was read; read it again")


def require(names: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Refuse names of columns that are not there."""
    for each in names:
        if each not in columns:
            raise InputError(f"{name} has no column {shown(each)}; {alternatives(each, columns)}")


class Checked:
    """Features as they pass: the sound rows are counted, gaps and what is too large for 32 bits are refused."""

    def __init__(self, source: Rows, numbers: Sequence[str]) -> None:
        self._source, self._numbers, self.rows = source, numbers, 0

    def rounded(self, exact: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return features (n, d) in 32 bits."""
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.ascontiguousarray(exact.astype(np.float32))  # less is copied across than in one step
            doubtful = not np.isfinite(rounded.sum())  # the sum is cheap and almost always tells
        if doubtful and (bad := np.argwhere(~np.isfinite(rounded))).size:
            row, column = bad[0]
            value, name = exact[row, column], self._numbers[column]
            what = f"has {value:g}, which 32 bits do not hold, in the column {shown(name)}"
            why = gap_in(name) if np.isnan(value) else what
            self._source.refuse(self._numbers, self.rows, f"row {self.rows + row} {why}")
        self.rows += len(exact)
        return rounded

    def exact(self, exact: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return features (n, d) as they are."""
        self.rounded(exact)
        return exact
