"""The truth outside the candidate set: how much labels weigh that are no candidates.

With the chance eps the truth was swapped for any label outside the set. When wrong labels come uniformly, a label
j outside S is then ``P(S | y = j) / P(S | y = k) = eps / (1 - eps) |S| / (K - |S|)`` times as likely as a
candidate k.
"""

import torch
from torch import Tensor

from oneof.functional.common import indicator, members

_TINY = 1e-30
_LARGEST = 40.0  # of log scales
_HALVINGS = 40


def outside_weights(candidates: Tensor, dtype: torch.dtype, rule: str = "share") -> Tensor:
    """Weights (..., K) by which labels outside S are as likely as those of S, when nothing is known of x.

    On S they are pi, and 1 on plain sets. Off S they are ``-sum_S pi / (K - |S|)``: the sign says that these
    labels are no candidates, see `oneof.functional.common`. By the rule "alim" they are ``-max_S pi``: any other
    label is as likely as the likeliest candidate.
    """
    o = indicator(candidates, dtype)
    pi = o if candidates.dtype == torch.bool else candidates.to(dtype) * o
    if rule == "alim":
        return pi - (1 - o) * pi.amax(-1, keepdim=True)
    others = (1 - o).sum(-1, keepdim=True).clamp_min(1)
    return pi - (1 - o) * pi.sum(-1, keepdim=True) / others


def scale_outside(weights: Tensor, scale: Tensor) -> Tensor:
    """`outside_weights` with those off S times a scale; 0 leaves plain sets."""
    return torch.where(weights < 0, weights * scale.to(weights), weights)


def outside_scale(posterior: Tensor, weights: Tensor, rate: Tensor) -> Tensor:
    """Return the scale (..., 1, 1) by which a share ``rate`` (..., 1, 1) of all probability is outside the sets.

    ``posterior`` (..., B, K) is that of the scale 1. ``eps / (1 - eps)`` is the scale of calibrated probabilities;
    a network that knows its rows by heart would find nothing outside by it. So the scale s is found: by
    ``mean_i s b_i / (a_i + s b_i) = eps`` for the probabilities a on S and b off S of each row.
    """
    o = indicator(weights, posterior.dtype)
    inside, outside = ((posterior * part).sum(-1).clamp_min(_TINY).log() for part in (o, 1 - o))
    odds = outside - inside  # (..., B)
    low = torch.full_like(odds[..., :1], -_LARGEST)  # (..., 1)
    high = -low
    share = rate.to(odds).flatten(-2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        less = (odds + middle).sigmoid().mean(-1, keepdim=True) < share
        low, high = torch.where(less, middle, low), torch.where(less, high, middle)
    return torch.where(share > 0, low.exp(), 0.0).unsqueeze(-1)


def alim_scale(posterior: Tensor, weights: Tensor, rate: Tensor) -> Tensor:
    """ALIM: the scale lambda (..., 1, 1) by which in a share ``rate`` of the rows the likeliest label is outside.

    ``posterior`` (..., B, K) is that of the scale 1. lambda is the value of ``max_S p / max_off p`` at place
    ``rate B`` of the rows, in ascending order, and at most 1.
    """
    inside = members(weights)
    best, other = (posterior.masked_fill(~part, 0.0).amax(-1) for part in (inside, ~inside))
    ratio = (best / other).clamp(max=1.0).sort(-1).values  # (..., B); full sets have no other label
    share = rate.to(ratio).flatten(-2)  # (..., 1)
    place = (share * ratio.shape[-1]).long().clamp(max=ratio.shape[-1] - 1)
    return torch.where(share > 0, ratio.gather(-1, place), 0.0).unsqueeze(-1)
