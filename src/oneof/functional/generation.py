"""IDGP: theta and z from network outputs, and the likelihood and prior of a candidate set (Eq. 4 to 11).

Sums are in place where possible: allocating memory for a large tensor takes several times as long as the sum.
"""

from math import inf, log, log1p

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from oneof.functional.common import (
    indicator,
    mask_non_candidates,
    members,
    possible,
    posterior_and_log,
)
from oneof.functional.targets import posterior

# --- From network outputs to theta and z (Eq. 8 and 9) ----------------------------------------------------


def label_scores(u: Tensor, a: float, b: float, gamma: float, candidates: Tensor | None = None) -> Tensor:
    """Class scores l of Eq. 8, so that ``theta = softmax(l)``.

    ``l_j = log(lambda_j + o_j)`` with the Dirichlet parameters ``lambda_j = a exp(u_j / gamma) + b``. Without
    ``candidates`` the counts o are zero, as for an example whose candidate set is unknown.
    """
    return _log_concentration(u, a, b, gamma, candidates)


def distractor_logits(
    v_alpha: Tensor, v_beta: Tensor, a: float, b: float, gamma: float, candidates: Tensor | None = None
) -> Tensor:
    """Distractor logits s of Eq. 9, so that ``z = sigmoid(s)``.

    ``s_j = log(alpha_j + o_j) - log(beta_j)`` with the Beta parameters ``alpha_j = a exp(v_alpha_j / gamma) + b``
    and ``beta_j = a exp(v_beta_j / gamma) + b``.
    """
    log_alpha = _log_concentration(v_alpha, a, b, gamma, candidates)
    return log_alpha.sub_(_log_concentration(v_beta, a, b, gamma))


def _log_concentration(v: Tensor, a: float, b: float, gamma: float, counts: Tensor | None = None) -> Tensor:
    """``log(a exp(v / gamma) + b + counts)``, in a tensor of its own."""
    v = _log_scaled(v, a, gamma)
    if counts is None:
        return _log_plus(v, b)
    if b == 0:
        return torch.where(members(counts), _log_one_plus_exp(v), v)
    log_c = indicator(counts, v.dtype).mul_(log1p(1 / b)).add_(log(b))  # log(b + counts)
    return _log_one_plus_exp(v - log_c).add_(log_c)


def _log_scaled(v: Tensor, a: float, gamma: float) -> Tensor:
    """``log(a exp(v / gamma))``, in a tensor of its own."""
    return (v / gamma).add_(log(a))


def _log_plus(v: Tensor, c: float) -> Tensor:
    """``log(exp(v) + c)`` for c >= 0, overwriting v; with c = 0 it is v, as log(0) would spoil the gradient."""
    if c in (0, 1):
        return _log_one_plus_exp(v) if c else v
    return _log_one_plus_exp(v.sub_(log(c))).add_(log(c))


def _log_one_plus_exp(v: Tensor) -> Tensor:
    """``log(1 + exp(v))``; by default torch returns v above 20, which is not exact in double precision."""
    return softplus(v, threshold=40)


# --- The likelihood of a candidate set (Eq. 4) ------------------------------------------------------------


