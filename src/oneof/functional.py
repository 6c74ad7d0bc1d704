"""The formula sheet: losses and label updates as pure functions of tensors.

Every function reduces over the last axis (the K classes), accepts any axes before it, returns one value for
each example and works in log space: nothing is exponentiated on its own, no probability is multiplied or
divided. Letters are those of the IDGP paper: S the candidate set (here a boolean mask ``candidates``), o_j = 1
when j is in S, theta the Categorical and z the Bernoulli parameters, l the class scores with theta =
softmax(l), s the distractor logits with z = sigmoid(s), r the responsibilities.
"""

from math import e, log, log1p, log2

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize, one_hot, softplus

_MINUS_INFINITY = float("-inf")
_TINY = 1e-30  # instead of zero
_HUGE = 1e30  # what a non-candidate's score lacks
_ROWS_AT_ONCE = 512  # of a distance matrix, which is never whole


def candidate_nll(logits: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log-probability that the label is a candidate: ``-log sum_{j in S} softmax(logits)_j``.

    Written, as EM does, with its posterior r as a constant: the same value and gradient, no second derivatives.
    """
    r, entropy = _with_entropy(logits.detach(), candidates)
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


def posterior(logits: Tensor, candidates: Tensor) -> Tensor:
    """Softmax restricted to the candidates: a distribution on S, exactly zero elsewhere."""
    return _among(candidates, logits).softmax(-1)


def complementary_nll(logits: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log-chances that the non-candidates are wrong: ``-sum_{j not in S} log(1 - softmax(logits)_j)``.

    For the most likely label, whose probability may round to one, ``log(1 - p)`` is taken from the other labels.
    """
    log_p = logits.log_softmax(-1)
    top = torch.zeros_like(candidates).scatter(-1, logits.argmax(-1, keepdim=True), True)
    others = logits.masked_fill(top, _MINUS_INFINITY).logsumexp(-1, keepdim=True)
    log_not_top = others - logits.logsumexp(-1, keepdim=True)
    log_not = torch.where(top, log_not_top, torch.log1p(-log_p.masked_fill(top, -1.0).exp()))
    return -log_not.masked_fill(candidates, 0.0).sum(-1)


def leveraged_sigmoid(logits: Tensor, candidates: Tensor, weights: Tensor, beta0: float, beta: float) -> Tensor:
    """LWS: ``beta0 sum_{j in S} w_j sigmoid(-logits_j) + beta sum_{j not in S} w_j sigmoid(logits_j)``."""
    pushed = torch.where(candidates, beta0 * (-logits).sigmoid(), beta * logits.sigmoid())
    return (weights * pushed).sum(-1)


def class_activation(logits: Tensor, candidates: Tensor) -> Tensor:
    """CAVL: one-hot at the candidate of the largest class activation value ``|1 - u_j| u_j``."""
    value = _among(candidates, (1 - logits).abs() * logits)
    return torch.zeros_like(logits).scatter(-1, value.argmax(-1, keepdim=True), 1.0)


def dirichlet_kl(alpha: Tensor) -> Tensor:
    """Divergence KL(Dir(alpha) || Dir(1)) from the flat Dirichlet distribution."""
    total = alpha.sum(-1)
    constants = total.lgamma() - alpha.lgamma().sum(-1) - torch.full_like(total, alpha.shape[-1]).lgamma()
    return constants + ((alpha - 1) * (alpha.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


def uniform(candidates: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """The distribution ``1/|S|`` on the candidates, zero elsewhere."""
    mass = _indicator(candidates, dtype or torch.get_default_dtype())
    return mass / mass.sum(-1, keepdim=True)


def mean(losses: list[Tensor]) -> Tensor:
    """The mean of several losses of the same examples, such as those of their views."""
    return losses[0] if len(losses) == 1 else torch.stack(losses).mean(0)


# --- IDGP: from raw network outputs to theta and z (Eq. 8 and 9) ------------------------------------------


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


# In place where possible: a large sum elsewhere takes several times as long, since memory has to be found for it.


def _log_concentration(v: Tensor, a: float, b: float, gamma: float, counts: Tensor | None = None) -> Tensor:
    """``log(a exp(v / gamma) + b + counts)``, in a tensor of its own."""
    v = _log_scaled(v, a, gamma)
    if counts is None:
        return _log_plus(v, b)
    if b == 0:
        return torch.where(counts, _log_one_plus_exp(v), v)
    log_c = _indicator(counts, v.dtype).mul_(log1p(1 / b)).add_(log(b))  # log(b + counts)
    return _log_one_plus_exp(v - log_c).add_(log_c)


def _log_scaled(v: Tensor, a: float, gamma: float) -> Tensor:
    """``log(a exp(v / gamma))``, in a tensor of its own."""
    return (v / gamma).add_(log(a))


def _log_plus(v: Tensor, c: float) -> Tensor:
    """``log(exp(v) + c)`` for c >= 0, v being lost; with c = 0 plainly v: -inf would spoil the gradient."""
    if c in (0, 1):
        return _log_one_plus_exp(v) if c else v
    return _log_one_plus_exp(v.sub_(log(c))).add_(log(c))


def _log_one_plus_exp(v: Tensor) -> Tensor:
    """``log(1 + exp(v))``; torch would take v itself above 20, which is too early for double precision."""
    return softplus(v, threshold=40)


# --- IDGP: the likelihood of a candidate set (Eq. 4) ------------------------------------------------------


def generation_nll(scores: Tensor, distractors: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log-likelihood of the candidate set under the generation process (Eq. 4), in O(K).

    ``-log sum_{j in S} theta_j prod_{k in S, k != j} z_k prod_{k not in S or k = j} (1 - z_k)`` for l =
    ``scores`` and s = ``distractors``. Written, as EM does, with the responsibilities r as constants, which gives
    the same value and gradient, but no second derivatives: ``-sum_j [r_j log theta_j + (o_j - r_j) log z_j +
    (1 - o_j + r_j) log(1 - z_j)] - H(r)``.
    """
    r, entropy = _with_entropy(scores.detach() - distractors.detach(), candidates)  # the responsibilities
    wrong = _indicator(candidates, r.dtype) - r
    return prior_nll(scores, distractors, r, wrong, 1 - wrong) - entropy


def responsibilities(scores: Tensor, distractors: Tensor, candidates: Tensor) -> Tensor:
    """Posterior r that candidate j is the correct label: ``r_j ~ theta_j (1 - z_j) / z_j`` on S."""
    return posterior(scores - distractors, candidates)


# --- IDGP: the prior (Eq. 6, 10 and 11) -------------------------------------------------------------------


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
    likelihood_weight: float,
    weights: Tensor,
    positive: Tensor,
    negative: Tensor,
) -> Tensor:
    """``likelihood_weight * generation_nll + prior_nll``: both are cross-entropies, whose targets add up."""
    r, log_r = _with_logarithm(scores.detach() - distractors.detach(), candidates)  # the responsibilities
    weights = weights.add(r, alpha=likelihood_weight)
    wrong = _indicator(candidates, r.dtype).sub(r).mul_(likelihood_weight)
    positive = positive + wrong
    negative = wrong.neg_().add_(likelihood_weight).add_(negative)
    terms = _prior_terms(scores, distractors, weights, positive, negative)
    return terms.addcmul_(r, log_r, value=likelihood_weight).sum(-1)  # minus the entropy, as generation_nll has it


def log_prior_weight(v: Tensor, a: float, b: float, gamma: float) -> Tensor:
    """``log(a exp(v / gamma) + b - 1)``: the log of a concentration minus one, minus infinity where negative."""
    v = _log_scaled(v, a, gamma)
    if b >= 1:
        return _log_plus(v, b - 1)
    excess = log(1 - b) - v
    return torch.where(excess < 0, v + torch.log1p(-excess.clamp(max=0.0).exp()), _MINUS_INFINITY)


def log_mix(first: Tensor, second: Tensor, share: float) -> Tensor:
    """``log(share exp(first) + (1 - share) exp(second))``: the mixing of Eq. 10 and 11."""
    if share in (0, 1):
        return first if share else second
    offset = log1p(-share) - log(share)
    return torch.logaddexp(first, second + offset if offset else second).add_(log(share))


def dirichlet_weights(log_weights: Tensor, candidates: Tensor, eps: float = 0.0) -> Tensor:
    """Weights lambda-hat - 1 of Eq. 10 scaled to sum to one: w on the candidates, ``eps`` elsewhere.

    Unscaled they grow like exp(u / gamma) and confident examples take exponentially larger steps. A row whose
    weights are all zero stays zero.
    """
    if eps > 0:
        return torch.where(candidates, log_weights, log(eps)).softmax(-1).nan_to_num_(0.0)
    return posterior(log_weights, candidates).nan_to_num_(0.0).mul_(_indicator(candidates, log_weights.dtype))


def beta_weights(log_positive: Tensor, log_negative: Tensor) -> tuple[Tensor, Tensor]:
    """Weights alpha-hat - 1 and beta-hat - 1 of Eq. 11, scaled so that the two of a label sum to one."""
    share = (log_positive - log_negative).sigmoid_()
    rest = 1 - share
    return share.nan_to_num_(0.0), rest.nan_to_num_(0.0)


# --- Membership: what is merely frequent ------------------------------------------------------------------


def midpoints(moments: Tensor) -> Tensor:
    """Return c (..., K): halfway between the mean of s_j where label j is true and where it is a wrong candidate.

    ``moments`` (..., 4, K) are, for each label, the sums of 1 and s over rows in which it is the true label, then
    over rows in which it is a wrong candidate. Means of rare labels are drawn to those of all labels, as if by a
    twentieth of an average label's rows.
    """
    true, wrong = moments.chunk(2, -2)
    count, total = torch.stack([true, wrong], -2).unbind(-3)  # each (..., 2, K)
    prior = count.sum((-2, -1), keepdim=True) / (20 * count.shape[-1])
    overall = total.sum(-1, keepdim=True) / count.sum(-1, keepdim=True).clamp_min(_TINY)
    mean = (total + prior * overall) / (count + prior).clamp_min(_TINY)
    return mean.mean(-2)


# --- PiCO: embeddings of unit length ----------------------------------------------------------------------


def instance_contrast(q: Tensor, k: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """InfoNCE: each q (..., B, E) against its own k, with the queue (..., Q, E) as the others."""
    logits = torch.cat([(q * k).sum(-1, keepdim=True), q @ queue.mT], -1) / temperature
    return -logits.log_softmax(-1)[..., 0]


def label_contrast(
    q: Tensor, k: Tensor, queue: Tensor, labels: Tensor, queue_labels: Tensor, temperature: float
) -> Tensor:
    """Minus the mean log-probability that q_i picks an embedding with its label, itself left out."""
    everything = torch.cat([q, k, queue], -2)
    every_label = torch.cat([labels, labels, queue_labels], -1)
    itself = torch.eye(q.shape[-2], everything.shape[-2], dtype=torch.bool, device=q.device)
    logits = (q @ everything.mT / temperature).masked_fill(itself, _MINUS_INFINITY)
    positive = (labels.unsqueeze(-1) == every_label.unsqueeze(-2)) & ~itself
    log_p = logits.log_softmax(-1).masked_fill(~positive, 0.0)
    return -log_p.sum(-1) / positive.sum(-1)


def moved_prototypes(prototypes: Tensor, q: Tensor, labels: Tensor, momentum: float) -> Tensor:
    """Prototypes (..., K, E) after each sample in turn has moved that of its class, in closed form.

    With m samples q_1..q_m of a class in order: ``P <- p^m P + (1 - p) sum_i p^(m - i) q_i``, then unit length.
    """
    member = one_hot(labels, prototypes.shape[-2]).to(q.dtype)  # (..., B, K)
    later = (member.flip(-2).cumsum(-2).flip(-2) - member) * member  # same-class samples still to come
    weight = (1 - momentum) * momentum**later * member
    kept = momentum ** member.sum(-2).unsqueeze(-1)  # (..., K, 1)
    return normalize(kept * prototypes + weight.mT @ q, dim=-1)


# --- VALEN: the graph of neighbours -----------------------------------------------------------------------


def nearest_neighbours(x: Tensor, k: int) -> Tensor:
    """Numbers (..., N, k) of the k nearest other rows of x (..., N, F)."""
    rows = torch.arange(x.shape[-2], device=x.device)
    found = []
    for block in torch.split(rows, _ROWS_AT_ONCE):
        distance = torch.cdist(x[..., block, :], x)  # (..., block, N)
        found.append(distance.masked_fill(block[:, None] == rows, -_MINUS_INFINITY).topk(k, largest=False).indices)
    return torch.cat(found, -2)


def adjacency(neighbours: Tensor, index: Tensor) -> Tensor:
    """Block (..., B, B) of the row-normalised graph: 1/(k + 1) for a row and its k neighbours."""
    linked = (neighbours.unsqueeze(-1) == index[..., None, None, :]).any(-2)  # (..., B, B)
    itself = torch.eye(index.shape[-1], dtype=torch.bool, device=index.device)
    return (linked | itself) / (neighbours.shape[-1] + 1)


def _with_entropy(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return `posterior` and its entropy ``-sum_j p_j log p_j``."""
    p, log_p = _with_logarithm(logits, candidates)
    return p, -(p * log_p).sum(-1)


def _with_logarithm(logits: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return `posterior` and its logarithm, which is finite also where the posterior is zero."""
    log_p = _among(candidates, logits).log_softmax(-1)
    return (log_p * log2(e)).exp2_(), log_p  # on a CPU a third of the time of exp


def _among(candidates: Tensor, values: Tensor) -> Tensor:
    """``values``, next to minus infinity at the non-candidates."""
    outside = _indicator(candidates, values.dtype).sub_(1)
    return values.add(outside, alpha=_HUGE)  # on a CPU a tenth of the time of masked_fill


def _indicator(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """o: one where the mask holds, else zero. From bytes, which a CPU converts seven times faster than truths."""
    return mask.view(torch.uint8).to(dtype)
