"""What a step of a method sees: the training rows, and those of one batch with their views."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from oneof import functional as F
from oneof.augment import make_views
from oneof.io.memory import check_room, gigabytes, is_large
from oneof.io.words import warn
from oneof.train.rows import HostRows, Scaler
from oneof.train.runtime import compute_pair
from oneof.train.sets import DeviceSets


@dataclass(frozen=True)
class Data:
    """Training rows on the device, once. Leading axes (trials) may stand before the rows."""

    x: Tensor | HostRows  # (..., N, *shape)
    # (..., N, K), boolean, or weights: see `oneof.functional.common`. Sparse for methods that say `zero_off_sets`.
    sets: Tensor | DeviceSets
    weight: Tensor  # (..., N)
    scaler: Scaler

    def __len__(self) -> int:
        return self.weight.shape[-1]

    @property
    def candidates(self) -> Tensor:
        """All candidate sets (..., N, K); where they are sparse, this makes them dense."""
        return (
            self.sets
            if isinstance(self.sets, Tensor)
            else self.sets_of(torch.arange(len(self)).to(self.weight.device))
        )

    @property
    def weighted(self) -> bool:
        """Whether candidates have weights."""
        return self.sets.dtype != torch.bool

    def blocks(self, size: int) -> Iterator[Tensor]:
        """Return all rows as the network takes them, so many at once."""
        everything = torch.arange(len(self), device=self.weight.device)
        for index in torch.split(everything, size):
            yield self._load(index)

    def of_sample(self, size: int, function: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        """Return what a function gives for so many rows (or all, where there are fewer), and their candidates.

        The function takes rows and candidates; the rows are evenly spaced.
        """
        index = self._spaced(size)
        sets = self.sets_of(index)
        return function(self._load(index), sets), sets

    def _spaced(self, size: int) -> Tensor:
        size = min(size, self.all_rows)
        return torch.arange(size, device=self.weight.device) * self.all_rows // size

    @property
    def all_rows(self) -> int:
        """The number of rows of the training, of which these may be a part: see `oneof.train.workers`."""
        return len(self)

    def total(self, values: Tensor) -> Tensor:
        """Return the sum (..., 1, C) of values (..., N, C) over all rows of the training."""
        return values.sum(-2, keepdim=True)

    def part(self, rows: Tensor) -> "Data":
        """Return some of the rows, whose numbers (M,) are on the CPU, of data without leading axes."""
        here = rows.to(self.weight.device)
        x, sets = self.x, self.sets
        some = replace(x, rows=x.rows[rows.numpy()]) if isinstance(x, HostRows) else x.index_select(0, here)
        own = sets.select(here) if isinstance(sets, DeviceSets) else sets[here]
        return Data(some, own, self.weight[here], self.scaler)

    def sets_of(self, index: Tensor) -> Tensor:
        """Return the candidate sets (..., B, K) of rows."""
        sets = self.sets
        return sets[index] if isinstance(sets, DeviceSets) else sets.index_select(-2, index)

    # --- label tables, which `Batch.take` and `Batch.put` read and write ------------------------------------

    def uniform(self) -> Tensor:
        """Return a table of distributions over the candidates: 1/|S|, or as their weights; 0 off the sets."""
        sets = self.sets
        return sets.uniform(self.dtype) if isinstance(sets, DeviceSets) else F.uniform(sets, self.dtype)

    def indicator(self) -> Tensor:
        """Return a table of ones at the candidates; 0 off the sets."""
        sets = self.sets
        if isinstance(sets, DeviceSets):
            return self.weight.new_ones(len(sets.columns))
        return F.indicator(sets, self.dtype)

    def row_table(self, columns: int, name: str, read: bool = True) -> Tensor:
        """Return a table of zeros (..., N, columns), whose values may lie off the sets.

        Where sets are sparse, one that no step will read (not ``read``) has no columns.
        """
        shape = (*self.weight.shape, columns)
        if isinstance(self.sets, DeviceSets):
            shape = (*self.weight.shape, columns if read else 0)
            state_bytes(f"the table {name} of {columns} numbers a row", math.prod(shape) * self.dtype.itemsize)
        return self.weight.new_zeros(shape)

    def set_sizes(self) -> Tensor:
        """Return the number of candidates of each row (..., N)."""
        sets = self.sets
        return sets.sizes if isinstance(sets, DeviceSets) else F.members(sets).sum(-1)

    def _load(self, index: Tensor) -> Tensor:
        axis = self.weight.dim() - 1
        rows = self.x[index] if isinstance(self.x, HostRows) else self.x.index_select(axis, index)
        return self.scaler.load(rows, self.dtype)

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return self.sets.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(self.x.shape[self.weight.dim() :])

    @property
    def dtype(self) -> torch.dtype:
        """The floating type of the mathematics."""
        return self.weight.dtype


class Epoch:
    """The number of an epoch, and what a method asked about it.

    A recorded step stays valid in every epoch that would give the same answers. What grows with every epoch comes
    as a tensor, made of the ``clock`` (), which the loop sets.
    """

    def __init__(self, number: int, clock: Tensor | None = None) -> None:
        self._number = number
        self._clock = torch.tensor(float(number)) if clock is None else clock
        self._before: dict[int, bool] = {}
        self._told = False

    @property
    def number(self) -> int:
        """The number itself, which no other epoch has."""
        self._told = True
        return self._number

    def before(self, other: int) -> bool:
        """Tell whether this epoch comes before another."""
        return self._before.setdefault(other, self._number < other)

    def ramp(self, epochs: int, since: int) -> Tensor:
        """Return a number () that rises linearly from 0 at epoch ``since`` to 1 after so many epochs."""
        return ((self._clock - since) / epochs).clamp(0, 1)

    def answers_as(self, number: int) -> bool:
        """Tell whether the epoch of that number would have given the same answers."""
        return not self._told and all((number < other) == answer for other, answer in self._before.items())


@dataclass(frozen=True)
class Batch:
    """The rows of one step: their views, candidate sets and numbers."""

    views: list[Tensor]  # each (..., B, *shape)
    candidates: Tensor  # (..., B, K), as in `Data`
    index: Tensor  # (..., B)
    of_epoch: Epoch
    # All views below each other (..., views * B, *shape), where they stand so already.
    all_views: Tensor | None = field(default=None, kw_only=True)
    # All sets, where they are sparse: tables of one axis have a value for each of their candidates.
    sets: DeviceSets | None = field(default=None, kw_only=True)

    @property
    def epoch(self) -> int:
        """The number of the epoch. With `before` and `ramp` instead, a recorded step serves many epochs."""
        return self.of_epoch.number

    def before(self, epoch: int) -> bool:
        """Tell whether this is a batch of an earlier epoch."""
        return self.of_epoch.before(epoch)

    def ramp(self, epochs: int, since: int = 0) -> Tensor:
        """Return a number () that rises linearly from 0 at epoch ``since`` to 1 after so many epochs."""
        return self.of_epoch.ramp(epochs, since)

    @property
    def x(self) -> Tensor:
        """The first view, the one that label tables follow."""
        return self.views[0]

    def forward(self, network: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """Return a network's outputs (..., B, K) of every view, in one pass over all of them."""
        return self._by_view(network(self._rows))

    def through(self, network: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """`forward` by its old name, until 0.3."""
        warnings.warn("batch.through is now batch.forward; it goes with 0.3", DeprecationWarning, stacklevel=2)
        return self.forward(network)

    def forward_pair(
        self, first: Callable[[Tensor], Tensor], second: Callable[[Tensor], Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the outputs of two networks, neither of which needs the other's, as `forward` does."""
        rows = self._rows  # the batch holds them for as long as either network works on them
        one, other = compute_pair(lambda: first(rows), lambda: second(rows), rows.device)
        return self._by_view(one), self._by_view(other)

    def _by_view(self, outputs: Tensor) -> list[Tensor]:
        return [outputs] if len(self.views) == 1 else list(outputs.chunk(len(self.views), dim=-2))

    @cached_property
    def _rows(self) -> Tensor:
        if self.all_views is not None:
            return self.all_views
        return self.views[0] if len(self.views) == 1 else torch.cat(self.views, dim=self.index.dim() - 1)

    def take(self, table: Tensor) -> Tensor:
        """Read these rows (B, C) of a table (N, C); a stack of trials has its own way.

        Of a table of one axis, with a value for each candidate, these rows (B, K).
        """
        if self.sets is not None and table.dim() == 1:
            return self.sets.take(table, self.index)
        return table.index_select(0, self.index)  # whole rows, several times faster than to gather elements

    def put(self, table: Tensor, values: Tensor) -> None:
        """Write these rows of a table; values carry no gradient."""
        if self.sets is not None and table.dim() == 1:
            self.sets.put_rows(table, self.index, values.detach())
            return
        table.index_copy_(0, self.index, values.detach().to(table.dtype))

    def mixup(self, network: Callable[[Tensor], Tensor], targets: Tensor) -> Tensor:
        """Return the losses (..., B) of mixed rows: cross-entropies to the mixtures of their targets (..., B, K).

        Each row x of the first view is mixed with the row x' that happens to stand before it: ``t x + (1 - t) x'``
        with t uniform in [1/2, 1].
        """
        t = 0.5 + 0.5 * self.uniform(self.index).to(targets.dtype)  # (..., B)
        return F.soft_cross_entropy(network(self.mixed(self.x, t)), self.mixed(targets, t))

    def mixed(self, values: Tensor, t: Tensor) -> Tensor:
        """Mix the values x of each row (..., B, *shape) with those of the row before: ``t x + (1 - t) x'``.

        The first row is mixed with the last one. t is (..., B), or (..., 1) for all rows alike.
        """
        share = t.view(*t.shape, *[1] * (values.dim() - t.dim())).to(values.dtype)
        return torch.lerp(self.preceding(values), values, share)

    def preceding(self, values: Tensor) -> Tensor:
        """Return of values (..., B, *shape) those of the row before each one; the last is before the first."""
        return values.roll(1, self.index.dim() - 1)

    # --- what rows of a step share: a batch may hold a part of its step, see `oneof.train.workers` --------------

    @property
    def all_rows(self) -> int:
        """The number of rows of the step."""
        return self.index.shape[-1]

    def whole(self, values: Tensor) -> Tensor:
        """Return values (..., B, *shape) of all rows of the step, differentiable in those of this batch."""
        return values

    def own(self, values: Tensor) -> Tensor:
        """Return of values (B, *shape) of all rows of the step those of the rows of this batch."""
        return values

    def total(self, values: Tensor) -> Tensor:
        """Return the sum (..., C) of values (..., B, C) over all rows of the step; it carries no gradient."""
        return values.sum(-2)

    def uniform(self, rows: Tensor) -> Tensor:
        """Draw a number in [0, 1) for every one of rows (..., B)."""
        return torch.rand(rows.shape, device=rows.device)

    def dirichlet(self, concentration: Tensor) -> Tensor:
        """Draw a Dirichlet sample (..., K), differentiable in its concentration."""
        sample: Tensor = torch.distributions.Dirichlet(concentration, validate_args=False).rsample()
        return sample


def make_batch(data: Data, index: Tensor, epoch: Epoch, views: str | None = None, flips: bool = True) -> Batch:
    """Take the rows ``index`` of the data and make their views."""
    x = data.x[index]
    versions = [x] if views is None else make_views(x, views, flips)
    rows = data.scaler.load(torch.cat(versions) if len(versions) > 1 else x, data.dtype)
    sets = data.sets if isinstance(data.sets, DeviceSets) else None
    return Batch(list(rows.chunk(len(versions))), data.sets[index], index, epoch, all_views=rows, sets=sets)


def state_bytes(what: str, size: int) -> None:
    """Say before a fit begins that a table is large; refuse one for which there is no room."""
    fix = "take a method that keeps one value a candidate, such as PRODEN, or IDGP(d=0), or fewer rows"
    check_room(what, size, fix)
    if is_large(size):
        warn(f"{what} takes {gigabytes(size)}, since values do not lie on the candidates alone; to save it, {fix}")
