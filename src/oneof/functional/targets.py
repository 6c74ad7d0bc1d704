"""Label distributions on the candidates, which serve as targets of a loss."""

from math import inf

import torch
from torch import Tensor

from oneof.functional.common import indicator, mask_non_candidates, members


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


def rectified(logits: Tensor, candidates: Tensor) -> Tensor:
    """DIRK: a distribution on all labels in which every candidate stays above every other label.

    With p = softmax(logits), a and c are p scaled to sum to one on S and off S. The result is
    ``alpha a + (1 - alpha) c`` with ``alpha = M max c / (M max c + min_S a)``, ``M = 1 / sum_S p``.
    On full sets it is a.
    """
    inside = members(candidates)
    log_a = mask_non_candidates(logits, inside).log_softmax(-1)
    log_c = mask_non_candidates(logits, ~inside).log_softmax(-1)
    log_mass = mask_non_candidates(logits.log_softmax(-1), inside).logsumexp(-1, keepdim=True)
    smallest = log_a.masked_fill(~inside, inf).amin(-1, keepdim=True)
    alpha = (log_c.amax(-1, keepdim=True) - log_mass - smallest).sigmoid()
    alpha = torch.where(inside.all(-1, keepdim=True), 1.0, alpha)
    return alpha * log_a.exp() + (1 - alpha) * log_c.exp()
