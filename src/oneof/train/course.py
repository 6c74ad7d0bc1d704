"""The course of a training: learning rates from step to step, and the moving average of its weights.

What changes with every step comes from tables of an epoch on the device, which a recorded step reads as well.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from oneof.train.method import Method

_RISE = 0.2  # of a triangular schedule: the share of the training in which the learning rate rises

# What becomes of the learning rate when a share t of the training is done.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda t: 1.0,
    "cosine": lambda t: 0.5 + 0.5 * math.cos(math.pi * t),
    "triangular": lambda t: min(t / _RISE, (1 - t) / (1 - _RISE)),
}
BY_STEP = ("triangular",)  # the others change with every epoch


class Course:
    """Sets the learning rates of an optimiser, and follows the weights with their average.

    The average (none of it where the method does not want one) is updated in place: it may belong to a trial, or,
    with a leading axis, to a stack of trials.
    """

    def __init__(self, method: Method, optimizer: Any, rates: list[Any], average: Mapping[str, Tensor]) -> None:
        self._method, self._optimizer, self._rates = method, optimizer, rates
        self.average = average
        self._weights = {name: tensor for name, tensor in method.weights().items() if name in average}
        self._factors: Tensor | None = None  # (steps,): of the learning rate in each step of the epoch
        self._shares: Tensor | None = None  # (steps,): how much the weights after each step enter their average

    def begin_epoch(self, epoch: int, steps: int, like: Tensor) -> None:
        """Prepare an epoch of so many steps; tensors are made as another one."""
        method, schedule = self._method, SCHEDULES[self._method.schedule]
        done = range(epoch * steps, (epoch + 1) * steps)  # steps before each one
        if method.schedule in BY_STEP:
            factors = [schedule((step + 0.5) / (method.epochs * steps)) for step in done]
            self._factors = _filled(self._factors, factors, like)
            for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
                if group["lr"] is rate or not isinstance(group["lr"], Tensor):
                    group["lr"] = torch.as_tensor(rate, dtype=like.dtype, device=like.device).clone()
        else:
            for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate * schedule(epoch / method.epochs)
        if self.average:
            # At first the plain mean, in which the beginning counts no more than what follows.
            shares = [max(1 / (step + 1), 1 / max(1.0, method.average * steps)) for step in done]
            self._shares = _filled(self._shares, shares, like)

    def begin_step(self, number: Tensor) -> None:
        """Set the learning rates of a step, by its number (1,) in the epoch."""
        if self._factors is not None:
            factor = self._factors.index_select(0, number)[0]
            for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
                group["lr"].copy_(rate * factor)

    @torch.no_grad()
    def end_step(self, number: Tensor) -> None:
        """Let the new weights enter their average."""
        if self._shares is not None:
            share = self._shares.index_select(0, number)[0]
            averages = list(self.average.values())
            change = torch._foreach_sub(list(self._weights.values()), averages)  # noqa: SLF001  a few kernels for all
            torch._foreach_mul_(change, share)
            torch._foreach_add_(averages, change)

    @contextmanager
    @torch.no_grad()
    def averaged(self) -> Iterator[None]:
        """Have the average in the place of the weights inside the block."""
        kept = {name: tensor.clone() for name, tensor in self._weights.items()}
        _copy(self.average, self._weights)
        try:
            yield
        finally:
            _copy(kept, self._weights)


def start_average(method: Method) -> dict[str, Tensor]:
    """Return what is to become the average of all weights and running statistics, where a method wants it."""
    if not method.average:
        return {}
    return {name: tensor.clone() for name, tensor in method.weights().items() if tensor.is_floating_point()}


def _filled(table: Tensor | None, values: list[float], like: Tensor) -> Tensor:
    """Return values as a tensor, always in the same place: that of a table, if there is one."""
    new = torch.tensor(values, dtype=like.dtype)
    return new.to(like.device) if table is None else table.copy_(new)


def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    for name, tensor in target.items():
        tensor.copy_(source[name])
