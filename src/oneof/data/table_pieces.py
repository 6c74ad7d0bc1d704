"""Tables that are written piece by piece: whole at the end, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from oneof.data.table_formats import DELIMITERS, JSON_LINES, kind_of, write_text, zipped_file
from oneof.io.files import replacing

IN_PIECES = (*DELIMITERS, *JSON_LINES, ".parquet")  # a workbook is written whole


@contextmanager
def appending(path: Path) -> Iterator[Callable[[Any], None]]:
    """Give what appends frames of the same columns to a file, which takes its name when the block ends well."""
    kind = kind_of(path, IN_PIECES)
    with replacing(path) as part, ExitStack() as files:
        file = files.enter_context(part.open("wb"))
        yield _parquet_pieces(file, files) if kind == ".parquet" else _text_pieces(file, files, kind, path.name)


def _text_pieces(file: IO[bytes], files: ExitStack, kind: str, name: str) -> Callable[[Any], None]:
    raw: Any = zipped_file(file, name) if kind.endswith(".gz") else file
    files.enter_context(raw)
    header = iter([True])  # above the first frame alone
    return lambda frame: write_text(frame, raw, kind.removesuffix(".gz"), next(header, False))


def _parquet_pieces(file: IO[bytes], files: ExitStack) -> Callable[[Any], None]:
    import pyarrow  # noqa: PLC0415 - pyarrow is optional
    from pyarrow import parquet  # noqa: PLC0415

    made: list[Any] = []

    def append(frame: Any) -> None:
        schema = made[0].schema if made else None
        table = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        if not made:
            made.append(files.enter_context(parquet.ParquetWriter(file, table.schema)))
        made[0].write_table(table)

    return append
