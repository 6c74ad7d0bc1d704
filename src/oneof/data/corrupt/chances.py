"""The exact chance with which each process adds each wrong label; the true label has chance 0 here."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, gammaln, log_expit, log_softmax, softmax

from oneof.data.corrupt.arguments import Floats, check, check_rate, class_count, scaled_scores, true_labels
from oneof.errors import InputError
from oneof.io.arguments import as_array, as_floats
from oneof.io.words import shown

REDRAWS = 100  # of a full set in `decomposition`

LWS_CASES: dict[str, tuple[float, ...]] = {
    "01": (0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "02": (0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3),
    "03": (0.2, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.2),
    "04": (0.5, 0.3, 0.1, 0.0, 0.0, 0.0, 0.1, 0.3, 0.5),
}
"""Chances of the labels y + 1, ..., y + 9 (modulo 10) in the four cases of Wen et al. (ICML 2021)."""


def flip_chances(
    y: ArrayLike, scores: ArrayLike, rate: float = 0.4, scaling: str = "mean", temperature: float = 1.0
) -> Floats:
    """Return the chance (n, K) that each label joins the set in `instance_dependent`; 0 for the true label."""
    check("rate", rate, Real, lambda rate: 0 < rate < np.inf, "a number > 0")
    check("scaling", scaling, str, lambda scaling: scaling in ("mean", "max"), "'mean' or 'max'")
    labels, logits = scaled_scores(y, scores, temperature)
    logits[np.arange(len(labels)), labels] = -np.inf
    # In log space and over wrong labels alone: a classifier that is certain of y would otherwise give 0/0.
    log_p = log_softmax(logits, axis=1)
    if scaling == "mean":
        log_chance = log_p + np.log(rate * logits.shape[1])
    else:
        log_chance = log_p - log_p.max(1, keepdims=True)
    chances: Floats = np.exp(np.minimum(log_chance, 0.0))
    return chances


def decomposition_chances(
    y: ArrayLike, scores: ArrayLike, mean_size: float | None = 5.0, temperature: float = 1.0
) -> Floats:
    """Return the chance (n, K) that each label joins the set in `decomposition`; 0 for the true label.

    With P the chance that a draw is full, the first draw that is not full leaves out label j with chance
    ``(1 - sigmoid(s_j)) (1 + P + ... + P^100)``; for the least likely label add P^101, when all draws are full.
    """
    s = generation_logits(y, scores, mean_size, temperature)
    log_full, draws = log_expit(s).sum(1), 1 + REDRAWS
    series = np.full(len(s), float(draws))
    np.divide(np.expm1(draws * log_full), np.expm1(log_full), out=series, where=log_full < 0)
    left_out = expit(-s) * series[:, None]
    left_out[np.arange(len(s)), s.argmin(1)] += np.exp(draws * log_full)
    chances: Floats = np.where(np.isinf(s), 0.0, np.maximum(1.0 - left_out, 0.0))
    return chances


def uniform_chances(y: ArrayLike, n_classes: int, rate: float, forced: bool = True) -> Floats:
    """Return the chances (n, K) of `uniform`: the rate, plus (1 - rate)^(K - 1) / (K - 1) if forced."""
    check_rate(rate)
    others = class_count(n_classes) - 1
    return class_chances(y, _cyclic([rate + (1 - rate) ** others / others if forced else rate] * others))


def uniform_sets_chances(y: ArrayLike, n_classes: int, version: str = "theory") -> Floats:
    """Return the chances (n, K) of `uniform_sets`: (E[s] - 1) / (K - 1)."""
    others = class_count(n_classes) - 1
    mean_wrong = float(np.arange(others) @ size_chances(n_classes, version))
    return class_chances(y, _cyclic([mean_wrong / others] * others))


def class_chances(y: ArrayLike, matrix: ArrayLike) -> Floats:
    """Return the chances (n, K) of `class_dependent`: for each row those of its true class."""
    table: Floats = _cyclic(_lws_case(matrix)) if isinstance(matrix, str) else as_floats(matrix, "matrix")
    if table.ndim != 2 or len(table) != table.shape[1] or len(table) < 2:
        raise InputError(f"matrix has shape {table.shape}, but must be (K, K) for K >= 2 classes")
    outside = table[~((table >= 0) & (table <= 1))]
    if outside.size:
        raise InputError(f"matrix holds {outside[0]}, but must hold chances in [0, 1]")
    if (table.diagonal() != 1).any():
        found = table.diagonal().min()
        raise InputError(f"matrix has {found} on its diagonal, but must have ones: the truth is always inside")
    labels = true_labels(y, len(table))
    np.fill_diagonal(table, 0)
    chances: Floats = table[labels]
    return chances


def pair_chances(y: ArrayLike, n_classes: int, rate: float) -> Floats:
    """Return the chances (n, K) of `pair`."""
    check_rate(rate)
    return class_chances(y, _cyclic([rate] + [0.0] * (class_count(n_classes) - 2)))


def hierarchical_chances(y: ArrayLike, groups: ArrayLike, rate: float) -> Floats:
    """Return the chances (n, K) of `hierarchical`."""
    check_rate(rate)
    names = as_array(groups, "groups")
    if names.ndim != 1 or len(names) < 2:
        raise InputError(f"groups has shape {names.shape}, but must be (K,) for K >= 2 classes")
    matrix = rate * (names[:, None] == names)
    np.fill_diagonal(matrix, 1)
    return class_chances(y, matrix)


CHANCES: dict[str, Callable[..., Floats]] = {
    "instance": flip_chances,
    "decomposition": decomposition_chances,
    "uniform": uniform_chances,
    "uniform-sets": uniform_sets_chances,
    "class": class_chances,
    "pair": pair_chances,
    "hierarchical": hierarchical_chances,
}
INDEPENDENT = ("instance", "class", "pair", "hierarchical")  # processes that draw every label by itself


def set_log_likelihoods(candidates: ArrayLike, process: str, arguments: Mapping[str, Any]) -> Floats:
    """Return ``log P(S | y = j)`` (n, K) of candidate sets for every label j, -inf where j is not in the set.

    For processes that draw each label by itself, whose arguments beside y are given: with c the chances of
    `CHANCES` for y = j it is the sum over k != j of log c_k in the set and of log(1 - c_k) outside.
    """
    if process not in INDEPENDENT:
        raise InputError(
            f"process is {shown(process)}, which does not draw labels one by one; the likelihood of its sets is "
            f"known for {', '.join(INDEPENDENT)}"
        )
    sets = as_array(candidates, "candidates").astype(bool)
    n, k = sets.shape
    found = np.full((n, k), -np.inf)
    for j in np.flatnonzero(sets.any(0)):
        rows = np.flatnonzero(sets[:, j])
        given = (
            {**arguments, "scores": np.asarray(arguments["scores"])[rows]} if "scores" in arguments else arguments
        )
        chances = CHANCES[process](np.full(len(rows), j), **given)
        chances = np.where(sets[rows], chances, 1 - chances)
        chances[:, j] = 1
        with np.errstate(divide="ignore"):
            found[rows, j] = np.log(chances).sum(1)
    return found


def certain_distractors(chances: Floats) -> float:
    """Return the share of rows with a wrong label of chance 1, which every draw adds."""
    return float((chances == 1).any(1).mean())


def generation_logits(y: ArrayLike, scores: ArrayLike, mean_size: float | None, temperature: float) -> Floats:
    """Return s (n, K) of `decomposition`, infinite for the true label, which is always inside."""
    labels, s = scaled_scores(y, scores, temperature)
    s -= s.mean(1, keepdims=True)
    low, high, k = s.min(), s.max(), s.shape[1]
    s[np.arange(len(labels)), labels] = np.inf
    if mean_size is not None:
        expected = f"a number between 1 and {k}, the number of classes, or None"
        check("mean_size", mean_size, Real, lambda size: 1 < size < k, expected)
        # Between these bounds every sigmoid goes from 0 to 1, so that the mean size goes from 1 to K.
        s += brentq(
            lambda delta: expit(s + delta).sum(1).mean() - mean_size, -high - 100, -low + 100, maxiter=1000
        )
    return s


def size_chances(n_classes: int, version: str) -> Floats:
    """Return the chances of the sizes 1 to K - 1 in `uniform_sets`, from log-binomials, which cannot overflow."""
    sizes = np.arange(1, class_count(n_classes))
    binomials = {"theory": (n_classes - 1, sizes - 1), "code": (n_classes, sizes)}
    check("version", version, str, lambda version: version in binomials, "'theory' or 'code'")
    total, chosen = binomials[version]
    chances: Floats = softmax(-gammaln(1 + chosen) - gammaln(1 + total - chosen))
    return chances


def _cyclic(offsets: Sequence[float]) -> Floats:
    """Return the matrix (K, K) whose row y gives the labels y, y + 1, ... (modulo K) the chances 1, *offsets."""
    classes = np.arange(1 + len(offsets))
    matrix: Floats = np.array([1.0, *offsets])[(classes - classes[:, None]) % len(classes)]
    return matrix


def _lws_case(name: str) -> tuple[float, ...]:
    if name not in LWS_CASES:
        raise InputError(f"matrix is {shown(name)}, but must hold chances or be one of {', '.join(LWS_CASES)}")
    return LWS_CASES[name]
