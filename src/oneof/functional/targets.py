"""Label distributions on the candidates, which serve as targets of a loss."""

import torch
from torch import Tensor

from oneof.functional.common import indicator, mask_non_candidates


def uniform(candidates: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """The distribution ``1/|S|`` on the candidates, zero elsewhere; of weights pi, ``pi_j / sum_k pi_k``."""
    dtype = dtype or torch.get_default_dtype()
    mass = indicator(candidates, dtype) if candidates.dtype == torch.bool else candidates.to(dtype).clamp_min(0)
    return mass / mass.sum(-1, keepdim=True)


def posterior(logits: Tensor, candidates: Tensor) -> Tensor:
    """``p_j ~ pi_j softmax(logits)_j``: the softmax restricted to the candidates, exactly zero elsewhere."""
    return mask_non_candidates(logits, candidates).softmax(-1)


def class_activation(logits: Tensor, candidates: Tensor) -> Tensor:
    """CAVL: one-hot at the candidate of the largest class activation value ``|1 - u_j| u_j``."""
    value = mask_non_candidates((1 - logits).abs() * logits, candidates)
    return torch.zeros_like(logits).scatter(-1, value.argmax(-1, keepdim=True), 1.0)
