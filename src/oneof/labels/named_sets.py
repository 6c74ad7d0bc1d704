"""Candidate sets with the names of their labels, as tables on disk hold them: numbers, no Python objects."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oneof.labels.sparse_sets import SparseSets


class NamedSets:
    """Candidate sets that `fit`, `score` and `disambiguate` take as y: what lists of names say, as a matrix.

    ``candidates`` is a boolean ``scipy.sparse.csr_array`` (n, K), ``classes`` are the names of its columns,
    ``sets[rows]`` some of the rows, and ``numpy.asarray(sets)`` a dense matrix.
    """

    ndim = 2

    def __init__(self, candidates: Any, classes: NDArray[Any]) -> None:
        self.candidates, self.classes = candidates, classes
        self.shape: tuple[int, int] = candidates.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        mean = self.candidates.nnz / max(1, len(self))
        return f"{type(self).__name__}: {len(self)} rows, {self.shape[1]} classes, {mean:.2f} candidates a row"

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.candidates[rows], self.classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array: NDArray[Any] = self.candidates.toarray().astype(dtype or bool)
        return array

    def first_rows(self) -> NDArray[np.intp]:
        """Return for each class the first row that names it, or -1."""
        sets, first = self.candidates, np.full(self.shape[1], -1, dtype=np.intp)
        rows = np.repeat(np.arange(len(self)), np.diff(sets.indptr))
        first[sets.indices[::-1]] = rows[::-1]  # the last one that is written stays
        return first

    def over(self, numbers: NDArray[np.intp], classes: int) -> SparseSets:
        """Return the sets over so many other classes, among which those of this object have these numbers."""
        sets = self.candidates
        moved = numbers.astype(np.int32)[sets.indices]
        return SparseSets(type(sets)((sets.data.copy(), moved, sets.indptr.copy()), (len(self), classes)))
