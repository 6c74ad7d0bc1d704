"""Rows of a table on disk: a mapped array that knows the names of its columns, and texts that are mapped too."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class StoredRows(np.memmap[Any, Any]):
    """Rows (n, features) in float32 that stay on disk, with the names of their columns in ``feature_names``."""

    feature_names: list[str] | None

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        names = getattr(obj, "feature_names", None)
        same = names is not None and self.ndim == 2 and self.shape[1] == len(names)
        self.feature_names = names if same else None


class StoredTexts:
    """Texts, of which some are read when they are asked for: ``texts[5]``, ``texts[10:20]``."""

    def __init__(self, content: NDArray[np.uint8], lengths: NDArray[np.int32]) -> None:
        self._content, self._ends = content, np.cumsum(lengths, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, rows: Any) -> Any:
        chosen = np.arange(len(self))[rows]
        if chosen.ndim == 0:
            return self._text(int(chosen))
        return [self._text(row) for row in chosen.tolist()]

    def _text(self, row: int) -> str:
        begin = self._ends[row - 1] if row else 0
        return self._content[begin : self._ends[row]].tobytes().decode()
