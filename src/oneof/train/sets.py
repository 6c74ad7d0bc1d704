"""Candidate sets on the device where they are sparse: what is kept grows with the candidates, not with n x K."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from oneof.labels import SparseSets


@dataclass(frozen=True)
class DeviceSets:
    """Candidate sets (N, K) in rows that are compressed (CSR); a table of one value for each candidate is flat."""

    starts: Tensor  # (N,): where the candidates of each row begin
    sizes: Tensor  # (N,): how many there are
    columns: Tensor  # (C,), int32: the class of each
    weights: Tensor | None  # (C,): of weighted candidates
    n_classes: int
    largest: int  # of the sizes

    @classmethod
    def put(cls, sets: SparseSets, device: torch.device, dtype: torch.dtype) -> "DeviceSets":
        """Put sets on a device, weights in a floating type."""
        matrix = sets.matrix
        return cls(
            torch.as_tensor(matrix.indptr[:-1].astype(np.int64), device=device),
            torch.as_tensor(sets.sizes.astype(np.int64), device=device),
            torch.as_tensor(matrix.indices.astype(np.int32), device=device),
            None if sets.dtype == bool else torch.as_tensor(matrix.data, device=device, dtype=dtype),
            sets.shape[1],
            int(sets.sizes.max()),
        )

    @classmethod
    def placeholder(cls, rows: int, candidates: int, n_classes: int, device: str) -> "DeviceSets":
        """Return so many candidates of so many rows, to make tables that are then filled."""
        ends = torch.arange(rows + 1, device=device) * candidates // rows
        columns = torch.zeros((), dtype=torch.int32, device=device).expand(candidates)
        return cls(ends[:-1], ends.diff(), columns, None, n_classes, -(-candidates // rows))

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        return len(self.sizes), self.n_classes

    @property
    def dtype(self) -> torch.dtype:
        """As of a dense matrix: booleans, or the type of the weights."""
        return torch.bool if self.weights is None else self.weights.dtype

    def dim(self) -> int:
        """As of a dense matrix."""
        return 2

    def to(self, device: torch.device) -> "DeviceSets":
        """Return the sets on another device."""
        starts, sizes, columns = (part.to(device) for part in (self.starts, self.sizes, self.columns))
        weights = None if self.weights is None else self.weights.to(device)
        return DeviceSets(starts, sizes, columns, weights, self.n_classes, self.largest)

    def select(self, rows: Tensor) -> "DeviceSets":
        """Return the sets of some rows, in their order."""
        sizes = self.sizes[rows]
        ends = sizes.cumsum(0)
        starts = ends - sizes
        within = torch.arange(int(ends[-1]), device=rows.device) - starts.repeat_interleave(sizes)
        places = self.starts[rows].repeat_interleave(sizes) + within
        weights = None if self.weights is None else self.weights[places]
        return DeviceSets(starts, sizes, self.columns[places], weights, self.n_classes, int(sizes.max()))

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the sets of the rows ``index`` as a dense mask (B, K), or as weights."""
        ones = torch.ones((), dtype=torch.bool, device=self.columns.device).expand(len(self.columns))
        return self.take(ones if self.weights is None else self.weights, index)

    def take(self, table: Tensor, index: Tensor) -> Tensor:
        """Return the rows ``index`` (B, K) of a table (C,): 0 off the sets."""
        places = self._places(index)
        rows = table.new_zeros(len(index), self.n_classes)
        return rows.scatter_(1, self.columns[places].long(), table[places])

    def put_rows(self, table: Tensor, index: Tensor, values: Tensor) -> None:
        """Write values (B, K) into the rows ``index`` of a table (C,); what stands off the sets is left out."""
        places = self._places(index)
        chosen = values.gather(1, self.columns[places].long()).to(table.dtype)
        table.index_copy_(0, places.flatten(), chosen.flatten())

    def _places(self, index: Tensor) -> Tensor:
        """Return where the candidates of rows stand (B, largest); of smaller sets the last one again and again."""
        number = torch.arange(self.largest, device=index.device)
        return self.starts[index].unsqueeze(1) + torch.minimum(number, self.sizes[index].unsqueeze(1) - 1)

    def uniform(self, dtype: torch.dtype) -> Tensor:
        """Return a table (C,) of distributions over the candidates: 1/|S|, or as their weights."""
        if self.weights is None:
            values = self.sizes.to(dtype).reciprocal()
            return values.repeat_interleave(self.sizes, output_size=len(self.columns))
        weights = self.weights.to(dtype)
        total = torch.segment_reduce(weights, "sum", lengths=self.sizes)
        return weights / total.repeat_interleave(self.sizes, output_size=len(self.columns))
