"""Views: several versions of each example, every one with its own random draw, on any device.

``VIEWS`` maps a name to a function ``x -> [x_0, x_1, ...]``. The first view is the one that label tables follow.
"""

from collections.abc import Callable

import torch
from torch import Tensor

JITTER = 0.1


def jitter(x: Tensor) -> list[Tensor]:
    """The rows as they are, and two copies with Gaussian noise on their standardised features."""
    return [x, *(x + JITTER * torch.randn_like(x) for _ in range(2))]


VIEWS: dict[str, Callable[[Tensor], list[Tensor]]] = {"jitter": jitter}
