"""What several formulas share: the candidates as numbers, and the softmax restricted to them.

``candidates`` is a boolean mask, or weights pi: what is known of the labels beside x, up to a factor, such as the
likelihood of votes. Weights are positive on the candidate set and 0 off it, unless the truth may be outside: then
``-lambda`` off the set means a label that is no candidate and weighs lambda. Here alone these are told apart.
"""

from math import e, log2

import torch
from torch import Tensor

_HUGE = 1e30  # subtracted from the scores of non-candidates


def members(candidates: Tensor) -> Tensor:
    """The boolean mask of the candidates, whatever their weights."""
    return candidates if candidates.dtype == torch.bool else candidates > 0


def indicator(candidates: Tensor, dtype: torch.dtype) -> Tensor:
    """o: one at the candidates, else zero."""
    return members(candidates).view(torch.uint8).to(dtype)  # a CPU converts bytes seven times faster than booleans


def possible(candidates: Tensor) -> Tensor:
    """The boolean mask of the labels that can be true: the candidates, and others that have a weight."""
    return candidates if candidates.dtype == torch.bool else candidates != 0


def mask_non_candidates(values: Tensor, candidates: Tensor) -> Tensor:
    """``values + log pi``, which is about -1e30 where pi is 0: finite, but zero after a softmax."""
    if candidates.dtype != torch.bool:
        return values + _log_weights(candidates, values.dtype)
    outside = indicator(candidates, values.dtype).sub_(1)
    return values.add(outside, alpha=_HUGE)  # takes a tenth of the time of masked_fill on a CPU


def posterior_and_log(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return `posterior` p and ``log(p / pi)``, which is finite also where p is zero; pi is 1 on plain sets."""
    log_p = mask_non_candidates(logits, candidates).log_softmax(-1)
    p = (log_p * log2(e)).exp2_()  # takes a third of the time of exp on a CPU
    return p, log_p if candidates.dtype == torch.bool else log_p - _log_weights(candidates, log_p.dtype)


def posterior_and_entropy(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return `posterior` p and ``-sum_j p_j log(p_j / pi_j)``, on plain sets its entropy."""
    p, log_p = posterior_and_log(logits, candidates)
    return p, -(p * log_p).sum(-1)


def _log_weights(weights: Tensor, dtype: torch.dtype) -> Tensor:
    """Log of pi, about -1e30 where pi is 0."""
    return weights.to(dtype).abs().log().clamp_min(-_HUGE)
