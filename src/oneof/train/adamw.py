"""AdamW: steps of a size that the gradient's own history sets, and weight decay beside them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

_SQUARES = 0.999  # of the moving average of squared gradients
_LEAST = 1e-8  # of a root of it


class AdamW:
    """Adam with decoupled weight decay (Loshchilov & Hutter, ICLR 2019), of one trial or of a stack of trials.

    With the gradient g, in step t, from m = v = 0, and with the momentum b, c = 0.999 and decay w:
    ``m = b m + (1 - b) g``, ``v = c v + (1 - c) g^2``,
    ``theta = (1 - lr w) theta - lr (m / (1 - b^t)) / (sqrt(v / (1 - c^t)) + 1e-8)``.
    In a stack learning rates and decays are vectors over trials. Steps are counted by tensors, so that a recorded
    step counts on. A group with ``plain`` descends by SGD instead: ``m = b m + g + w theta``,
    ``theta = theta - lr m``; its decay then bounds what gradients can build up, which AdamW's does not.
    """

    def __init__(self, groups: Iterable[Mapping[str, Any]], lr: Any, momentum: float) -> None:
        self.momentum = momentum
        self.param_groups: list[dict[str, Any]] = [{"lr": lr, "weight_decay": 0.0, **group} for group in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    descend = self._descend_plainly if group.get("plain") else self._descend
                    descend(parameter, parameter.grad, group["lr"], group["weight_decay"])

    def _state_of(self, parameter: Tensor, lr: Any) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"], state["square_buffer"] = (torch.zeros_like(parameter) for _ in range(2))
            state["steps"] = parameter.new_zeros(getattr(lr, "shape", ()))
        return state

    def _descend_plainly(self, parameter: Tensor, gradient: Tensor, lr: Any, decay: Any) -> None:
        m = self._state_of(parameter, lr)["momentum_buffer"]
        lr, decay = (beside(each, parameter) for each in (lr, decay))
        m.mul_(self.momentum).add_(gradient).add_(decay * parameter)
        parameter.sub_(lr * m)

    def _descend(self, parameter: Tensor, gradient: Tensor, lr: Any, decay: Any) -> None:
        state = self._state_of(parameter, lr)
        m, v = state["momentum_buffer"], state["square_buffer"]
        state["steps"] += 1
        lr, decay, steps = (beside(each, parameter) for each in (lr, decay, state["steps"]))
        m.lerp_(gradient, 1 - self.momentum)
        v.mul_(_SQUARES).addcmul_(gradient, gradient, value=1 - _SQUARES)
        root = (v / (1 - _SQUARES**steps)).sqrt_().add_(_LEAST)
        parameter.mul_(1 - lr * decay).sub_(lr / (1 - self.momentum**steps) * m / root)


def beside(value: Any, parameter: Tensor) -> Any:
    """Give a vector over trials as many axes as a parameter; leave a number as it is."""
    if not isinstance(value, Tensor) or not value.dim():
        return value
    return value.view(-1, *[1] * (parameter.dim() - 1))
