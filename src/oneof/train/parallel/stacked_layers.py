"""What a stack of trials is made of: layers, an optimiser and batches with a leading axis of T trials."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from oneof.train.adamw import beside
from oneof.train.batch import Batch
from oneof.train.method import Method


class StackedLinear(nn.Module):
    """T linear layers: x (T, B, inputs) -> (T, B, outputs).

    x may also come as (D, B, inputs): rows that the first ``readers[0]`` trials share, then the next ones.
    """

    def __init__(self, layers: Sequence[nn.Linear], readers: list[int]) -> None:
        super().__init__()
        self.readers = readers
        self.weight = _stacked_parameter([layer.weight for layer in layers])  # (T, outputs, inputs)
        self.bias = _stacked_parameter([layer.bias for layer in layers])  # (T, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias``, trial by trial."""
        if len(x) < len(self.weight):
            out: Tensor = _SharedRows.apply(x, self.weight, self.bias, self.readers)  # type: ignore[no-untyped-call]
            return out
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.mT)


class _SharedRows(torch.autograd.Function):
    """`StackedLinear` of shared rows: these stay in a processor's cache, where copies of them would not fit."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, readers: list[int]) -> Tensor:
        ctx.save_for_backward(x)
        ctx.readers = readers
        outputs = x.new_empty(len(weight), x.shape[1], weight.shape[1])
        parts = (torch.split(part, readers) for part in (weight, bias.unsqueeze(1), outputs))
        for rows, w, b, out in zip(x, *parts, strict=True):
            torch.baddbmm(b, rows.expand(len(w), -1, -1), w.mT, out=out)
        return outputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        of_weight = x.new_empty(len(gradient), x.shape[-1], gradient.shape[-1])  # transposed, as the weights are
        parts = (torch.split(part, ctx.readers) for part in (gradient, of_weight))
        for rows, g, out in zip(x, *parts, strict=True):
            torch.bmm(rows.mT.expand(len(g), -1, -1), g, out=out)
        return None, of_weight.mT, gradient.sum(1), None


class StackedSGD:
    """Stochastic gradient descent with momentum; learning rates and weight decays are vectors over trials."""

    def __init__(self, groups: list[dict[str, Any]], momentum: float) -> None:
        self.param_groups, self.momentum = groups, momentum  # lr and weight_decay of each: (T,)
        self.state: dict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that the loss has reached."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                lr, decay = (beside(group[name], parameter) for name in ("lr", "weight_decay"))
                change = parameter.grad.addcmul_(decay, parameter)  # in place: the gradient is dropped anyway
                buffer = self.state[parameter].get("momentum_buffer")
                if buffer is None:
                    buffer = self.state[parameter]["momentum_buffer"] = change
                else:
                    buffer.mul_(self.momentum).add_(change)
                parameter.addcmul_(lr, buffer, value=-1)


@dataclass(frozen=True)
class StackedBatch(Batch):
    """A batch (T, B) whose trials draw from streams of their own."""

    rows: Tensor  # (T, B): where they stand when all trials stand below each other
    readers: list[int]  # how many trials read the first table of the view, the second, ...
    each: Callable[[Callable[[Tensor], Any], Tensor], list[Any]]

    @cached_property
    def x(self) -> Tensor:
        """The first view (T, B, F), with rows that trials share as often as they are read."""
        shared = self.views[0]
        return shared if len(shared) == len(self.index) else repeated(shared, self.readers)

    def take(self, table: Tensor) -> Tensor:
        """Read these rows (T, B, C) of a table (T, N, C)."""
        return take_rows(table, self.rows)

    def put(self, table: Tensor, values: Tensor) -> None:
        """Write these rows of a table; values carry no gradient."""
        values = values.detach().to(table.dtype).flatten(0, 1)
        table.view(-1, table.shape[-1]).index_copy_(0, self.rows.flatten(), values)

    def uniform(self, rows: Tensor) -> Tensor:
        """Draw a number in [0, 1) for every one of rows (T, B)."""
        return torch.stack(self.each(super().uniform, rows))

    def dirichlet(self, concentration: Tensor) -> Tensor:
        """Draw a Dirichlet sample (T, B, K), differentiable in its concentration."""
        return torch.stack(self.each(super().dirichlet, concentration))


def stacked_method(methods: Sequence[Method], readers: list[int]) -> Method:
    """Return a method whose networks and tables are those of all, on a leading axis."""
    stacked = copy(methods[0])
    for name, value in methods[0].learned_attributes().items():
        if isinstance(value, Tensor):
            setattr(stacked, name, torch.stack([getattr(method, name) for method in methods]))
        else:
            setattr(stacked, name, _stacked_module([getattr(method, name) for method in methods], readers))
    return stacked


def _stacked_module(modules: Sequence[nn.Module], readers: list[int]) -> nn.Module:
    """Return the first module with every linear layer in the place of all."""
    first = modules[0]
    if isinstance(first, nn.Linear):
        return StackedLinear([module for module in modules if isinstance(module, nn.Linear)], readers)
    stacked = copy(first)
    children = [dict(module.named_children()) for module in modules]
    stacked._modules = {  # noqa: SLF001  no public way to replace all children
        name: _stacked_module([each[name] for each in children], readers) for name in children[0]
    }
    return stacked


def _stacked_parameter(parameters: Sequence[Tensor]) -> nn.Parameter:
    """Return parameters on a leading axis.

    Matrices lie transposed in memory, as their gradients come: these would have to be copied otherwise.
    """
    stacked = torch.stack([p.detach().t() for p in parameters]).transpose(1, -1)
    return nn.Parameter(stacked, requires_grad=parameters[0].requires_grad)


def repeated(shared: Tensor, readers: list[int]) -> Tensor:
    """Return what each trial reads (T, ...) from what each group of readers reads (D, ...)."""
    return shared.repeat_interleave(torch.tensor(readers, device=shared.device), 0, output_size=sum(readers))


def take_rows(tables: Tensor, rows: Tensor) -> Tensor:
    """Return rows (T, B, C) of tables (D, N, C) by their numbers (T, B) when these stand below each other.

    Whole rows are copied, which is several times faster than to gather their elements.
    """
    return tables.flatten(0, 1).index_select(0, rows.flatten()).view(*rows.shape, -1)
