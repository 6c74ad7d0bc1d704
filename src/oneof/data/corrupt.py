"""Candidate sets made from true labels, for experiments: the truth is always inside.

A process is a pair of functions of the true labels and its own arguments. The one in `PROCESSES` also takes a seed
and draws the sets, a boolean array (n, K); the one in `CHANCES`, under the same name, gives the chance (n, K) that
each wrong label joins its set, 0 for the truth. Processes that ask for ``scores``, the log-probabilities or logits
of a classifier, depend on the instance; the others depend on the true class alone.

Everywhere ``y`` holds the true labels, n numbers from 0 to K - 1; ``n_classes`` is K; ``seed`` is the draws' seed.
"""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, gammaln, log_expit, log_softmax, softmax

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

_REDRAWS = 100  # of a full set in `decomposition`
_LARGEST_SCORE = 1e9  # a float beyond it lacks the decimals that a chance needs

LWS_CASES: dict[str, tuple[float, ...]] = {
    "01": (0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "02": (0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3),
    "03": (0.2, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.2),
    "04": (0.5, 0.3, 0.1, 0.0, 0.0, 0.0, 0.1, 0.3, 0.5),
}
"""Chances of the labels y + 1, ..., y + 9 (modulo 10) in the four cases of Wen et al. (ICML 2021)."""


def instance_dependent(
    y: ArrayLike,
    scores: ArrayLike,
    rate: float = 0.4,
    scaling: str = "mean",
    temperature: float = 1.0,
    seed: int = 0,
) -> Bools:
    """Add the wrong labels that a classifier finds plausible for the instance (Xu et al., NeurIPS 2021).

    With p the softmax of ``scores / temperature`` over the wrong labels alone, a wrong label j joins the set
    with probability ``min(1, rate * K * p_j)`` (``scaling="mean"``, as in every released code) or
    ``p_j / max_k p_k`` (``scaling="max"``, as in that paper's text), independently of the others.

    Parameters
    ----------
    y : array of int of shape (n,)
        True labels, 0 to K - 1.
    scores : array of shape (n, K)
        Log-probabilities or logits of a classifier, the annotator.
    rate : float, default=0.4
        With ``scaling="mean"``, K * rate bounds the expected number of wrong labels.
    scaling : {"mean", "max"}, default="mean"
        How probabilities become chances.
    temperature : float, default=1
        Above 1 the annotator is less sure and the wrong labels more various.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    boolean array of shape (n, K)
    """
    return _draw(y, flip_chances(y, scores, rate, scaling, temperature), _generator(seed))


def flip_chances(
    y: ArrayLike, scores: ArrayLike, rate: float = 0.4, scaling: str = "mean", temperature: float = 1.0
) -> Floats:
    """Return the chance (n, K) with which each label joins the set in `instance_dependent`; 0 for the truth."""
    _check("rate", rate, Real, lambda rate: 0 < rate < np.inf, "a number > 0")
    labels, logits = _scored(y, scores, temperature)
    logits[np.arange(len(labels)), labels] = -np.inf
    # In log space and over wrong labels alone, so that a classifier that is sure of y never gives 0/0.
    log_p = log_softmax(logits, axis=1)
    if scaling == "mean":
        log_chance = log_p + np.log(rate * logits.shape[1])
    elif scaling == "max":
        log_chance = log_p - log_p.max(1, keepdims=True)
    else:
        raise ValueError(f"scaling is {scaling!r}, but must be 'mean' or 'max'")
    chances: Floats = np.exp(np.minimum(log_chance, 0.0))
    return chances


def decomposition(
    y: ArrayLike,
    scores: ArrayLike,
    mean_size: float | None = 5.0,
    temperature: float = 1.0,
    seed: int = 0,
) -> Bools:
    """Add wrong labels by the generation model of the IDGP paper (Qiao, Xu & Geng, ICLR 2023, appendix).

    A wrong label j joins the set with probability ``sigmoid(s_j)``, independently of the others, where
    ``s = (scores - their mean over all K labels) / temperature + delta`` and delta is one number for all rows. The
    paper's space of sets has no full set: one is drawn again, at most 100 times; then its least likely wrong label
    is dropped.

    Parameters
    ----------
    y : array of int of shape (n,)
        True labels, 0 to K - 1.
    scores : array of shape (n, K)
        Log-probabilities or logits of a classifier; a constant added to a row changes nothing.
    mean_size : float or None, default=5
        Solves for delta: the mean over rows of the expected set size, before full sets are drawn again, is this.
        None is the paper's literal reading, delta = 0.
    temperature : float, default=1
        Above 1 the wrong labels are more various.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    boolean array of shape (n, K)
    """
    rng, s = _generator(seed), _generation_logits(y, scores, mean_size, temperature)
    chances = expit(s)
    candidates: Bools = rng.random(s.shape) < chances
    full = np.flatnonzero(candidates.all(1))
    for _ in range(_REDRAWS):
        candidates[full] = rng.random((len(full), s.shape[1])) < chances[full]
        full = full[candidates[full].all(1)]
    candidates[full, s[full].argmin(1)] = False
    return candidates


def decomposition_chances(
    y: ArrayLike, scores: ArrayLike, mean_size: float | None = 5.0, temperature: float = 1.0
) -> Floats:
    """Return the chance (n, K) with which each label joins the set in `decomposition`; 0 for the truth.

    With P the chance that a draw is full, a label j is left out by the first draw that is not with chance
    ``(1 - sigmoid(s_j)) (1 + P + ... + P^100)``, and the least likely one with P^101 more.
    """
    s = _generation_logits(y, scores, mean_size, temperature)
    log_full, draws = log_expit(s).sum(1), 1 + _REDRAWS
    series = np.full(len(s), float(draws))
    np.divide(np.expm1(draws * log_full), np.expm1(log_full), out=series, where=log_full < 0)
    left_out = expit(-s) * series[:, None]
    left_out[np.arange(len(s)), s.argmin(1)] += np.exp(draws * log_full)
    chances: Floats = np.where(np.isinf(s), 0.0, np.maximum(1.0 - left_out, 0.0))
    return chances


def uniform(y: ArrayLike, n_classes: int, rate: float, forced: bool = True, seed: int = 0) -> Bools:
    """Add every wrong label with chance ``rate``, independently of the others (Lv et al., ICML 2020).

    A set that holds the truth alone gets one wrong label, each as likely, if ``forced``.
    """
    rng = _generator(seed)
    candidates = _draw(y, uniform_chances(y, n_classes, rate, forced=False), rng)
    if forced:
        alone = np.flatnonzero(candidates.sum(1) == 1)
        others = true_labels(y, n_classes)[alone] + rng.integers(1, n_classes, size=len(alone))
        candidates[alone, others % n_classes] = True
    return candidates


def uniform_chances(y: ArrayLike, n_classes: int, rate: float, forced: bool = True) -> Floats:
    """Return the chances (n, K) of `uniform`: the rate, and (1 - rate)^(K - 1) / (K - 1) more if forced."""
    _check_rate(rate)
    others = _classes(n_classes) - 1
    return class_chances(y, _cyclic([rate + (1 - rate) ** others / others if forced else rate] * others))


def uniform_sets(y: ArrayLike, n_classes: int, version: str = "theory", seed: int = 0) -> Bools:
    """Draw one of the sets that hold the truth and are not full (Feng et al., NeurIPS 2020).

    The size s, 1 to K - 1, is drawn first, then s - 1 wrong labels, all choices alike. Sizes with chances
    proportional to ``C(K - 1, s - 1)`` make all these sets alike (``version="theory"``); the code in circulation
    takes ``C(K, s)`` (``version="code"``), which favours smaller sets.
    """
    rng, size_chances, labels = _generator(seed), _size_chances(n_classes, version), true_labels(y, n_classes)
    sizes = rng.choice(np.arange(1, n_classes), size=len(labels), p=size_chances)
    order = rng.random((len(labels), n_classes))
    order[np.arange(len(labels)), labels] = -1.0  # the truth comes first
    last = np.take_along_axis(np.sort(order, axis=1), sizes[:, None] - 1, axis=1)
    candidates: Bools = order <= last
    return candidates


def uniform_sets_chances(y: ArrayLike, n_classes: int, version: str = "theory") -> Floats:
    """Return the chances (n, K) of `uniform_sets`: (E[s] - 1) / (K - 1)."""
    others = _classes(n_classes) - 1
    mean_wrong = float(np.arange(others) @ _size_chances(n_classes, version))
    return class_chances(y, _cyclic([mean_wrong / others] * others))


def class_dependent(y: ArrayLike, matrix: ArrayLike, seed: int = 0) -> Bools:
    """Add wrong labels with chances that depend on the true class, independently of each other.

    Entry (y, j) of ``matrix`` is the chance that j joins a set whose truth is y, 1 for y itself; a key of
    `LWS_CASES` stands for a matrix of 10 classes.
    """
    return _draw(y, class_chances(y, matrix), _generator(seed))


def class_chances(y: ArrayLike, matrix: ArrayLike) -> Floats:
    """Return the chances (n, K) of `class_dependent`: for each row those of its true class."""
    table: Floats = _cyclic(_lws_case(matrix)) if isinstance(matrix, str) else np.array(matrix, dtype=np.float64)
    if table.ndim != 2 or len(table) != table.shape[1] or len(table) < 2:
        raise ValueError(f"matrix has shape {table.shape}, but must be (K, K) for K >= 2 classes")
    outside = table[~((table >= 0) & (table <= 1))]
    if outside.size:
        raise ValueError(f"matrix holds {outside[0]}, but must hold chances in [0, 1]")
    if (table.diagonal() != 1).any():
        found = table.diagonal().min()
        raise ValueError(f"matrix has {found} on its diagonal, but must have ones: the truth is always inside")
    labels = true_labels(y, len(table))
    np.fill_diagonal(table, 0)
    chances: Floats = table[labels]
    return chances


def pair(y: ArrayLike, n_classes: int, rate: float, seed: int = 0) -> Bools:
    """Add the next class, ``(y + 1) mod K``, with chance ``rate``, and no other (Lv et al., ICML 2020)."""
    return _draw(y, pair_chances(y, n_classes, rate), _generator(seed))


def pair_chances(y: ArrayLike, n_classes: int, rate: float) -> Floats:
    """Return the chances (n, K) of `pair`."""
    _check_rate(rate)
    return class_chances(y, _cyclic([rate] + [0.0] * (_classes(n_classes) - 2)))


def hierarchical(y: ArrayLike, groups: ArrayLike, rate: float, seed: int = 0) -> Bools:
    """Add the wrong labels of the truth's own group, each with chance ``rate`` (Wang et al., ICLR 2022).

    ``groups`` holds the name or number of the group of every class, such as the superclass in CIFAR-100.
    """
    return _draw(y, hierarchical_chances(y, groups, rate), _generator(seed))


def hierarchical_chances(y: ArrayLike, groups: ArrayLike, rate: float) -> Floats:
    """Return the chances (n, K) of `hierarchical`."""
    _check_rate(rate)
    names = np.asarray(groups)
    if names.ndim != 1 or len(names) < 2:
        raise ValueError(f"groups has shape {names.shape}, but must be (K,) for K >= 2 classes")
    matrix = rate * (names[:, None] == names)
    np.fill_diagonal(matrix, 1)
    return class_chances(y, matrix)


PROCESSES: dict[str, Callable[..., Bools]] = {
    "instance": instance_dependent,
    "decomposition": decomposition,
    "uniform": uniform,
    "uniform-sets": uniform_sets,
    "class": class_dependent,
    "pair": pair,
    "hierarchical": hierarchical,
}

CHANCES: dict[str, Callable[..., Floats]] = {
    "instance": flip_chances,
    "decomposition": decomposition_chances,
    "uniform": uniform_chances,
    "uniform-sets": uniform_sets_chances,
    "class": class_chances,
    "pair": pair_chances,
    "hierarchical": hierarchical_chances,
}


def summary(candidates: Bools) -> dict[str, float]:
    """Return the mean size of candidate sets, and the shares of those with one label and with all labels."""
    sizes = candidates.sum(1)
    return {
        "mean_size": float(sizes.mean()),
        "one_label": float((sizes == 1).mean()),
        "full": float((sizes == candidates.shape[1]).mean()),
    }


def certain_distractors(chances: Floats) -> float:
    """Return the share of rows with a wrong label of chance 1: no other draw would have left it out."""
    return float((chances == 1).any(1).mean())


def _draw(y: ArrayLike, chances: Floats, rng: np.random.Generator) -> Bools:
    """Draw every label independently and add the truth."""
    candidates: Bools = rng.random(chances.shape) < chances
    candidates[np.arange(len(candidates)), np.asarray(y)] = True
    return candidates


def _generation_logits(y: ArrayLike, scores: ArrayLike, mean_size: float | None, temperature: float) -> Floats:
    """Return s (n, K) of `decomposition`, infinite for the truth: it is always inside."""
    labels, s = _scored(y, scores, temperature)
    s -= s.mean(1, keepdims=True)
    low, high, k = s.min(), s.max(), s.shape[1]
    s[np.arange(len(labels)), labels] = np.inf
    if mean_size is not None:
        expected = f"a number between 1 and {k}, the number of classes, or None"
        _check("mean_size", mean_size, Real, lambda size: 1 < size < k, expected)
        # Between these ends every sigmoid goes from 0 to 1, so that the mean size goes from 1 to K.
        s += brentq(
            lambda delta: expit(s + delta).sum(1).mean() - mean_size, -high - 100, -low + 100, maxiter=1000
        )
    return s


def _size_chances(n_classes: int, version: str) -> Floats:
    """Return the chances of the sizes 1 to K - 1 in `uniform_sets`, from log-binomials, which cannot overflow."""
    sizes = np.arange(1, _classes(n_classes))
    binomials = {"theory": (n_classes - 1, sizes - 1), "code": (n_classes, sizes)}
    if version not in binomials:
        raise ValueError(f"version is {version!r}, but must be 'theory' or 'code'")
    total, chosen = binomials[version]
    chances: Floats = softmax(-gammaln(1 + chosen) - gammaln(1 + total - chosen))
    return chances


def _cyclic(offsets: Sequence[float]) -> Floats:
    """Return the matrix (K, K) with chances 1, offsets of the labels y, y + 1, ..., y + K - 1 (modulo K)."""
    classes = np.arange(1 + len(offsets))
    matrix: Floats = np.array([1.0, *offsets])[(classes - classes[:, None]) % len(classes)]
    return matrix


def _lws_case(name: str) -> tuple[float, ...]:
    if name not in LWS_CASES:
        raise ValueError(f"matrix is {name!r}, but must hold chances or be one of {', '.join(LWS_CASES)}")
    return LWS_CASES[name]


def _scored(y: ArrayLike, scores: ArrayLike, temperature: float) -> tuple[Labels, Floats]:
    """Return labels and, as a new array (n, K), scores over temperature."""
    _check("temperature", temperature, Real, lambda value: 0 < value < np.inf, "a number > 0")
    logits = np.array(scores, dtype=np.float64)
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise ValueError(f"scores has shape {logits.shape}, but must be (n, K) for n labels and K >= 2 classes")
    labels = true_labels(y, logits.shape[1])
    if len(labels) != len(logits):
        raise ValueError(f"scores has {len(logits)} rows, but must have one for each of the {len(labels)} labels")
    with np.errstate(over="ignore"):
        logits /= temperature
    outside = ~(np.abs(logits) <= _LARGEST_SCORE)  # not a number, either
    if outside.any():
        row = int(outside.any(1).argmax())
        raise ValueError(
            f"scores / temperature is {logits[row][outside[row]][0]} in row {row}, but must lie within "
            f"±{_LARGEST_SCORE:g}; pass logits, or log-probabilities from a log-softmax"
        )
    return labels, logits


def true_labels(y: ArrayLike, n_classes: int) -> Labels:
    """Return true labels as an array, refusing what is no class number."""
    labels = np.asarray(y)
    expected = f"must hold the numbers 0 to {n_classes - 1} of the classes, one for each row"
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y has shape {labels.shape}, but {expected}")
    if labels.dtype.kind not in "ui":
        raise ValueError(f"y holds {labels.dtype}, but {expected}")
    for extreme in (labels.min(), labels.max()):
        if not 0 <= extreme < n_classes:
            raise ValueError(f"y holds {extreme}, but {expected}")
    return labels.astype(np.intp)


def _classes(n_classes: int) -> int:
    _check("n_classes", n_classes, Integral, lambda value: value >= 2, "a whole number >= 2")
    return int(n_classes)


def _check_rate(rate: float) -> None:
    _check("rate", rate, Real, lambda value: 0 <= value <= 1, "a number in [0, 1]")


def _generator(seed: int) -> np.random.Generator:
    _check("seed", seed, Integral, lambda value: value >= 0, "a whole number >= 0")
    return np.random.default_rng(seed)


def _check(name: str, value: Any, kind: type, holds: Callable[[Any], bool], expected: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise ValueError(f"{name} is {value!r}, but must be {expected}")
