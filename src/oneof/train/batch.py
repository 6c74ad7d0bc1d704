"""What a step of a method sees: the training rows, and those of one batch with their views."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from oneof import functional as F
from oneof.augment import make_views
from oneof.train.rows import HostRows, Scaler
from oneof.train.runtime import compute_pair


@dataclass(frozen=True)
class Data:
    """Training rows on the device, once. Leading axes (trials) may stand before the rows."""

    x: Tensor | HostRows  # (..., N, *shape)
    candidates: Tensor  # (..., N, K), boolean, or weights: see `oneof.functional.common`
    weight: Tensor  # (..., N)
    scaler: Scaler

    def __len__(self) -> int:
        return self.candidates.shape[-2]

    def blocks(self, size: int) -> Iterator[Tensor]:
        """Return all rows as the network takes them, so many at once."""
        everything = torch.arange(len(self), device=self.weight.device)
        for index in torch.split(everything, size):
            yield self._load(index)

    def sample(self, size: int) -> tuple[Tensor, Tensor]:
        """Return so many rows (or all, where there are fewer) and their candidates, evenly spaced."""
        size = min(size, len(self))
        index = torch.arange(size, device=self.weight.device) * len(self) // size
        return self._load(index), self.candidates.index_select(-2, index)

    def _load(self, index: Tensor) -> Tensor:
        axis = self.candidates.dim() - 2
        rows = self.x[index] if isinstance(self.x, HostRows) else self.x.index_select(axis, index)
        return self.scaler.load(rows, self.dtype)

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return self.candidates.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(self.x.shape[self.candidates.dim() - 1 :])

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
        """Read these rows (B, C) of a table (N, C); a stack of trials has its own way."""
        return table.index_select(0, self.index)  # whole rows, several times faster than to gather elements

    def put(self, table: Tensor, values: Tensor) -> None:
        """Write these rows of a table; values carry no gradient."""
        table.index_copy_(0, self.index, values.detach().to(table.dtype))

    def mixup(self, network: Callable[[Tensor], Tensor], targets: Tensor) -> Tensor:
        """Return the losses (..., B) of mixed rows: cross-entropies to the mixtures of their targets (..., B, K).

        Each row x of the first view is mixed with the row x' that happens to stand before it: ``t x + (1 - t) x'``
        with t uniform in [1/2, 1].
        """
        x, axis = self.x, self.index.dim() - 1
        t = 0.5 + 0.5 * self.uniform(self.index).to(targets.dtype)  # (..., B)
        of_row = t.view(*t.shape, *[1] * (x.dim() - t.dim())).to(x.dtype)
        outputs = network(torch.lerp(x.roll(1, axis), x, of_row))
        return F.soft_cross_entropy(outputs, torch.lerp(targets.roll(1, axis), targets, t.unsqueeze(-1)))

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
    return Batch(list(rows.chunk(len(versions))), data.candidates[index], index, epoch, all_views=rows)
