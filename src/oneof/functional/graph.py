"""VALEN: the graph that links every row to its nearest neighbours."""

from math import inf

import torch
from torch import Tensor

_BLOCK_ROWS = 512  # rows whose distances to all others are in memory at a time


def nearest_neighbours(x: Tensor, k: int) -> Tensor:
    """Indices (..., N, k) of the k nearest other rows of x (..., N, F)."""
    rows = torch.arange(x.shape[-2], device=x.device)
    found = []
    for block in torch.split(rows, _BLOCK_ROWS):
        distance = torch.cdist(x[..., block, :], x)  # (..., block, N)
        found.append(distance.masked_fill(block[:, None] == rows, inf).topk(k, largest=False).indices)
    return torch.cat(found, -2)


def adjacency(neighbours: Tensor, index: Tensor) -> Tensor:
    """Block (..., B, B) of the row-normalised graph: 1/(k + 1) for a row and its neighbours, of rows ``index``."""
    linked = (neighbours.unsqueeze(-1) == index[..., None, None, :]).any(-2)  # (..., B, B)
    itself = torch.eye(index.shape[-1], dtype=torch.bool, device=index.device)
    return (linked | itself) / (neighbours.shape[-1] + 1)
