"""Tables of Arrow, read in pieces: Parquet files, folders of such, and datasets of Hugging Face."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from oneof.data.on_disk.source import ROWS, Piece, Show, Take, files_identity
from oneof.errors import InputError, KindError
from oneof.io.words import reason, shown


def _pyarrow(name: str) -> Any:
    try:
        import pyarrow  # noqa: PLC0415 - pyarrow is optional
        import pyarrow.dataset  # noqa: PLC0415
    except ImportError:
        raise InputError(f"{name} needs pyarrow, which is missing; pip install oneof[parquet]") from None
    return pyarrow


class _ArrowRows:
    """What tables of Arrow have in common: their columns have types."""

    name: str

    def _kinds(self, schema: Any) -> dict[str, str]:
        types = _pyarrow(self.name).types
        kinds = {}
        for field in schema:
            number = types.is_integer(field.type) or types.is_floating(field.type) or types.is_decimal(field.type)
            kinds[field.name] = (
                "number" if number else "truth" if types.is_boolean(field.type) else f"values of type {field.type}"
            )
        return kinds

    def typed(self, texts: Any, kept: Sequence[str]) -> Any:
        """Return the frame: its columns have types."""
        return texts

    def refuse(self, numbers: Sequence[str], sound: int, why: str) -> NoReturn:
        """Say why."""
        raise InputError(f"{self.name} cannot be read: {why}; mend the table, or drop the column") from None


class ParquetRows(_ArrowRows):
    """A Parquet file, or a folder of such, read by pyarrow.dataset; folders such as year=2024 are columns."""

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, shown(path)
        self._files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not self._files:
            raise FileNotFoundError(f"there is no .parquet file in the folder {self.name}; check the path")
        if not self._files[0].is_file():
            raise FileNotFoundError(f"there is no file {self.name}; check the path of the table")
        arrow = _pyarrow(self.name)
        try:
            self._data = arrow.dataset.dataset(list(map(str, self._files)), partitioning="hive")
        except (OSError, ValueError, arrow.ArrowException) as error:
            raise InputError(f"{self.name} cannot be read ({reason(error)}); write it again") from None

    def key(self) -> str:
        """Return the path."""
        return str(self._path.absolute())

    def identity(self) -> list[Any]:
        """Return paths, sizes and times of the files."""
        return files_identity(self._files)

    def kinds(self) -> dict[str, str]:
        """Tell columns by the schema."""
        return self._kinds(self._data.schema)

    def pieces(self, written: Sequence[str], numbers: Sequence[str], take: Take, show: Show) -> Iterator[Piece]:
        """Read batch by batch, in the order of the files."""
        for frame in self.frames(written, numbers, [], show):
            yield Piece.of_frame(frame, written, numbers, take)

    def frames(
        self, written: Sequence[str], numbers: Sequence[str], texts: Sequence[str], show: Show
    ) -> Iterator[Any]:
        """Read batch by batch; columns have the types of the files."""
        arrow, rows = _pyarrow(self.name), 0
        total = max(1, self._data.count_rows())
        wanted = [*written, *numbers, *texts]
        batches = self._data.to_batches(columns=wanted, batch_size=ROWS, batch_readahead=2, fragment_readahead=1)
        while True:
            try:
                batch = next(batches, None)
                frame = None if batch is None else batch.to_pandas()
            except (OSError, ValueError, arrow.ArrowException) as error:
                self.refuse(numbers, rows, f"{reason(error)}, behind row {rows}")
            if frame is None:
                return
            if len(frame):
                yield frame
            rows += len(frame)
            show(rows / total)


class HuggingFaceRows(_ArrowRows):
    """A dataset of Hugging Face, as `datasets.load_dataset` returns it for one split."""

    def __init__(self, data: Any) -> None:
        self._data, self.name = data, "the dataset"
        if not isinstance(getattr(data, "num_rows", None), int):
            raise KindError(
                "the dataset has several splits or is a stream, but one split is needed; pass data['train']"
            )

    def key(self) -> str:
        """Return the fingerprint."""
        return str(self.identity()[0])

    def identity(self) -> list[Any]:
        """Return the fingerprint that the library keeps of every dataset and of all that was done to it."""
        return [str(getattr(self._data, "_fingerprint", "")), self._data.num_rows]

    def kinds(self) -> dict[str, str]:
        """Tell columns by the types of the features; those of classes are no numbers."""
        kinds = self._kinds(self._data.features.arrow_schema)
        return {
            name: f"classes such as {names[0]}" if (names := self._names(name)) else kind
            for name, kind in kinds.items()
        }

    def _names(self, column: str) -> list[str] | None:
        """Return the names of the classes that the numbers of a column stand for."""
        feature = self._data.features[column]
        names = getattr(getattr(feature, "feature", feature), "names", None)
        return list(names) if names else None

    def pieces(self, written: Sequence[str], numbers: Sequence[str], take: Take, show: Show) -> Iterator[Piece]:
        """Read batch by batch."""
        for frame in self.frames(written, numbers, [], show):
            yield Piece.of_frame(frame, written, numbers, take)

    def frames(
        self, written: Sequence[str], numbers: Sequence[str], texts: Sequence[str], show: Show
    ) -> Iterator[Any]:
        """Read batch by batch; classes come by their names."""
        rows = 0
        given = self._data.select_columns([*written, *numbers, *texts]).with_format("arrow")
        for batch in given.iter(batch_size=ROWS):
            frame = batch.to_pandas()
            for name in [*written, *texts]:
                if (names := self._names(name)) is not None:
                    frame[name] = [_named(cell, names) for cell in frame[name]]
            yield frame
            rows += len(frame)
            show(rows / self._data.num_rows)


def _named(cell: Any, names: Sequence[str]) -> Any:
    """Return classes by their names; -1 is no class."""
    if isinstance(cell, np.ndarray | list):
        return [names[number] for number in cell if number >= 0]
    return names[int(cell)] if cell is not None and cell >= 0 else None
