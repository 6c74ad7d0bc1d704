"""Stochastic gradient descent on a GPU: large parameters are updated in one pass over memory."""

from typing import Any

import torch
from torch import Tensor

from oneof.kernels.launch import THREADS, available, launch, processors

_LARGE = 2**18  # numbers from which on a kernel of its own pays


class FusedSGD(torch.optim.SGD):
    """torch's SGD with momentum and weight decay, to the bit."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all parameters that have a gradient."""
        done: list[tuple[Tensor, Tensor]] = []
        for group in self.param_groups:
            for parameter in filter(_is_large, group["params"] if group["momentum"] else []):
                done.append((parameter, parameter.grad))
                self._descend(parameter, parameter.grad, group)
                parameter.grad = None  # for torch there is nothing left to do
        super().step(closure)
        for parameter, gradient in done:
            parameter.grad = gradient

    def _descend(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if state.get("momentum_buffer") is None:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        numbers = (float(group[name]) for name in ("lr", "momentum", "weight_decay"))
        quads = parameter.numel() // 4
        blocks = min(-(-quads // THREADS), 8 * processors(parameter.device))
        launch("sgd: descend", blocks, parameter, gradient, state["momentum_buffer"], *numbers, quads)


def _is_large(parameter: Tensor) -> bool:
    """Tell whether a parameter has a gradient and is worth a kernel that can read both."""
    gradient = parameter.grad
    if gradient is None or not _LARGE <= parameter.numel() < 2**31 or parameter.numel() % 4:
        return False
    dense = parameter.is_contiguous() or parameter.is_contiguous(memory_format=torch.channels_last)
    alike = gradient.stride() == parameter.stride() and gradient.dtype == parameter.dtype == torch.float32
    aligned = parameter.data_ptr() % 16 == 0 and gradient.data_ptr() % 16 == 0
    return dense and alike and aligned and available(parameter.device)
