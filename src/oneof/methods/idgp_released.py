"""The objective of the code that the authors of IDGP released (palm-ml/idgp), which is not that of their paper.

Names are those of the released code: d and bm are the targets of f and g, U and s their outputs divided by the
temperatures, o the candidate sets.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from oneof import functional as F
from oneof.errors import InputError
from oneof.train.batch import Batch, Data

if TYPE_CHECKING:
    from oneof.methods.idgp import IDGP

_RAMP = 100  # epochs until the consistency with the targets counts in full


def released_membership(method: "IDGP", data: Data) -> Tensor:
    """Return the table bm (N, K); refuse what the released code has no place for."""
    if method.outside != 0:
        raise InputError("objective='released' has no place for outside; use objective='map' or outside=0")
    if data.weighted:
        raise InputError(
            "objective='released' has no place for weights of candidates; use objective='map', or pass "
            "y.candidates, by which all candidates are alike"
        )
    return data.indicator()


def released_losses(method: "IDGP", batch: Batch) -> Tensor:
    """Return L_F + L_G (..., B), summed over views; refresh d (``w_``) and bm (``membership_``).

    There is a warm-up of f alone, then one of g alone.
    """
    o = batch.candidates
    d, bm = batch.take(method.w_), batch.take(method.membership_)
    u, v = batch.forward_pair(method.network_, method.distractor_network_)
    U, s = [each / method.temperature_f for each in u], [each / method.temperature_g for each in v]
    prior_f = _total([F.soft_cross_entropy(each, d) for each in U])
    prior_g = _total([F.bernoulli_nll(each, bm, 1 - bm) for each in s])
    first, second = batch.before(method.warm_up), batch.before(2 * method.warm_up)
    if first or not second:
        batch.put(method.w_, F.posterior(U[0], o))
    if not first:
        batch.put(method.membership_, o * s[0].sigmoid())
    if second:
        return prior_f if first else prior_g
    weights = method.weight_fg, method.weight_gf
    coupled = _total([coupling(*view, d, o, *weights) for view in zip(U, s, strict=True)])
    loss = method.weight_f * prior_f + method.weight_g * prior_g + coupled
    if method.consistency == "views" and len(batch.views) == 1:
        return loss
    ramp = batch.ramp(_RAMP, since=2 * method.warm_up) * method.weight_consistency
    return loss + ramp * _total([_consistency(*view, d, bm) for view in zip(u, v, strict=True)])


def coupling(U: Tensor, s: Tensor, d: Tensor, o: Tensor, weight_fg: float, weight_gf: float) -> Tensor:
    """Return the terms in which each network weighs the labels of the other: L_fg and L_gf."""
    pseudo_label = torch.zeros_like(o).scatter(-1, d.masked_fill(~o, -1).argmax(-1, keepdim=True), True)
    s_constant = s.detach()
    q = F.posterior(torch.where(pseudo_label, s_constant, -s_constant), o)
    p = F.posterior(U.detach(), o)
    from_g = F.soft_cross_entropy(U, q)
    from_f = F.bernoulli_nll(s, o.to(s.dtype), p + (~o).to(s.dtype))
    return weight_fg * from_g + weight_gf * from_f


def _consistency(u: Tensor, v: Tensor, d: Tensor, bm: Tensor) -> Tensor:
    """KL(d || softmax(u)) and the positive part of KL(bm || sigmoid(v)), both without temperature."""
    entropy = torch.special.entr(d).sum(-1) + torch.special.entr(bm).sum(-1)
    divergence: Tensor = F.soft_cross_entropy(u, d) + F.bernoulli_nll(v, bm, torch.zeros_like(bm)) - entropy
    return divergence


def _total(losses: list[Tensor]) -> Tensor:
    """The sum over views."""
    return torch.stack(losses).sum(0)
