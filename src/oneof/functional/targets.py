"""Label distributions on the candidates, which serve as targets of a loss."""

import torch
from torch import Tensor

from oneof.functional.common import indicator, mask_non_candidates


def uniform(candidates: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """The distribution ``1/|S|`` on the candidates, zero elsewhere."""
    mass = indicator(candidates, dtype or torch.get_default_dtype())
    return mass / mass.sum(-1, keepdim=True)


def posterior(logits: Tensor, candidates: Tensor) -> Tensor:
    """Softmax restricted to the candidates: a distribution on S, exactly zero elsewhere."""
    return mask_non_candidates(logits, candidates).softmax(-1)


def class_activation(logits: Tensor, candidates: Tensor) -> Tensor:
    """CAVL: one-hot at the candidate of the largest class activation value ``|1 - u_j| u_j``."""
    value = mask_non_candidates((1 - logits).abs() * logits, candidates)
    return torch.zeros_like(logits).scatter(-1, value.argmax(-1, keepdim=True), 1.0)
