"""Neighbours of rows: in which space they are near, and who they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

Space = NDArray[np.float32]
Numbers = NDArray[np.int32]

AROUND = 10  # neighbours of a row that are asked for their answers
_DIMENSIONS = 50


def embed(X: Any) -> Space:
    """Return rows as points (n, d): features of variance 1, or images as they are; at most 50 components."""
    rows = np.asarray(X)
    flat = rows.reshape(len(rows), -1).astype(np.float32)
    if rows.ndim == 2:
        spread = flat.std(0)
        flat = (flat - flat.mean(0)) / np.where(spread > 0, spread, 1)
    flat = np.nan_to_num(flat)
    if min(flat.shape) > _DIMENSIONS:
        flat = PCA(_DIMENSIONS, svd_solver="randomized", random_state=0).fit_transform(flat)
    return np.ascontiguousarray(flat, dtype=np.float32)


def nearest(space: Space, count: int) -> tuple[Numbers, NDArray[np.float32]]:
    """Return the nearest other rows of each row, and how far they are, both (n, count)."""
    count = min(count, len(space) - 1)
    if count < 1:
        return np.zeros((len(space), 1), np.int32), np.full((len(space), 1), np.inf, np.float32)
    search = NearestNeighbors(n_neighbors=count).fit(space)
    distance, numbers = search.kneighbors()  # of the rows themselves, each left out of its own
    return numbers.astype(np.int32), distance.astype(np.float32)


def fold_neighbours(space: Space, folds: Sequence[NDArray[Any]]) -> Numbers:
    """Return for each row its nearest rows within its own fold (n, k)."""
    size = min(AROUND, min(len(fold) for fold in folds) - 1)
    around = np.tile(np.arange(len(space), dtype=np.int32)[:, None], (1, max(size, 1)))
    for fold in folds:
        if size > 0:
            around[fold] = fold[nearest(space[fold], size)[0]]
    return around


def nearest_to(space: Space, row: int, count: int) -> list[int]:
    """Return the rows nearest to one row, the nearest first."""
    distance = ((space - space[row]) ** 2).sum(1)
    distance[row] = np.inf
    count = min(count, len(space) - 1)
    first = np.argpartition(distance, count - 1)[:count] if count else np.zeros(0, np.intp)
    return [int(number) for number in first[np.argsort(distance[first], kind="stable")]]
