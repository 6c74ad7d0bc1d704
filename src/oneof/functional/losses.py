"""Losses of class scores: cross-entropies to candidate sets and distributions, and other general terms."""

from math import inf

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from oneof.functional.common import members, posterior_and_entropy


def candidate_nll(logits: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log-probability that the label is a candidate: ``-log sum_{j in S} softmax(logits)_j``.

    With weights pi of the candidates it is ``-log sum_{j in S} pi_j softmax(logits)_j``. Computed as in EM, with
    the posterior r on the candidates as a constant: value and gradient are the same, but there are no second
    derivatives.
    """
    r, entropy = posterior_and_entropy(logits.detach(), candidates)
    return soft_cross_entropy(logits, r) - entropy


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy to a distribution (or any weights): ``-sum_j target_j log softmax(logits)_j``."""
    return -(target * logits.log_softmax(-1)).sum(-1)


def bernoulli_nll(logits: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Weighted binary cross-entropy, summed over labels.

    ``-sum_j [positive_j log sigmoid(logits_j) + negative_j log(1 - sigmoid(logits_j))]``.
    """
    log_z = logsigmoid(logits)  # and log(1 - z) = log z - logits
    return (negative * logits - (positive + negative) * log_z).sum(-1)


def complementary_nll(logits: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log-probabilities that non-candidates are wrong: ``-sum_{j not in S} log(1 - softmax(logits)_j)``.

    For the most likely label, whose probability may round to one, ``log(1 - p)`` is taken from the other labels.
    """
    inside = members(candidates)
    log_p = logits.log_softmax(-1)
    top = torch.zeros_like(inside).scatter(-1, logits.argmax(-1, keepdim=True), True)
    others = logits.masked_fill(top, -inf).logsumexp(-1, keepdim=True)
    log_not_top = others - logits.logsumexp(-1, keepdim=True)
    log_not = torch.where(top, log_not_top, torch.log1p(-log_p.masked_fill(top, -1.0).exp()))
    return -log_not.masked_fill(inside, 0.0).sum(-1)


def leveraged_sigmoid(logits: Tensor, candidates: Tensor, weights: Tensor, beta0: float, beta: float) -> Tensor:
    """LWS: ``beta0 sum_{j in S} w_j sigmoid(-logits_j) + beta sum_{j not in S} w_j sigmoid(logits_j)``."""
    pushed = torch.where(members(candidates), beta0 * (-logits).sigmoid(), beta * logits.sigmoid())
    return (weights * pushed).sum(-1)


def dirichlet_kl(alpha: Tensor) -> Tensor:
    """Divergence KL(Dir(alpha) || Dir(1)) from the flat Dirichlet distribution."""
    total = alpha.sum(-1)
    constants = total.lgamma() - alpha.lgamma().sum(-1) - torch.full_like(total, alpha.shape[-1]).lgamma()
    return constants + ((alpha - 1) * (alpha.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


def mean(losses: list[Tensor]) -> Tensor:
    """The mean of several losses of the same examples, such as those of their views."""
    return losses[0] if len(losses) == 1 else torch.stack(losses).mean(0)
