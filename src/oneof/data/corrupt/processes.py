"""Processes that draw candidate sets from true labels."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from oneof.data.corrupt.arguments import Bools, Floats, generator, true_labels
from oneof.data.corrupt.chances import (
    REDRAWS,
    class_chances,
    flip_chances,
    generation_logits,
    hierarchical_chances,
    pair_chances,
    size_chances,
    uniform_chances,
)


def instance_dependent(
    y: ArrayLike,
    scores: ArrayLike,
    rate: float = 0.4,
    scaling: str = "mean",
    temperature: float = 1.0,
    seed: int = 0,
) -> Bools:
    """Add the wrong labels that a classifier considers likely for the instance (Xu et al., NeurIPS 2021).

    With p the softmax of ``scores / temperature`` over the wrong labels alone, a wrong label j joins the set
    with probability ``min(1, rate * K * p_j)`` (``scaling="mean"``, as in all published code) or
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
        Above 1 the annotator is less certain, and the wrong labels vary more.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    boolean array of shape (n, K)
    """
    return _draw(y, flip_chances(y, scores, rate, scaling, temperature), generator(seed))


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
    paper excludes full sets: a full set is drawn again, at most 100 times; if it is still full, its least likely
    wrong label is dropped.

    Parameters
    ----------
    y : array of int of shape (n,)
        True labels, 0 to K - 1.
    scores : array of shape (n, K)
        Log-probabilities or logits of a classifier; a constant added to a row changes nothing.
    mean_size : float or None, default=5
        Determines delta: the mean over rows of the expected set size, before full sets are drawn again. None sets
        delta = 0. The paper has sigmoid(scores) of logits that it does not centre: their common shift, which
        cross-entropy leaves open, would decide the sizes.
    temperature : float, default=1
        Above 1 the wrong labels vary more.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    boolean array of shape (n, K)
    """
    rng, s = generator(seed), generation_logits(y, scores, mean_size, temperature)
    chances = expit(s)
    candidates: Bools = rng.random(s.shape) < chances
    full = np.flatnonzero(candidates.all(1))
    for _ in range(REDRAWS):
        candidates[full] = rng.random((len(full), s.shape[1])) < chances[full]
        full = full[candidates[full].all(1)]
    candidates[full, s[full].argmin(1)] = False
    return candidates


def uniform(y: ArrayLike, n_classes: int, rate: float, forced: bool = True, seed: int = 0) -> Bools:
    """Add every wrong label with chance ``rate``, independently of the others (Lv et al., ICML 2020).

    If ``forced``, a set that would hold the true label alone gets one wrong label, each with the same chance.
    """
    rng = generator(seed)
    candidates = _draw(y, uniform_chances(y, n_classes, rate, forced=False), rng)
    if forced:
        alone = np.flatnonzero(candidates.sum(1) == 1)
        others = true_labels(y, n_classes)[alone] + rng.integers(1, n_classes, size=len(alone))
        candidates[alone, others % n_classes] = True
    return candidates


def uniform_sets(y: ArrayLike, n_classes: int, version: str = "theory", seed: int = 0) -> Bools:
    """Draw one of the sets that hold the true label and are not full (Feng et al., NeurIPS 2020).

    The size s, 1 to K - 1, is drawn first, then s - 1 wrong labels, every choice with the same chance. Sizes with
    chances proportional to ``C(K - 1, s - 1)`` give all these sets the same chance (``version="theory"``); the
    published code takes ``C(K, s)`` (``version="code"``), which favours smaller sets.
    """
    rng, p, labels = generator(seed), size_chances(n_classes, version), true_labels(y, n_classes)
    sizes = rng.choice(np.arange(1, n_classes), size=len(labels), p=p)
    order = rng.random((len(labels), n_classes))
    order[np.arange(len(labels)), labels] = -1.0  # the true label comes first
    last = np.take_along_axis(np.sort(order, axis=1), sizes[:, None] - 1, axis=1)
    candidates: Bools = order <= last
    return candidates


def class_dependent(y: ArrayLike, matrix: ArrayLike, seed: int = 0) -> Bools:
    """Add wrong labels with chances that depend on the true class, independently of each other.

    Entry (y, j) of ``matrix`` is the chance that j joins a set whose true label is y, 1 for y itself; a key of
    `LWS_CASES` stands for a matrix of 10 classes.
    """
    return _draw(y, class_chances(y, matrix), generator(seed))


def pair(y: ArrayLike, n_classes: int, rate: float, seed: int = 0) -> Bools:
    """Add the next class, ``(y + 1) mod K``, with chance ``rate``, and no other (Lv et al., ICML 2020)."""
    return _draw(y, pair_chances(y, n_classes, rate), generator(seed))


def hierarchical(y: ArrayLike, groups: ArrayLike, rate: float, seed: int = 0) -> Bools:
    """Add the wrong labels of the true label's group, each with chance ``rate`` (Wang et al., ICLR 2022).

    ``groups`` holds the name or number of the group of every class, such as the superclass in CIFAR-100.
    """
    return _draw(y, hierarchical_chances(y, groups, rate), generator(seed))


PROCESSES: dict[str, Callable[..., Bools]] = {
    "instance": instance_dependent,
    "decomposition": decomposition,
    "uniform": uniform,
    "uniform-sets": uniform_sets,
    "class": class_dependent,
    "pair": pair,
    "hierarchical": hierarchical,
}


def summary(candidates: Bools) -> dict[str, float]:
    """Return the mean size of candidate sets, and the shares of those with one label and with all labels."""
    sizes = candidates.sum(1)
    return {
        "mean_size": float(sizes.mean()),
        "one_label": float((sizes == 1).mean()),
        "full": float((sizes == candidates.shape[1]).mean()),
    }


def _draw(y: ArrayLike, chances: Floats, rng: np.random.Generator) -> Bools:
    """Draw every label independently and add the true label."""
    candidates: Bools = rng.random(chances.shape) < chances
    candidates[np.arange(len(candidates)), np.asarray(y)] = True
    return candidates
