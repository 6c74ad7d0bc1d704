"""Means and standard deviations of columns that come in pieces."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.io.words import listed, warn

_ROUNDING = 2.0**-24  # of a number of 32 bits, as a share of it
_COARSE = 0.01  # of the standard deviation


class Moments:
    """The mean and the standard deviation of every column of rows (n, d), added up piece by piece in float64.

    With n rows of mean m and sum of squares M about it, and a piece of n', m', M':
    ``M + M' + (m' - m)^2 n n' / (n + n')`` is the sum of squares about the mean of both (Chan et al.).
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean, self._squares = np.zeros(columns), np.zeros(columns)
        self._room = np.empty(0)

    def add(self, piece: NDArray[Any]) -> None:
        """Take a piece (n', d) into account."""
        columns = piece.T  # (d, n'), beside each other in memory where they come column by column
        mean = columns.mean(1)
        if self._room.size < columns.size:  # kept, since memory that is new costs more than the arithmetic
            self._room = np.empty(columns.size)
        off = self._room[: columns.size].reshape(columns.shape)
        np.subtract(columns, mean[:, None], out=off)
        squares = np.einsum("ij,ij->i", off, off)
        both, away = self.count + len(piece), mean - self.mean
        self._squares += squares + away**2 * (self.count * len(piece) / both)
        self.mean += away * (len(piece) / both)
        self.count = both

    @property
    def std(self) -> NDArray[np.float64]:
        """The standard deviations (d,)."""
        return np.sqrt(self._squares / max(1, self.count))

    def warn_of_lost(self, names: Sequence[str], source: str) -> None:
        """Warn of columns that differ by little more than what 32 bits round off."""
        std = self.std
        lost = (std > 0) & (np.abs(self.mean) * _ROUNDING > _COARSE * std)
        if lost.any():
            warn(
                f"the columns {listed(np.array(names)[lost].tolist())} of {source} vary by little around large "
                "values, of which 32 bits keep seven digits; subtract their means first"
            )
