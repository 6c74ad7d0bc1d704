"""The part of a training that one worker has: some rows, their sets and label tables, and all networks."""

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneof.labels.sparse_sets import AnySets
from oneof.train.batch import Batch, Data
from oneof.train.checkpoint import Checkpoint
from oneof.train.method import Method
from oneof.train.rows import HostRows, SparseRows
from oneof.train.sets import DeviceSets
from oneof.train.trial import Trial
from oneof.train.trial_state import Setup
from oneof.train.workers.group import Group


@dataclass(frozen=True)
class WorkerPart:
    """What one worker is sent before a training begins."""

    method: Method  # whose tables have these rows alone
    data: Data
    setup: Setup
    tables: frozenset[str]  # names of those that have a row for each training row
    rows: list[int]  # how many each worker has
    candidates: list[int]  # of these rows, where sets are sparse
    watched: Tensor | None
    sets: AnySets | None
    watched_rows: list[int]
    checkpoint: tuple[Any, ...] | None  # what makes it


def sizes_of(rows: int, workers: int) -> list[int]:
    """Return how many of all rows each worker has: as evenly as can be."""
    ends = [rows * worker // workers for worker in range(workers + 1)]
    return [end - begin for begin, end in pairwise(ends)]


def cut(trial: Trial, tables: Collection[str], workers: int) -> "list[WorkerPart]":
    """Cut a prepared trial into parts; ``tables`` are the names of those that have a row for each training row."""
    rows = sizes_of(len(trial.data), workers)
    sets = trial.data.sets
    candidates = [0] * workers
    if isinstance(sets, DeviceSets):
        candidates = [int(sizes.sum()) for sizes in torch.split(sets.sizes, rows)]
    watched = sizes_of(0 if trial.watched is None else len(trial.watched), workers)
    checkpoint = trial.checkpoint
    whole = WorkerPart(
        trial.method,
        trial.data,
        trial.setup,
        frozenset(tables),
        rows,
        candidates,
        None,
        None,
        watched,
        None if checkpoint is None else (checkpoint.path.absolute(), checkpoint.parameters, checkpoint.data),
    )
    return [_part(trial, whole, worker) for worker in range(workers)]


def _part(trial: Trial, whole: WorkerPart, worker: int) -> WorkerPart:
    data = trial.data.part(torch.arange(*place(whole.rows, worker)))
    if isinstance(data.x, HostRows):
        data = replace(data, x=_by_itself(data.x))
    method = copy(trial.method)
    for name in whole.tables:
        table = trial.method.tables()[name]
        setattr(method, name, table[slice(*place(sizes_in(table, whole), worker))].clone())
    data = move(method, data, torch.device("cpu"))
    watched = slice(*place(whole.watched_rows, worker))
    return replace(
        whole,
        method=method,
        data=data,
        watched=None if trial.watched is None else trial.watched[watched].cpu().clone(),
        sets=None if trial.sets is None else trial.sets[watched],
    )


def place(sizes: Sequence[int], worker: int) -> tuple[int, int]:
    """Return where the part of a worker begins and ends."""
    ends = [0, *accumulate(sizes)]
    return ends[worker], ends[worker + 1]


def sizes_in(table: Tensor, part: WorkerPart) -> list[int]:
    """Return how many entries of a table each worker has: rows, or values of candidates."""
    return part.candidates if table.dim() == 1 else part.rows


def _by_itself(x: HostRows) -> HostRows:
    """Return rows without the others that stand beside them."""
    own: Any = x.x[x.rows] if not isinstance(x.x, SparseRows) else SparseRows(x.x.matrix[x.rows])
    return replace(x, x=own, rows=np.arange(len(x.rows)))


def own_places(rows: Tensor, first: int, count: int) -> Tensor:
    """Return where among numbers of rows those of one worker stand, who has so many rows from the first on."""
    return ((rows >= first) & (rows < first + count)).nonzero().squeeze(-1)


@dataclass(frozen=True)
class PartData(Data):
    """The rows of one worker."""

    group: Group
    first: int  # among the rows of all workers
    whole_rows: int

    @property
    def all_rows(self) -> int:
        """The number of rows of all workers."""
        return self.whole_rows

    def total(self, values: Tensor) -> Tensor:
        """Return the sum (1, C) of values (N, C) over the rows of all workers."""
        return self.group.add(super().total(values))

    def of_sample(self, size: int, function: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """Return what a function gives for so many rows of all workers, evenly spaced, and their candidates."""
        spaced = self._spaced(size)
        places = own_places(spaced, self.first, len(self))
        index = spaced[places] - self.first
        sets = self.sets_of(index)
        parts = function(self._load(index), sets), sets
        results, candidates = (self.group.whole(part, places, len(spaced)) for part in parts)
        return results, candidates


@dataclass(frozen=True)
class PartBatch(Batch):
    """The rows of a step that one worker has; ``index`` numbers them among those of the worker."""

    places: Tensor  # (B,), of the rows in the step
    size: int  # of the step
    group: Group

    @property
    def all_rows(self) -> int:
        """The number of rows of the step."""
        return self.size

    def whole(self, values: Tensor) -> Tensor:
        """Return values (size, *shape) of all rows of the step, differentiable in those of this batch."""
        return self.group.whole(values, self.places, self.size)

    def own(self, values: Tensor) -> Tensor:
        """Return of values (size, *shape) of all rows of the step those of the rows of this batch."""
        return values[self.places]

    def total(self, values: Tensor) -> Tensor:
        """Return the sum (C,) of values (B, C) over all rows of the step; it carries no gradient."""
        return self.group.add(values.detach().sum(-2))

    def preceding(self, values: Tensor) -> Tensor:
        """Return of values (B, *shape) those of the row of the step that stands before each."""
        return self.own(self.whole(values).roll(1, 0))

    def uniform(self, rows: Tensor) -> Tensor:
        """Draw a number in [0, 1) for every one of rows (B,)."""
        return self.own(super().uniform(self.places.new_empty(self.size)))

    def dirichlet(self, concentration: Tensor) -> Tensor:
        """Draw a Dirichlet sample (B, K), or one of (K,) for the whole step, differentiable."""
        if concentration.dim() == 1:
            return super().dirichlet(concentration)
        return self.own(super().dirichlet(self.whole(concentration)))


class PartCheckpoint(Checkpoint):
    """A checkpoint of the whole training, of whose tables one worker takes its rows."""

    def cut(self, part: WorkerPart, worker: int) -> None:
        """Leave out the rows of others."""
        for name in part.tables & {key.removeprefix("learned.") for key in self._tensors}:
            table = self._tensors[f"learned.{name}"]
            sizes = sizes_in(table, part)
            if len(table) == sum(sizes):  # else it has no place, and is refused
                self._tensors[f"learned.{name}"] = table[slice(*place(sizes, worker))]


def move(method: Method, data: Data, device: torch.device) -> Data:
    """Move networks, tables and rows to a device."""
    for name, value in method.learned_attributes().items():
        setattr(method, name, value.to(device))
    if isinstance(data.x, HostRows):
        x: Any = replace(data.x, device=device)
    else:
        x = data.x.to(device)
    sets = data.sets.to(device)
    return replace(data, x=x, sets=sets, weight=data.weight.to(device), scaler=data.scaler.to(device, data.dtype))
