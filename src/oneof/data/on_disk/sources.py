"""Which reader a table has."""

from pathlib import Path
from typing import Any

from oneof.data.on_disk.arrow_rows import HuggingFaceRows, ParquetRows
from oneof.data.on_disk.source import Source
from oneof.data.on_disk.text_rows import TextRows
from oneof.data.table_formats import DELIMITERS
from oneof.errors import InputError
from oneof.io.words import shown


def is_pieced(path: Path) -> bool:
    """Tell whether the name of a file is that of a table that is read in pieces."""
    return path.name.lower().endswith((*DELIMITERS, ".parquet"))


def source_of(given: Any) -> Source:
    """Return the source that a path or a dataset is; refuse what cannot be read in pieces."""
    if hasattr(given, "with_format"):
        return HuggingFaceRows(given)
    path = Path(given)
    if path.is_dir() or path.name.lower().endswith(".parquet"):
        return ParquetRows(path)
    kind = next((kind for kind in DELIMITERS if path.name.lower().endswith(kind)), None)
    if kind is None:
        raise InputError(
            f"{shown(path)} is no table that is read in pieces: it must end in {', '.join(DELIMITERS)} or "
            ".parquet, or be a folder of Parquet files; convert it"
        )
    return TextRows(path, DELIMITERS[kind])
