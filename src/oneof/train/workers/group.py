"""The workers of one training, as one of them sees the others: sums over all, and values of all."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from oneof.errors import InputError


class WorkersDisagree(InputError):  # noqa: N818
    """What the workers of a training find out together: they cannot go on as one."""


class Group:
    """All workers of a training. Every one of them must make the same calls in the same order."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def add(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over the workers, and return it."""
        dist.all_reduce(tensor)
        return tensor

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over the workers, differentiable."""
        out: Tensor = _SumOverWorkers.apply(tensor, self)  # type: ignore[no-untyped-call]
        return out

    def whole(self, values: Tensor, own: Tensor, size: int) -> Tensor:
        """Return values (size, ...) of which each worker has those (B, ...) at its own places, differentiable."""
        numbers = values.to(torch.uint8) if values.dtype == torch.bool else values
        placed = numbers.new_zeros(size, *numbers.shape[1:]).index_copy(0, own, numbers)
        return self.sum(placed).to(values.dtype)

    def join(self, part: Tensor, sizes: list[int]) -> Tensor | None:
        """Return on the first worker the rows of all, one worker's after the other's; elsewhere None.

        ``sizes`` are the numbers of rows of the workers.
        """
        if self.rank:
            _send(part)
            return None
        rows = part.new_empty(sum(sizes), *part.shape[1:])
        parts = torch.split(rows, sizes)
        parts[0].copy_(part)
        for sender in range(1, self.size):
            _receive(parts[sender], sender)
        return rows

    def agree(self, number: float) -> bool:
        """Tell whether all workers have the same number."""
        numbers = torch.tensor([number, -number], dtype=torch.float64, device=self._device())
        dist.all_reduce(numbers, dist.ReduceOp.MAX)
        return bool(numbers[0] == -numbers[1])

    def any(self, answer: bool) -> bool:
        """Tell whether some worker says yes."""
        return bool(self.add(torch.tensor(int(answer), device=self._device())))

    def _device(self) -> str:
        return "cuda" if dist.get_backend() == "nccl" else "cpu"


class _SumOverWorkers(torch.autograd.Function):
    """The sum over the workers; a gradient of the sum is one of every term."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.add(tensor.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return ctx.group.add(gradient.clone(memory_format=torch.contiguous_format)), None


def _send(part: Tensor) -> None:
    if part.numel():
        dist.send(_bytes(part.contiguous()), 0)


def _receive(place: Tensor, sender: int) -> None:
    if place.numel():
        dist.recv(_bytes(place), sender)


def _bytes(tensor: Tensor) -> Tensor:
    """Show the memory of a tensor: bytes can be sent whatever they stand for."""
    return tensor.view(-1).view(torch.uint8)
