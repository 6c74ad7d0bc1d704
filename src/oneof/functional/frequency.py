"""Corrections for labels that are in many candidate sets only because they are frequent."""

import torch
from torch import Tensor

_TINY = 1e-30  # instead of zero in a divisor


def midpoints(moments: Tensor) -> Tensor:
    """Return c (..., K): halfway between the mean of s_j where label j is true and where it is a wrong candidate.

    ``moments`` (..., 4, K) are, for each label, the sums of 1 and s over rows in which it is the true label, then
    over rows in which it is a wrong candidate. Means of rare labels are shrunk towards the mean of all labels,
    which counts as much as a twentieth of an average label's rows.
    """
    true, wrong = moments.chunk(2, -2)
    count, total = torch.stack([true, wrong], -2).unbind(-3)  # each (..., 2, K)
    prior = count.sum((-2, -1), keepdim=True) / (20 * count.shape[-1])
    overall = total.sum(-1, keepdim=True) / count.sum(-1, keepdim=True).clamp_min(_TINY)
    mean = (total + prior * overall) / (count + prior).clamp_min(_TINY)
    return mean.mean(-2)
