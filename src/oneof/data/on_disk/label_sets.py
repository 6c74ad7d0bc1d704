"""Candidate sets that come in pieces: distinct cells are read once a piece, classes numbered as they come."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from oneof.data.label_cells import are_json_lists, label_sets
from oneof.errors import InputError
from oneof.io.words import shown
from oneof.labels.names import class_names, number_labels
from oneof.labels.reading import flatten
from oneof.labels.separators import warn_of_joined
from oneof.labels.validation import rows_text


class LabelReader:
    """Turns the cells of a column, piece by piece, into numbers of candidates."""

    def __init__(self, column: str, separator: str | None, source: str) -> None:
        self.column, self.separator = column, separator
        self._where = f"the column {shown(column)} of {source}"
        self._numbers: dict[Any, int] = {}  # of the classes, in the order in which they came
        self._as_json: bool | None = None

    def read(self, cells: Any, begin: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the sizes of the sets of a piece that begins with a row, and the numbers of their candidates."""
        if cells.dtype == object:  # of lists, which cannot be told apart quickly
            cells = pd.Series([tuple(cell) if isinstance(cell, np.ndarray | list) else cell for cell in cells])
        which, distinct = pd.factorize(cells, use_na_sentinel=False)
        first = np.zeros(len(distinct), dtype=np.intp)
        first[which[::-1]] = np.arange(begin, begin + len(which))[::-1]  # the last one that is written stays
        labels, of_cell = flatten(self._sets(pd.Series(distinct, dtype=object), cells))
        sizes = np.bincount(of_cell, minlength=len(distinct))
        if not sizes.all():
            empty = begin + np.flatnonzero(sizes[which] == 0)
            raise InputError(
                f"the candidate set is empty in {rows_text(empty)} of {self._where}, but every row needs at least "
                "one candidate label: add the labels or drop the rows"
            )
        codes, names = number_labels(labels, first[of_cell], None, self._where)
        known = [self._numbers.setdefault(name, len(self._numbers)) for name in names.tolist()]
        starts = np.concatenate([[0], sizes.cumsum()])
        columns = np.array(known, dtype=np.int32)[codes]
        sets = sparse.csr_array((np.ones(len(codes), bool), columns, starts), (len(distinct), len(self._numbers)))
        sets.sum_duplicates()
        sets = sets[which]
        return np.diff(sets.indptr).astype(np.int32), sets.indices.astype(np.int32)

    def _sets(self, distinct: Any, cells: Any) -> list[Any]:
        """Return the labels of distinct cells; a cell is read alike whichever piece it stands in."""
        as_json = are_json_lists(distinct)
        if self._as_json is None:
            self._as_json = as_json
            if self.separator is None and not as_json:
                warn_of_joined(cells.tolist())
        if as_json != self._as_json:
            raise InputError(
                f"{self._where} holds JSON lists in some rows and other text in others; write all alike"
            )
        sets = label_sets(distinct, self.separator)
        return [() if each is None else each for each in sets]

    def classes(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the sorted names of the classes, and the place there of each number."""
        found = list(self._numbers)
        class_names(found, self._where)  # refuses text beside numbers
        names = np.array(sorted(found))
        place = {name: number for number, name in enumerate(names.tolist())}
        return names, np.array([place[name] for name in found], dtype=np.int64)
