"""Training rows as they are kept: standardised tables, raw images; on the device, or in the host's memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]
SCALINGS = ("columns", "whole")  # of tables; the first where nothing is said

# Of sparse rows that are made dense together, and of large images: 64 MB in float32, which goes back to the system
# when it is freed. Of blocks below 32 MB, with small results between them, glibc keeps nearly all.
_CELLS, _MOST_ROWS = 2**24, 65536

# Rows at once: copies of a whole set in floats could be larger than memory.
_TABLE_BLOCK, _IMAGE_BLOCK = 65536, 1024
_STORED_CELLS = 2**18  # that are standardised together: 2 MB in float64


class SparseRows:
    """A sparse table that is asked for rows as an array is: those, and no others, become dense."""

    ndim = 2

    def __init__(self, matrix: Any) -> None:
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.matrix = matrix  # CSR, without duplicates
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        dense: Array = self.matrix[rows].toarray()
        return dense

    def parts(self) -> list[Array]:
        """Return the arrays of which the matrix is made."""
        return [self.matrix.indptr, self.matrix.indices, self.matrix.data]


def values_of(x: "Array | SparseRows") -> Array:
    """Return the numbers that rows hold; of sparse rows those that are stored."""
    values: Array = x.matrix.data if isinstance(x, SparseRows) else x
    return values


def rows_at_once(x: "Array | SparseRows", usual: int) -> int:
    """Return how many rows are evaluated at once: as ``usual``, or as many sparse ones or images as fill 64 MB."""
    if isinstance(x, SparseRows):
        return max(1, min(_MOST_ROWS, _CELLS // x.shape[1]))
    return images_at_once(x.shape[1:], usual)


def images_at_once(shape: Sequence[int], usual: int) -> int:
    """Return ``usual``, or fewer where the rows are images of such a shape that fewer fill 64 MB in float32."""
    return max(1, min(usual, _CELLS // math.prod(shape))) if len(shape) == 3 else usual


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation of the training rows: for each feature of a table, each channel of an image.

    A table that is scaled as a whole has one deviation for all features, the root of their mean variance:
    ``s^2 = (1/d) sum_j s_j^2`` over the d features that are not constant. Images are always scaled by channels.
    Sparse rows are scaled and not centred, which would fill them: their mean is stored as 0.
    """

    mean: Tensor  # (features,) or (channels, 1, 1), float64
    std: Tensor

    @classmethod
    def fit(cls, x: Array, rows: Array, weight: Array, scaling: str | None = None) -> "Scaler":
        """Learn from some rows of a table (n, features) or of images (n, channels, height, width), block by block.

        ``scaling`` is one of `SCALINGS`; None is the first. Constant features get std 1.
        """
        share = weight / weight.sum()
        if isinstance(x, SparseRows):
            return cls._fit_sparse(x.matrix[rows], share, scaling)
        if x.ndim == 2:
            blocks = [slice(i, i + _TABLE_BLOCK) for i in range(0, len(rows), _TABLE_BLOCK)]
            mean = sum(share[b] @ x[rows[b]] for b in blocks)
            std = np.sqrt(sum(share[b] @ (x[rows[b]] - mean) ** 2 for b in blocks))
            std = _divisors(mean, std, scaling)
        else:
            size = _IMAGE_BLOCK
            if x.dtype == np.uint8:  # whose moments are exact, whatever the blocks
                size = images_at_once(x.shape[1:], size)
            blocks = [slice(i, i + size) for i in range(0, len(rows), size)]
            moments = [_image_moments(x[rows[b]]) for b in blocks]
            first, second = (np.concatenate(moment) for moment in zip(*moments, strict=True))  # (n, channels)
            mean, mean_square = (share @ first)[:, None, None], (share @ second)[:, None, None]
            std = _divisors(mean, np.sqrt(np.maximum(mean_square - mean**2, 0.0)))
        return cls(torch.as_tensor(mean), torch.as_tensor(std))

    @classmethod
    def of_pixels(cls, x: Array) -> "Scaler":
        """Return what scales images to values from 0 to 1."""
        shape, largest = cls.shape_for(x.shape[1:]), 255.0 if x.dtype == np.uint8 else 1.0
        return cls(torch.zeros(shape, dtype=torch.float64), torch.full(shape, largest, dtype=torch.float64))

    @classmethod
    def _fit_sparse(cls, matrix: Any, share: Array, scaling: str | None) -> "Scaler":
        mean = share @ matrix
        mean_square = share @ matrix.multiply(matrix).tocsr()
        variance = mean_square - mean**2
        std = np.sqrt(np.where(variance > 1e-12 * mean_square, variance, 0.0))  # below is what rounding leaves
        std = _divisors(mean, std, scaling)
        return cls(torch.zeros(len(mean), dtype=torch.float64), torch.as_tensor(std))

    @staticmethod
    def shape_for(row: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of mean and std for rows of a shape."""
        return row if len(row) == 1 else (row[0], 1, 1)

    def to(self, device: torch.device, dtype: torch.dtype) -> "Scaler":
        """Return the scaler where rows are loaded, so that no batch has to fetch it."""
        return Scaler(self.mean.to(device, dtype), self.std.to(device, dtype))

    def store(self, x: Array, dtype: torch.dtype, rows: Array | None = None) -> Tensor:
        """Rows in the form in which they are kept: tables standardised, images as they are, bytes as bytes.

        ``rows`` are the numbers of those to keep; by default all.
        """
        if x.ndim == 2:
            return self._standardised(x, dtype, rows)
        x = x if rows is None else x[rows]
        # Channels beside each other in memory, as files have them: convolutions are faster so.
        images = np.moveaxis(x, 1, 3)
        pixels = np.ascontiguousarray(images).reshape(-1)
        pixels = pixels if pixels.flags.writeable else pixels.copy()
        stored = torch.as_tensor(pixels, dtype=None if x.dtype == np.uint8 else dtype)
        return stored.view(images.shape).permute(0, 3, 1, 2)

    def _standardised(self, x: Array, dtype: torch.dtype, rows: Array | None) -> Tensor:
        """Standardise in float64, block by block: nothing but the result is as large as the table."""
        mean, std = self.mean.numpy(), self.std.numpy()
        stored = torch.empty((len(x) if rows is None else len(rows), x.shape[1]), dtype=dtype)
        size = max(1, _STORED_CELLS // x.shape[1])
        for begin in range(0, len(stored), size):
            block = slice(begin, begin + size)
            stored[block] = torch.as_tensor((x[block if rows is None else rows[block]] - mean) / std)
        return stored

    def load(self, stored: Tensor, dtype: torch.dtype) -> Tensor:
        """Return stored rows, or views made of them, as the network takes them."""
        if self.mean.dim() == 1:
            return stored
        mean, std = (t.to(stored.device, dtype) for t in (self.mean, self.std))
        return torch.sub(stored, mean).div_(std)


@dataclass(frozen=True)
class HostRows:
    """Rows that stay on disk, sparse, or in the host's memory; those of a batch are read when it is made."""

    x: Array | SparseRows  # all rows
    rows: Array  # the numbers of those that count
    scaler: Scaler
    dtype: torch.dtype
    device: torch.device

    @property
    def shape(self) -> tuple[int, ...]:
        """As of a tensor."""
        return (len(self.rows), *self.x.shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """Return rows as they would be kept on the device."""
        numbers = self.rows[index if isinstance(index, slice) else index.cpu().numpy()]
        order = numbers.argsort()  # a disk is read forwards
        part = np.empty((len(numbers), *self.x.shape[1:]), dtype=self.x.dtype)
        part[order] = self.x[numbers[order]]
        stored = self.scaler.store(part, self.dtype)
        if self.device.type == "cuda":
            return stored.pin_memory().to(self.device, non_blocking=True)
        return stored


def first_rows(rows: Tensor | HostRows, count: int) -> Tensor | HostRows:
    """Return so many rows, where they are kept."""
    return replace(rows, rows=rows.rows[:count]) if isinstance(rows, HostRows) else rows[:count]


def _divisors(mean: Array, std: Array, scaling: str | None = None) -> Array:
    """Return std, or for a whole table the root of its mean square; with 1 for constant features."""
    # Rounding leaves a constant column with a tiny std; dividing by that would blow noise up.
    constant = std <= 1e-12 * np.maximum(np.abs(mean), 1.0)
    if scaling == "whole" and not constant.all():
        std = np.sqrt(np.mean(std[~constant] ** 2))
    return np.where(constant, 1.0, std)


def _image_moments(x: Array) -> tuple[Array, Array]:
    """Mean and mean square of every image and channel; of bytes exactly, and eight times faster than in floats."""
    if x.dtype != np.uint8:
        x = x.astype(np.float64)
        return x.mean((2, 3)), (x**2).mean((2, 3))
    pixels, squares = x.shape[2] * x.shape[3], np.square(x, dtype=np.uint16)
    return x.sum((2, 3), dtype=np.uint64) / pixels, squares.sum((2, 3), dtype=np.uint64) / pixels
