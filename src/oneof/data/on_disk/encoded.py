"""Tables on disk whose columns are encoded: the encoder is fitted on a sample of the rows, and encodes pieces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import safetensors.numpy
from numpy.typing import NDArray

from oneof.data.on_disk.source import Piece, Show, Source, Take
from oneof.errors import InputError
from oneof.pipeline import TableEncoder
from oneof.pipeline.unknown_categories import Unknown

_ROWS, _CELLS = 2**17, 2**22  # of a sample, at most


def fitted_on(source: Source, columns: Sequence[str], encoder: TableEncoder, show: Show) -> TableEncoder:
    """Return a copy of an encoder, fitted on rows of a source: all, or a sample of 131,072, or 4 million cells."""
    most = min(_ROWS, _CELLS // max(1, len(columns)))
    rows = sample(source.frames([], [], columns, show), most)
    if rows is None or not len(rows):
        raise InputError(f"{source.name} has no rows, but at least one is needed; fill the table")
    kept = [name for name in columns if isinstance(encoder.kinds, Mapping) and name in encoder.kinds]
    return TableEncoder(encoder.kinds).fit(source.typed(rows, kept)[list(columns)])


def sample(frames: Iterable[Any], most: int) -> Any:
    """Return so many rows of frames, each as likely as any other, in their order; all where there are fewer.

    Every row draws a number, and those with the smallest stay.
    """
    rng, bound = np.random.default_rng(0), 1.0
    kept, drawn = list[Any](), np.empty(0)
    for frame in frames:
        numbers = rng.random(len(frame))
        kept.append(frame[numbers < bound])
        drawn = np.concatenate([drawn, numbers[numbers < bound]])
        if len(drawn) > 2 * most:
            kept, drawn, bound = _smallest(kept, drawn, most)
    return _smallest(kept, drawn, most)[0][0] if kept else None


def _smallest(kept: list[Any], drawn: NDArray[Any], most: int) -> tuple[list[Any], NDArray[Any], float]:
    bound = np.partition(drawn, most - 1)[most - 1] if len(drawn) > most else 1.0
    stay = drawn <= bound
    return [pd.concat(kept, ignore_index=True)[stay].reset_index(drop=True)], drawn[stay], float(bound)


def to_bytes(encoder: TableEncoder) -> NDArray[np.uint8]:
    """Return the arrays of an encoder as bytes."""
    arrays = {name: np.ascontiguousarray(array) for name, array in encoder.arrays().items()}
    return np.frombuffer(safetensors.numpy.save(arrays), dtype=np.uint8)


def from_bytes(facts: dict[str, Any], content: NDArray[np.uint8]) -> TableEncoder:
    """Return the encoder of facts and bytes."""
    return TableEncoder.restore(facts, safetensors.numpy.load(content.tobytes()))


def categories(encoder: TableEncoder, rows: NDArray[Any]) -> Any:
    """Return a frame of the columns of categories, read back from encoded rows (n, outputs); gaps are None."""
    sources = np.array(encoder.sources())
    columns = {}
    for column in encoder.facts()["categories"]:
        own = rows[:, sources == column["name"]]
        texts = np.array([*column["categories"], None], dtype=object)
        columns[column["name"]] = texts[np.where(own.any(1), own.argmax(1), -1)]
    return pd.DataFrame(columns, index=range(len(rows)))


class EncodedRows:
    """Rows whose features are those that an encoder makes of the columns of a source."""

    def __init__(self, source: Source, encoder: TableEncoder) -> None:
        self._source, self._encoder, self.name = source, encoder, source.name

    def identity(self) -> list[Any]:
        """Return what tells its content from every other."""
        return self._source.identity()

    def pieces(self, written: Sequence[str], numbers: Sequence[str], take: Take, show: Show) -> Iterator[Piece]:
        """Encode frame by frame; of unknown categories there is one warning for each column, at the end."""
        rows, unknown = 0, dict[str, Unknown]()
        for frame in frames_for(self._source, self._encoder, written, show):
            used = frame[list(self._encoder.used_columns())]
            try:
                encoded = self._encoder.encode(used)
            except InputError as error:
                raise InputError(f"{self.name}, in the rows from {rows} on: {error}") from None
            none = Unknown("", [], 0)
            for name, cells in self._encoder.unknown(used).items():
                unknown[name] = unknown.get(name, none).joined(cells, rows)
            yield Piece([take(encoded)], frame[list(written)])
            rows += len(frame)
        for name, cells in unknown.items():
            cells.warn(name)

    def refuse(self, numbers: Sequence[str], sound: int, why: str) -> NoReturn:
        """Say why."""
        raise InputError(f"{self.name} cannot be encoded: {why}; mend the table, or drop the column") from None


def frames_for(source: Source, encoder: TableEncoder, written: Sequence[str], show: Show) -> Iterator[Any]:
    """Give rows with the columns that an encoder knows, which are texts where it takes them for no numbers."""
    kinds = encoder.used_columns()
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    texts = [name for name in kinds if name not in numbers]
    return source.frames(written, numbers, texts, show)
