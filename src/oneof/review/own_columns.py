"""The columns of a table as people have them, and which numbers a model sees in place of each."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.pipeline.column_kinds import as_texts

_LONGEST = 200  # characters of a cell


@dataclass(frozen=True, eq=False)
class OwnColumns:
    """A table, what kind each of its columns is, and of which of them each column of numbers was made."""

    frame: pd.DataFrame
    kinds: Mapping[str, str]  # of the columns that are not left out
    sources: Sequence[str]

    @cached_property
    def parts(self) -> dict[str, NDArray[np.intp]]:
        """The columns of numbers that were made of each column."""
        made = np.array(self.sources, dtype=object)
        return {name: np.flatnonzero(made == name) for name in self.kinds}

    def cell(self, row: int, name: str) -> str:
        """Return a cell as it is written; of a number four digits."""
        text: str | None = as_texts(self.frame[name].iloc[[row]])[0]
        if text is None:
            return "missing"
        if self.kinds[name] == "number":
            with suppress(ValueError):  # "true" is a number, too
                return f"{float(text):.4g}"
        return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
