"""Text files of any size, read in pieces: with pyarrow if it is installed, else with pandas."""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from oneof.data.on_disk.damage import FALSE, TRUE, first_damage, opened_bytes
from oneof.data.on_disk.source import ROWS, Piece, Show, Take, files_identity
from oneof.errors import InputError
from oneof.io.words import reason, shown

_SNIFFED = 1000  # rows by which the kind of a column is told
_BLOCK = 2**20  # bytes that are parsed together: they stay in the cache of a processor


class TextRows:
    """A .csv or .tsv file, also .gz."""

    def __init__(self, path: Path, delimiter: str) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {shown(path)}; check the path of the table")
        self.path, self.delimiter, self.name = path, delimiter, shown(path)
        self._zipped = path.name.lower().endswith(".gz")
        self._first: Any = None

    def key(self) -> str:
        """Return the path."""
        return str(self.path.absolute())

    def identity(self) -> list[Any]:
        """Return path, size and time of the file."""
        return files_identity([self.path])

    def _sniffed(self) -> Any:
        """Return the first rows."""
        if self._first is None:
            zipped = "gzip" if self._zipped else None
            options: dict[str, Any] = {"sep": self.delimiter, "index_col": False, "compression": zipped}
            try:
                self._first = pd.read_csv(self.path, **options, nrows=0)
            except Exception as error:  # readers raise errors of many kinds
                raise InputError(
                    f"{self.name} cannot be read ({reason(error)}); mend the file, or give it the extension of "
                    "its format"
                ) from None
            try:
                self._first = pd.read_csv(self.path, **options, nrows=_SNIFFED)
            except Exception as error:
                self.refuse([], 0, reason(error))
        return self._first

    def kinds(self) -> dict[str, str]:
        """Tell columns by their first rows."""
        return {name: _kind_of(column) for name, column in self._sniffed().items()}

    def pieces(self, written: Sequence[str], numbers: Sequence[str], take: Take, show: Show) -> Iterator[Piece]:
        """Read with pyarrow if it is installed, else with pandas."""
        truths = {name for name, kind in self.kinds().items() if kind == "truth"}
        read = self._with_arrow if find_spec("pyarrow") else self._with_pandas
        pieces = read(list(written), list(numbers), truths, take, show)
        return self._sound(pieces, numbers, lambda piece: len(piece.written))

    def frames(
        self, written: Sequence[str], numbers: Sequence[str], texts: Sequence[str], show: Show
    ) -> Iterator[Any]:
        """Read with pandas, which tells gaps and the types of numbers as in memory."""
        dtype = dict.fromkeys(texts, str)
        frames = self._read_frames(written, [*written, *numbers, *texts], dtype, show)
        return self._sound(frames, [], len)

    def typed(self, texts: Any, kept: Sequence[str]) -> Any:
        """Return a frame of texts as pandas reads them from a file."""
        content = StringIO(texts.to_csv(index=False))
        return pd.read_csv(content, dtype=dict.fromkeys(kept, str), index_col=False)

    def _sound(
        self, pieces: Iterator[Any], numbers: Sequence[str], rows_of: Callable[[Any], int]
    ) -> Iterator[Any]:
        """Give pieces; name the line that a reader has refused."""
        rows = 0
        while True:
            try:
                piece = next(pieces, None)
            except Exception as error:  # readers raise errors of many kinds
                if str(error).startswith(self.name):  # ours
                    raise
                self.refuse(numbers, rows, reason(error))
            if piece is None:
                return
            rows += rows_of(piece)
            yield piece

    def _with_arrow(
        self, written: list[str], numbers: list[str], truths: set[str], take: Take, show: Show
    ) -> Iterator[Piece]:
        import pyarrow  # noqa: PLC0415 - pyarrow is optional
        from pyarrow import csv  # noqa: PLC0415

        kinds = {name: pyarrow.bool_() if name in truths else pyarrow.float64() for name in numbers}
        options = csv.ConvertOptions(
            include_columns=[*numbers, *written],
            column_types=kinds | dict.fromkeys(written, pyarrow.string()),
            null_values=[""],  # all others are refused as texts: each costs time
            true_values=list(TRUE),
            false_values=list(FALSE),
            strings_can_be_null=False,
        )
        with pyarrow.OSFile(str(self.path)) as raw:  # a file of Python would have to wait for Python
            names = list(self._sniffed().columns)
            reader = csv.open_csv(
                pyarrow.CompressedInputStream(raw, "gzip") if self._zipped else raw,
                csv.ReadOptions(block_size=_BLOCK, column_names=names, skip_rows_after_names=1),
                csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                options,
            )
            taken, texts, rows = list[Any](), list[Any](), 0
            for batch in chain(reader, [None]):
                if batch is not None and len(batch):
                    taken.append(take(_floats(batch, len(numbers))))  # still in the cache of the processor
                    texts.append(batch.select(written))
                    rows += len(batch)
                if rows >= ROWS or (batch is None and rows):
                    show(raw.tell() / raw.size())
                    yield Piece(taken, pyarrow.Table.from_batches(texts).to_pandas())
                    taken, texts, rows = [], [], 0

    def _with_pandas(
        self, written: list[str], numbers: list[str], truths: set[str], take: Take, show: Show
    ) -> Iterator[Piece]:
        dtype = {name: bool if name in truths else np.float64 for name in numbers}
        for frame in self._read_frames(written, [*written, *numbers], dtype, show):
            yield Piece.of_frame(frame, written, numbers, take)

    def _read_frames(
        self, written: Sequence[str], columns: Sequence[str], dtype: dict[str, Any], show: Show
    ) -> Iterator[Any]:
        size = max(1, self.path.stat().st_size)
        with (
            self.path.open("rb") as raw,
            pd.read_csv(
                opened_bytes(raw, self._zipped),
                sep=self.delimiter,
                chunksize=ROWS,
                index_col=False,
                usecols=list(columns),
                dtype=dtype,
                converters=dict.fromkeys(written, str.encode),  # pandas would look for gaps among strings
            ) as reader,
        ):
            for frame in reader:
                show(raw.tell() / size)
                texts = {name: frame[name].map(bytes.decode).astype(str) for name in written}
                yield frame.assign(**texts)

    def refuse(self, numbers: Sequence[str], sound: int, why: str) -> NoReturn:
        """Name the line."""
        names = list(self._sniffed().columns)
        found = first_damage(self.path, self.delimiter, names, numbers, sound) or why
        raise InputError(f"{self.name} cannot be read: {found}; mend the file, or drop the column") from None


def _floats(batch: Any, count: int) -> Any:
    """Return the first columns of a batch of Arrow as floats (n, count), gaps as NaN."""
    if all(kind == "double" for kind in batch.schema.types[:count]):
        return batch.select(range(count)).to_tensor(null_to_nan=True, row_major=False).to_numpy()
    columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns[:count]]
    return np.array(columns, dtype=np.float64).T  # truths, and None for gaps


def _kind_of(column: Any) -> str:
    """Tell what a column of a frame holds; cells of numbers may be damaged, which is found later."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        return "truth"
    cells = column.dropna()
    foreign = cells[pd.to_numeric(cells, errors="coerce").isna()]
    if 2 * len(foreign) > len(cells):
        return str(foreign.iloc[0])
    return "number" if len(cells) == len(column) else "gaps"
