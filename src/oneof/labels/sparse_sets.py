"""Candidate sets of many classes: a sparse matrix (CSR), which grows with the candidates and not with n x K."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

LEAST_CELLS = 2**24  # 16 MB of booleans: below it dense rows are faster, and sets of many trials train together
_SMALLER = 2  # how many times less memory it must take
_BLOCK = 2**18  # cells of dense rows that are made of sparse ones together
_INDEX, _POINTER = 4, 8  # bytes for each candidate and each row


class SparseSets:
    """Candidate sets (n, K) of booleans, or of weights, of which rows are taken as of an array."""

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        matrix = sparse.csr_array(matrix)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self.matrix = matrix  # CSR, columns in rising order, nothing stored off the sets
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> "SparseSets":
        return SparseSets(self.matrix[rows])

    def dense(self) -> NDArray[Any]:
        """Return all rows as an array (n, K)."""
        array: NDArray[Any] = self.matrix.toarray()
        return array

    def any(self, axis: int) -> NDArray[np.bool_]:
        """Tell of each class (axis 0) or row (axis 1) whether it has a candidate."""
        sizes = self.sizes if axis else np.bincount(self.matrix.indices, minlength=self.shape[1])
        found: NDArray[np.bool_] = sizes > 0
        return found

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of candidates of each row (n,)."""
        sizes: NDArray[np.intp] = np.diff(self.matrix.indptr).astype(np.intp)
        return sizes

    @property
    def rows(self) -> NDArray[np.intp]:
        """The row of each candidate (nnz,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def places(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where the candidates of some rows stand among all, in the order of the rows."""
        sizes = self.sizes[rows]
        ends = sizes.cumsum()
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        places: NDArray[np.intp] = np.repeat(self.matrix.indptr[rows], sizes) + within
        return places

    def with_values(self, values: NDArray[Any]) -> Any:
        """Return a sparse matrix (n, K) with other values (nnz,) at the candidates."""
        return sparse.csr_array((values, self.matrix.indices, self.matrix.indptr), self.shape)

    def parts(self) -> list[NDArray[Any]]:
        """Return arrays that tell the sets from all others."""
        return [np.array(self.shape), self.matrix.indptr, self.matrix.indices, self.matrix.data]


AnySets = NDArray[Any] | SparseSets  # (n, K)


def takes_less(rows: int, classes: int, candidates: int) -> bool:
    """Tell whether so many sets are kept sparse: where they are large, and that takes half the memory or less."""
    cells = rows * classes  # bytes, as booleans
    return cells >= LEAST_CELLS and _SMALLER * (_INDEX * candidates + _POINTER * rows) <= cells


def smaller_form(sets: Any) -> AnySets:
    """Return an array, a sparse matrix or sparse sets (n, K) in the form that takes less memory."""
    rows, classes = sets.shape
    if isinstance(sets, np.ndarray):
        large = takes_less(rows, classes, rows)  # else there is no need to count
        return SparseSets(sets) if large and takes_less(rows, classes, int(np.count_nonzero(sets))) else sets
    given = sets if isinstance(sets, SparseSets) else SparseSets(sets)
    return given if takes_less(rows, classes, given.matrix.nnz) else given.dense()


def dense_form(sets: AnySets) -> NDArray[Any]:
    """Return sets as an array (n, K)."""
    return sets.dense() if isinstance(sets, SparseSets) else sets


def set_sizes(sets: AnySets) -> NDArray[np.intp]:
    """Return the number of candidates of each row (n,), of sets or of weights."""
    sizes: NDArray[np.intp] = sets.sizes if isinstance(sets, SparseSets) else np.count_nonzero(sets, axis=1)
    return sizes


def row_blocks(sets: AnySets) -> Iterator[slice]:
    """Give all rows of dense sets at once, and of sparse ones as many at a time as make small dense blocks."""
    rows, classes = sets.shape
    size = max(1, _BLOCK // classes) if isinstance(sets, SparseSets) else rows
    return (slice(begin, min(begin + size, rows)) for begin in range(0, rows, size))


def most_likely(distributions: Any) -> NDArray[np.intp]:
    """Return the class (n,) of the largest stored value of each row of a sparse matrix, of ties the first."""
    starts, sizes = distributions.indptr[:-1], np.diff(distributions.indptr)
    largest = np.repeat(np.maximum.reduceat(distributions.data, starts), sizes)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    where = np.flatnonzero(distributions.data == largest)
    first = where[np.unique(rows[where], return_index=True)[1]]
    best: NDArray[np.intp] = distributions.indices[first].astype(np.intp)
    return best
