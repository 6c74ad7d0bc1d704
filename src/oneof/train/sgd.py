"""Stochastic gradient descent without the compiler that torch's own class brings along: 75 MB for each process."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.sgd import sgd


class SGD:
    """torch's SGD with momentum and weight decay, to the bit: it calls the same function."""

    def __init__(self, groups: Iterable[Mapping[str, Any]], lr: float, momentum: float) -> None:
        usual = {"lr": lr, "momentum": momentum, "weight_decay": 0.0}
        self.param_groups: list[dict[str, Any]] = [{**usual, **group} for group in groups]
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            reached = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not reached:
                continue
            buffers = [self.state[parameter].get("momentum_buffer") for parameter in reached]
            sgd(
                reached,
                [parameter.grad for parameter in reached],
                buffers,
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )
            if group["momentum"]:
                for parameter, buffer in zip(reached, buffers, strict=True):
                    self.state[parameter]["momentum_buffer"] = buffer


class SGDByStep(SGD):
    """The same with learning rates that are tensors (): they may change from one recorded step to the next."""

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient, in a few kernels."""
        for group in self.param_groups:
            reached = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not reached:
                continue
            gradients = [parameter.grad for parameter in reached]
            change = [*torch._foreach_add(gradients, reached, alpha=group["weight_decay"])]  # noqa: SLF001
            if group["momentum"]:
                change = self._with_momentum(reached, change, group["momentum"])
            torch._foreach_sub_(reached, torch._foreach_mul(change, group["lr"]))  # noqa: SLF001

    def _with_momentum(self, parameters: list[Tensor], change: list[Tensor], momentum: float) -> list[Tensor]:
        states = [self.state[parameter] for parameter in parameters]
        for state, first in zip(states, change, strict=True):
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(first)
        buffers = [state["momentum_buffer"] for state in states]
        torch._foreach_mul_(buffers, momentum)
        torch._foreach_add_(buffers, change)
        return buffers
