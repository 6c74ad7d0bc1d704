"""The theory of the IDGP paper (Section 4 and its appendix) as functions, with misprints corrected.

Letters are the paper's: outputs of f and g are clamped to [-A, A]; a, b and gamma turn them into the parameters of
the priors; c is the number of classes, rho the largest weight, xi the chance that the bound fails. docs/theory.md
lists the corrections and their reasons.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from oneof import functional as F
from oneof.errors import InputError
from oneof.io.arguments import as_floats
from oneof.io.words import shown


@dataclass(frozen=True)
class ParameterBounds:
    """``theta_j >= B`` and ``E <= z_j <= F`` for all clamped outputs and all candidate sets."""

    B: float
    E: float
    F: float


@dataclass(frozen=True)
class EstimationError:
    """The two terms of the bound in Theorem 1 and the quantities that they depend on.

    Attributes
    ----------
    complexity : float
        Bound on the empirical Rademacher complexity of one class's linear function.
    L : float
        Lipschitz constant of the cross-entropy ``-log theta_j`` in the outputs of f.
    M : float
        Largest possible loss.
    complexity_term : float
        ``4 sqrt(2) rho c L * (c * complexity)``.
    deviation_term : float
        ``2 M sqrt(log(2 / xi) / (2 n))``.
    """

    complexity: float
    L: float
    M: float
    complexity_term: float
    deviation_term: float

    @property
    def total(self) -> float:
        """The bound on the excess risk ``R(f-hat) - R(f*)``."""
        return self.complexity_term + self.deviation_term


# --- The largest loss -------------------------------------------------------------------------------------


def parameter_bounds(A: float, c: int, *, a: float = 1.0, b: float = 1.0, gamma: float = 1.0) -> ParameterBounds:
    """The constants B, E and F of the appendix.

    With ``low = a exp(-A / gamma) + b`` and ``high = a exp(A / gamma) + b``: ``B = low / (c (high + 1))``,
    ``E = low / (2 high + 1)`` and ``F = (high + 1) / (high + low + 1)``.
    """
    low, high = _concentrations(A, c, a, b, gamma)
    return ParameterBounds(low / (c * (high + 1)), low / (2 * high + 1), (high + 1) / (high + low + 1))


def largest_loss(
    A: float, c: int, *, rho: float | None = None, a: float = 1.0, b: float = 1.0, gamma: float = 1.0
) -> float:
    """The bound M on the loss of one example, likelihood (Eq. 4) and prior (Eq. 6) together.

    ``M = max_s -log(s B (1 - F)^(c + 1 - s) E^(s - 1)) - c rho log(B E (1 - F))`` over the sizes s = 1..c of a
    candidate set.

    Parameters
    ----------
    A, a, b, gamma : float
        Clamp of the outputs, and the scale, offset and temperature of the concentrations.
    c : int
        Number of classes.
    rho : float, optional
        Largest weight of the prior: lambda-hat - 1, alpha-hat - 1 or beta-hat - 1. By default that of unscaled
        weights, ``a exp(A / gamma) + b`` as in the paper.
    """
    low, high = _concentrations(A, c, a, b, gamma)
    if rho is None:
        rho = high
    _require(lambda rho: 0 <= rho < inf, "rho", rho, "at least 0 and finite")
    bounds = parameter_bounds(A, c, a=a, b=b, gamma=gamma)
    log_b, log_e = log(bounds.B), log(bounds.E)
    log_not_f = log(low / (high + low + 1))  # 1 - F, which rounds to zero for large A
    likelihood = max(-log(s) - log_b - (c + 1 - s) * log_not_f - (s - 1) * log_e for s in range(1, c + 1))
    return likelihood - c * rho * (log_b + log_e + log_not_f)


# --- The upper bound of Eq. 12 ----------------------------------------------------------------------------


def set_constant(distractors: Tensor, candidates: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """The part K_i of Eq. 12 that does not depend on f; never above zero if no weight is negative.

    ``K = log|S| + 1/|S| sum_{j in S} log(prod_{k in S, k != j} z_k prod_{k not in S or k = j} (1 - z_k))
    + sum_j [A_j log z_j + B_j log(1 - z_j)]``, the last sum over all labels, for z = sigmoid(``distractors``), A =
    alpha-hat - 1 = ``positive`` and B = beta-hat - 1 = ``negative``.
    """
    among = candidates.to(distractors.dtype)
    every_candidate_wrong = F.bernoulli_nll(distractors, among, 1 - among)
    correction = (F.uniform(candidates, distractors.dtype) * distractors).sum(-1)
    return (
        among.sum(-1).log() - every_candidate_wrong - correction - F.bernoulli_nll(distractors, positive, negative)
    )


def loss_upper_bound(
    scores: Tensor, distractors: Tensor, candidates: Tensor, weights: Tensor, positive: Tensor, negative: Tensor
) -> Tensor:
    """The right-hand side of Eq. 12, its sign corrected: ``-K + sum_j (w_j + o_j / |S|) (-log theta_j)``.

    It bounds ``generation_nll + prior_nll`` of `oneof.functional` from above, because the log of a mean is at
    least the mean of the logs; for a single candidate both sides are equal.
    """
    shared = weights + F.uniform(candidates, weights.dtype)
    return F.soft_cross_entropy(scores, shared) - set_constant(distractors, candidates, positive, negative)


# --- Theorem 1 --------------------------------------------------------------------------------------------


def linear_complexity(X: ArrayLike, W: float) -> float:
    """Bound on the empirical Rademacher complexity of all <w, x> with |w| <= W: ``W sqrt(sum_i |x_i|^2) / n``."""
    rows = _rows(X)
    _require(lambda W: 0 < W < inf, "W", W, "positive and finite")
    return W * float(np.linalg.norm(rows)) / len(rows)


def simulated_complexity(X: ArrayLike, W: float, draws: int = 200, seed: int = 0) -> float:
    """The same complexity, simulated: the mean of ``W |sum_i sigma_i x_i| / n`` over random signs sigma."""
    rows = _rows(X)
    _require(lambda W: 0 < W < inf, "W", W, "positive and finite")
    _require(lambda draws: draws >= 1, "draws", draws, "at least 1, a whole number", Integral)
    _require(lambda seed: seed >= 0, "seed", seed, "at least 0, a whole number", Integral)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, len(rows)))
    return W * float(np.linalg.norm(signs @ rows, axis=1).mean()) / len(rows)


def estimation_error_bound(
    X: ArrayLike,
    c: int,
    *,
    W: float,
    A: float,
    rho: float,
    xi: float = 0.05,
    a: float = 1.0,
    b: float = 1.0,
    gamma: float = 1.0,
) -> EstimationError:
    """Theorem 1 for linear models: with probability 1 - xi the excess risk is at most ``result.total``.

    ``R(f-hat) - R(f*) <= 4 sqrt(2) rho c L sum_j R_n(H_j) + 2 M sqrt(log(2 / xi) / (2 n))`` for the minimisers
    f-hat of the empirical and f* of the true risk, with L = sqrt(2) / gamma and M = `largest_loss`. The c
    complexities R_n(H_j) are equal; their expectation is replaced by `linear_complexity` of the rows ``X``.

    Parameters
    ----------
    X : array of shape (n, features)
        Rows as the linear model sees them: standardised, with a column of ones if it has a bias.
    c : int
        Number of classes.
    W : float
        Largest Euclidean norm of the weights of one class.
    A : float
        Outputs are clamped to [-A, A].
    rho : float
        Largest weight, that is lambda-hat - 1 + 1/|S| on and lambda-hat - 1 off the candidates; alpha-hat - 1 and
        beta-hat - 1 are no larger, and none is negative.
    xi : float, default=0.05
        Chance that the bound fails.
    a, b, gamma : float, default=1
        Scale, offset and temperature of the concentrations.
    """
    _require(lambda xi: 0 < xi < 1, "xi", xi, "between 0 and 1")
    _require(lambda rho: 0 <= rho < inf, "rho", rho, "at least 0 and finite")
    M = largest_loss(A, c, rho=rho, a=a, b=b, gamma=gamma)
    complexity = linear_complexity(X, W)
    L = sqrt(2) / gamma
    return EstimationError(
        complexity=complexity,
        L=L,
        M=M,
        complexity_term=4 * sqrt(2) * rho * c * L * c * complexity,
        deviation_term=2 * M * sqrt(log(2 / xi) / (2 * len(_rows(X)))),
    )


def _concentrations(A: float, c: int, a: float, b: float, gamma: float) -> tuple[float, float]:
    """The smallest and the largest value of ``a exp(v / gamma) + b`` for v in [-A, A]."""
    _require(lambda c: c >= 2, "c", c, "at least 2, a whole number", Integral)
    _require(lambda a: 0 < a < inf, "a", a, "positive and finite")
    _require(lambda b: 0 <= b < inf, "b", b, "at least 0 and finite")
    _require(lambda gamma: 0 < gamma < inf, "gamma", gamma, "positive and finite")
    _require(
        lambda A: 0 <= A <= 300 * gamma, "A", A, "from 0 to 300 gamma, beyond which exp(A / gamma) has no use"
    )
    return a * exp(-A / gamma) + b, a * exp(A / gamma) + b


def _rows(X: ArrayLike) -> NDArray[np.float64]:
    """X as a matrix of finite numbers with at least one row."""
    rows = as_floats(X, "X")
    if rows.ndim != 2 or not rows.size:
        raise InputError(f"X has shape {rows.shape}, but must have rows and columns")
    if not np.isfinite(rows).all():
        raise InputError("X holds numbers that are not finite, but must not: fill or drop them first")
    return rows


def _require(holds: Callable[[Any], bool], name: str, value: Any, expectation: str, kind: type = Real) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise InputError(f"{name} is {shown(value)}, but must be {expectation}")
