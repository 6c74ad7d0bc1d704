"""Text files of any size, read in pieces: with pyarrow if it is installed, else with pandas."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from oneof.data.on_disk.damage import FALSE, TRUE, first_damage, opened_bytes
from oneof.data.on_disk.source import ROWS, Show, files_identity
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
                raise ValueError(
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

    def frames(self, written: Sequence[str], numbers: Sequence[str], show: Show) -> Iterator[Any]:
        """Read with pyarrow if it is installed, else with pandas."""
        truths = {name for name, kind in self.kinds().items() if kind == "truth"}
        read = self._with_arrow if find_spec("pyarrow") else self._with_pandas
        pieces, rows = read(list(written), list(numbers), truths, show), 0
        while True:
            try:
                frame = next(pieces, None)
            except Exception as error:  # readers raise errors of many kinds
                self.refuse(numbers, rows, reason(error))
            if frame is None:
                return
            rows += len(frame)
            yield frame

    def _with_arrow(self, written: list[str], numbers: list[str], truths: set[str], show: Show) -> Iterator[Any]:
        import pyarrow  # noqa: PLC0415 - pyarrow is optional
        from pyarrow import csv  # noqa: PLC0415

        names = list(self._sniffed().columns)
        kinds = {name: pyarrow.bool_() if name in truths else pyarrow.float64() for name in numbers}
        options = csv.ConvertOptions(
            include_columns=[*written, *numbers],
            column_types=kinds | dict.fromkeys(written, pyarrow.string()),
            null_values=[""],  # all others are refused as texts: each costs time
            true_values=list(TRUE),
            false_values=list(FALSE),
            strings_can_be_null=False,
        )
        with pyarrow.OSFile(str(self.path)) as raw:  # a file of Python would have to wait for Python
            reader = csv.open_csv(
                pyarrow.CompressedInputStream(raw, "gzip") if self._zipped else raw,
                csv.ReadOptions(block_size=_BLOCK, column_names=names, skip_rows_after_names=1),
                csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                options,
            )
            held: list[Any] = []
            for batch in reader:
                held.append(batch)
                if sum(map(len, held)) >= ROWS:
                    show(raw.tell() / raw.size())
                    yield pyarrow.Table.from_batches(held).to_pandas()
                    held = []
            if sum(map(len, held)):
                yield pyarrow.Table.from_batches(held).to_pandas()
        show(1.0)

    def _with_pandas(self, written: list[str], numbers: list[str], truths: set[str], show: Show) -> Iterator[Any]:
        size = max(1, self.path.stat().st_size)
        with (
            self.path.open("rb") as raw,
            pd.read_csv(
                opened_bytes(raw, self._zipped),
                sep=self.delimiter,
                chunksize=ROWS,
                index_col=False,
                usecols=[*written, *numbers],
                dtype={name: bool if name in truths else np.float64 for name in numbers},
                converters=dict.fromkeys(written, str.encode),  # pandas would look for gaps among strings
            ) as reader,
        ):
            for frame in reader:
                show(raw.tell() / size)
                yield frame.assign(**{name: frame[name].map(bytes.decode).astype(str) for name in written})

    def refuse(self, numbers: Sequence[str], sound: int, why: str) -> NoReturn:
        """Name the line."""
        names = list(self._sniffed().columns)
        found = first_damage(self.path, self.delimiter, names, numbers, sound) or why
        raise ValueError(f"{self.name} cannot be read: {found}; mend the file, or drop the column") from None


def _kind_of(column: Any) -> str:
    """Tell what a column of a frame holds; cells of numbers may be damaged, which is found later."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        return "truth"
    cells = column.dropna()
    foreign = cells[pd.to_numeric(cells, errors="coerce").isna()]
    return str(foreign.iloc[0]) if 2 * len(foreign) > len(cells) else "number"
