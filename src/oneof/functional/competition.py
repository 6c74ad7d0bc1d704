"""Competition: the likelihood of a candidate set when wrong labels compete for a few further guesses."""

from math import inf

import torch
from torch import Tensor

from oneof.functional.common import indicator

_LEAST_SCORE = -60.0  # of a label below the best one: its share stays a positive number in single precision
_LARGEST_AFFINITY = 20.0
_TINY = 1e-30


def guess_log_likelihood(
    scores: Tensor,
    candidates: Tensor,
    affinity: Tensor,
    log_rate: Tensor,
    largest: int | None = None,
    outside: bool = False,
) -> Tensor:
    """``log P(S | y = j)`` (..., B, K) for every j, when an annotator names the truth and guesses further.

    Given y = j there are Poisson(M) guesses, each a wrong label k with the chance ``p_jk = softmax_{k != j}(a_k +
    C_jk)``; S is {j} and all that was guessed. So label k is guessed with the chance ``c_jk = 1 - exp(-M p_jk)``,
    independently of the others, and ::

        log P(S | y = j) = sum_{k in S, k != j} log c_jk - M sum_{k not in S} p_jk

    Parameters
    ----------
    scores : tensor of shape (..., B, K)
        a.
    candidates : tensor of shape (..., B, K)
        S, of whose weights nothing but their sign counts.
    affinity : tensor of shape (..., K, K) or (..., 1, K)
        C, or one row of it that serves for every j.
    log_rate : tensor of shape (..., 1, 1)
        log M.
    largest : int, optional
        No set has more labels than this. Pairs of candidates are then computed for so many labels alone, and the
        result is 0 elsewhere: without it a row takes O(K^2) memory, with it O(K + largest^2).
    outside : bool, default=False
        Whether the truth may be outside S. For such a j one label m of S is then in the place of the truth: the
        result is the mean over m of ``P(S | y = j)`` with j in the place of m. With ``largest`` a row takes
        O(K largest).
    """
    K = scores.shape[-1]
    e = (scores - scores.amax(-1, keepdim=True).detach()).clamp_min(_LEAST_SCORE).exp()
    odds = affinity.clamp(-_LARGEST_AFFINITY, _LARGEST_AFFINITY).exp()
    o = indicator(candidates, e.dtype)
    E: Tensor | None = None  # (..., K, K), where pairs of labels differ
    if affinity.shape[-2] < K:
        e = e * odds
        total, missing = _sum_of_others(e), (e * (1 - o)).sum(-1, keepdim=True)
        missing = (missing - e * (1 - o)).clamp_min(0) if outside else missing  # j itself is no guess
    else:
        E = odds * _not_itself(odds, K)
        total, missing = e @ E.mT, (e * (1 - o)) @ E.mT
    # (..., B, j): what turns e_k E_jk into M p_jk; in log space, since the gradient of 1 / total can overflow.
    per_share = (log_rate - total.clamp_min(_TINY).log()).exp()
    unnamed = -per_share * missing
    if largest is None or largest >= K:
        pairs = per_share.unsqueeze(-1) * e.unsqueeze(-2)  # (..., B, j, k)
        pairs = pairs if E is None else pairs * E.unsqueeze(-3)
        found = unnamed + _log_named(pairs, o)
        return found + (1 - o) * _log_swapped(pairs, o) if outside else found
    inside, member = o.topk(largest, sorted=False)  # each (..., B, largest)
    inside, member = (part.expand(*e.shape[:-1], largest) for part in (inside, member))  # views share their sets
    of_member = e.gather(-1, member).unsqueeze(-2)
    pairs = per_share.gather(-1, member).unsqueeze(-1) * of_member
    pairs = pairs if E is None else pairs * _entries(E, member)
    found = unnamed.gather(-1, member) + _log_named(pairs, inside)
    on_S = torch.zeros_like(per_share).scatter(-1, member, found * inside)
    if not outside:
        return on_S
    named = per_share.unsqueeze(-1) * of_member  # (..., B, j, largest)
    named = named if E is None else named * _columns(E, member)
    all_guessed = unnamed + (inside.unsqueeze(-2) * _log_guessed(named)).sum(-1)
    return torch.where(o > 0, on_S, all_guessed + _log_swapped(named, inside))


def _log_named(intensity: Tensor, inside: Tensor) -> Tensor:
    """``sum_{k in S, k != j} log(1 - exp(-M p_jk))``: all these were guessed at least once."""
    return (inside.unsqueeze(-2) * _not_itself(intensity, intensity.shape[-1]) * _log_guessed(intensity)).sum(-1)


def _log_guessed(intensity: Tensor) -> Tensor:
    """``log c = log(1 - exp(-M p))``."""
    return torch.log(-torch.expm1(-intensity.clamp_min(_TINY)))


def _log_swapped(intensity: Tensor, inside: Tensor) -> Tensor:
    """``log (1/|S|) sum_{m in S} (1 - c_jm) / c_jm``: one of S was not guessed, but came for the truth."""
    odds = -intensity - _log_guessed(intensity)
    odds = odds.masked_fill(inside.unsqueeze(-2) == 0, -inf)
    return odds.logsumexp(-1) - inside.sum(-1, keepdim=True).log()


def _not_itself(like: Tensor, size: int) -> Tensor:
    """A matrix of ones with zeros on its diagonal."""
    return 1 - torch.eye(size, dtype=like.dtype, device=like.device)


def _sum_of_others(e: Tensor) -> Tensor:
    """``sum_{k != j} e_k``; for the largest the others are summed, since a difference would lose their digits."""
    top = torch.zeros_like(e).scatter(-1, e.argmax(-1, keepdim=True), 1.0)
    others = (e * (1 - top)).sum(-1, keepdim=True)
    return torch.where(top > 0, others, e.sum(-1, keepdim=True) - e)


def _columns(matrix: Tensor, member: Tensor) -> Tensor:
    """Columns (..., B, K, m) of matrices (..., K, K) at the numbers (..., B, m)."""
    places = member.flatten(-2).unsqueeze(-2)  # (..., 1, B * m)
    K = matrix.shape[-1]
    taken = matrix.expand(*places.shape[:-2], K, K).gather(-1, places.expand(*places.shape[:-2], K, -1))
    return taken.view(*taken.shape[:-1], *member.shape[-2:]).movedim(-3, -2)


def _entries(matrix: Tensor, member: Tensor) -> Tensor:
    """Entries (..., B, m, m) of matrices (..., K, K) at all pairs of the numbers (..., B, m)."""
    K = matrix.shape[-1]
    places = (member.unsqueeze(-1) * K + member.unsqueeze(-2)).flatten(-3)  # (..., B * m * m)
    flat = matrix.flatten(-2).expand(*places.shape[:-1], K * K)
    return flat.gather(-1, places).view(*member.shape, member.shape[-1])
