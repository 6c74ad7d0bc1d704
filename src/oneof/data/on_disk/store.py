"""The store: one safetensors file with the rows of a table, which is mapped; it is written whole or not at all.

Features come first, so that they are written as they are read; what is small follows: sizes of the candidate sets,
the classes of the candidates, ids, and last facts as JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from oneof.data.cache import mark_used
from oneof.errors import InputError

_HEADER = 2**14  # bytes before the features, padded with spaces
_KEYS = ("dtype", "shape", "data_offsets")  # of an array in the header
_PIECE = 2**18  # values that are copied together
_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype(np.float32),
    "I32": np.dtype(np.int32),
    "U8": np.dtype(np.uint8),
}


class Spool:
    """Values of one type that come in pieces: kept in a file beside the store, which is gone when it is closed."""

    def __init__(self, kind: str, file: IO[bytes]) -> None:
        self.kind, self._file, self.count = _TYPES[kind], file, 0

    def add(self, values: NDArray[Any]) -> None:
        """Append values."""
        self._file.write(np.ascontiguousarray(values, dtype=self.kind).data)
        self.count += values.size

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Give the values again, as many at a time as are handled together."""
        self._file.seek(0)
        while (piece := self.take(_PIECE)).size:
            yield piece

    def rewind(self) -> None:
        """Go back to the first value."""
        self._file.seek(0)

    def take(self, count: int) -> NDArray[Any]:
        """Return the next values, so many or those that are left."""
        return np.frombuffer(self._file.read(count * self.kind.itemsize), dtype=self.kind)


class Writer:
    """Writes the arrays of a store one behind the other, and the header when their sizes are known."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._file.write(b" " * _HEADER)
        self._arrays: dict[str, dict[str, Any]] = {}
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Write a piece of the present array."""
        self._file.write(np.ascontiguousarray(values).data)

    def end(self, name: str, kind: str, shape: Sequence[int]) -> None:
        """Say what was written since the last call: an array of a shape."""
        begin, self._end = self._end, self._end + int(np.prod(shape, dtype=np.int64)) * _TYPES[kind].itemsize
        self._arrays[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, self._end]}

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the facts and the header."""
        content = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        self.append(content)
        self.end("facts", "U8", content.shape)
        header = json.dumps(self._arrays).encode()
        if len(header) > _HEADER - 8:
            raise InputError(
                f"there are {len(self._arrays)} columns of ids and sets, too many to keep; name fewer ids"
            )
        self._file.seek(0)
        self._file.write((_HEADER - 8).to_bytes(8, "little") + header)


def open_store(path: Path, identity: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """Return the mapped arrays and the facts of a store; None where there is no whole one of this content."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length == _HEADER - 8 else {}
        end = max(each["data_offsets"][1] for each in header.values())
        if path.stat().st_size != _HEADER + end:
            return None
        arrays = {name: _mapped(path, *(each[key] for key in _KEYS)) for name, each in header.items()}
        facts = json.loads(arrays.pop("facts").tobytes())
        if facts["identity"] != identity:
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    mark_used(path)
    return arrays, facts


def _mapped(path: Path, dtype: str, shape: Sequence[int], data_offsets: Sequence[int]) -> NDArray[Any]:
    if 0 in shape:  # nothing can be mapped
        return np.zeros(shape, dtype=_TYPES[dtype])
    array: NDArray[Any] = np.memmap(path, _TYPES[dtype], "r", _HEADER + data_offsets[0], tuple(shape))
    return array