def generation_nll(scores: Tensor, distractors: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log-likelihood of the candidate set under the generation process (Eq. 4), in O(K).

    ``-log sum_{j in S} theta_j prod_{k in S, k != j} z_k prod_{k not in S or k = j} (1 - z_k)`` for l =
    ``scores`` and s = ``distractors``; with weights of the candidates, term j counts pi_j times. A label j
    outside S that has a weight adds ``pi_j theta_j`` times the mean over m in S of the likelihood with m in its
    place.
    Computed as in EM, with the responsibilities r as constants: value and gradient are the same, but there are no
    second derivatives: ``-sum_j [r_j log theta_j + (o_j - r_j) log z_j +
    (1 - o_j + r_j) log(1 - z_j)] - H(r)``.
    """
    r, wrong, log_r, replaced = _explained(scores.detach(), distractors.detach(), candidates)
    nll = prior_nll(scores, distractors, r, wrong, 1 - wrong) + (r * log_r).sum(-1)
    return nll if replaced is None else nll + replaced.sum(-1)


def responsibilities(scores: Tensor, distractors: Tensor, candidates: Tensor) -> Tensor:
    """Posterior r that label j is the correct one: ``r_j ~ pi_j theta_j (1 - z_j) / z_j`` on S.

    Of labels outside that have a weight, ``r_j ~ pi_j theta_j`` times the mean of ``(1 - z_m) / z_m`` over m in S.
    """
    return posterior(scores + _log_place(distractors, candidates), candidates)


def _log_place(distractors: Tensor, candidates: Tensor) -> Tensor:
    """``log((1 - z_j) / z_j)``: what a likelihood gains when j needs no z; outside S, the mean of this over S."""
    if candidates.dtype == torch.bool:
        return -distractors
    inside = members(candidates)
    mean = (-distractors).masked_fill(~inside, -inf).logsumexp(-1, keepdim=True)
    return torch.where(inside, -distractors, mean - inside.sum(-1, keepdim=True).to(mean).log())


def _explained(
    l: Tensor,  # noqa: E741
    s: Tensor,
    candidates: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Responsibilities r, how likely each label is to be drawn by z, and ``log(r / pi)``.

    Where the truth is outside, one of S is in its place, m with the chance ``rho_m ~ (1 - z_m) / z_m``: last comes
    what this choice adds to the loss, ``rho_m log(|S| rho_m)`` times the chance of outside; None for plain sets.
    """
    r, log_r = posterior_and_log(l + _log_place(s, candidates), candidates)
    o = indicator(candidates, r.dtype)
    if candidates.dtype == torch.bool:
        return r, o.sub(r), log_r, None
    rho = posterior(-s, members(candidates))
    outside = (r * (1 - o)).sum(-1, keepdim=True)
    chosen = torch.xlogy(rho, rho * o.sum(-1, keepdim=True))
    return r, o * (1 - r - outside * rho), log_r, outside * chosen


# --- The prior (Eq. 6, 10 and 11) -------------------------------------------------------------------------


def prior_nll(scores: Tensor, distractors: Tensor, weights: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """The prior term of Eq. 6 for constant weights.

    ``-sum_j [w_j log theta_j + A_j log z_j + B_j log(1 - z_j)]`` with w = lambda-hat - 1 = ``weights``, A =
    alpha-hat - 1 = ``positive`` and B = beta-hat - 1 = ``negative``.
    """
    return _prior_terms(scores, distractors, weights, positive, negative).sum(-1)


def _prior_terms(
    scores: Tensor, distractors: Tensor, weights: Tensor, positive: Tensor, negative: Tensor
) -> Tensor:
    log_theta, log_z = scores.log_softmax(-1), logsigmoid(distractors)  # and log(1 - z) = log z - distractors
    terms = torch.addcmul(negative * distractors, positive + negative, log_z, value=-1)
    return terms.addcmul_(weights, log_theta, value=-1)


def map_nll(
    scores: Tensor,
    distractors: Tensor,
    candidates: Tensor,
    likelihood_weight: float | Tensor,
    weights: Tensor,
    positive: Tensor,
    negative: Tensor,
) -> Tensor:
    """``likelihood_weight * generation_nll + prior_nll``, in one pass: cross-entropies whose targets add up.

    The weight is a number, or a tensor (..., 1, 1) of one for each trial.
    """
    r, wrong, log_r, replaced = _explained(scores.detach(), distractors.detach(), candidates)
    r = r * likelihood_weight
    wrong = wrong.mul_(likelihood_weight)
    weights = weights + r
    positive = positive + wrong
    negative = wrong.neg_().add_(likelihood_weight).add_(negative)
    terms = _prior_terms(scores, distractors, weights, positive, negative)
    terms.addcmul_(r, log_r)  # minus the entropy, as generation_nll has it
    return (terms if replaced is None else terms.add_(replaced * likelihood_weight)).sum(-1)


def log_prior_weight(v: Tensor, a: float, b: float, gamma: float) -> Tensor:
    """``log(a exp(v / gamma) + b - 1)``: the log of a concentration minus one; -inf where that is negative."""
    return log_less(log_excess(v, a, b, gamma), 1 - b)


def log_excess(v: Tensor, a: float, b: float, gamma: float) -> Tensor:
    """``log(lambda - min(b, 1))`` of lambda = a exp(v / gamma) + b, which is never negative: what is mixed."""
    return _log_plus(_log_scaled(v, a, gamma), max(b - 1, 0))


def log_less(v: Tensor, c: float) -> Tensor:
    """``log(exp(v) - c)``, -inf where that is negative; v itself for c <= 0."""
    if c <= 0:
        return v
    shortfall = log(c) - v
    return torch.where(shortfall < 0, v + torch.log1p(-shortfall.clamp(max=0.0).exp()), -inf)


def log_mix(first: Tensor, second: Tensor, share: float) -> Tensor:
    """``log(share exp(first) + (1 - share) exp(second))``: the mixing of Eq. 10 and 11."""
    if share in (0, 1):
        return first if share else second
    offset = log1p(-share) - log(share)
    return torch.logaddexp(first, second + offset if offset else second).add_(log(share))


def dirichlet_weights(log_weights: Tensor, candidates: Tensor, eps: float = 0.0) -> Tensor:
    """Weights lambda-hat - 1 of Eq. 10 (times pi) scaled to sum to one: w where pi is not 0, ``eps`` elsewhere.

    Without scaling they would grow like exp(u / gamma), and the steps of confident examples with them. A row whose
    weights are all zero stays zero.
    """
    if eps > 0:
        inside = mask_non_candidates(log_weights, candidates)
        return torch.where(possible(candidates), inside, log(eps)).softmax(-1).nan_to_num_(0.0)
    return posterior(log_weights, candidates).nan_to_num_(0.0).mul_(possible(candidates).to(log_weights.dtype))


def beta_weights(log_positive: Tensor, log_negative: Tensor) -> tuple[Tensor, Tensor]:
    """Weights alpha-hat - 1 and beta-hat - 1 of Eq. 11, scaled so that the two of a label sum to one."""
    share = (log_positive - log_negative).sigmoid_()
    rest = 1 - share
    return share.nan_to_num_(0.0), rest.nan_to_num_(0.0)
