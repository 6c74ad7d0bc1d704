"""Candidate sets made from true labels, for experiments: the truth is always inside."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax


def instance_dependent(
    y: ArrayLike,
    scores: ArrayLike,
    rate: float = 0.4,
    scaling: str = "mean",
    temperature: float = 1.0,
    seed: int = 0,
) -> NDArray[np.bool_]:
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
    return _draw(y, flip_chances(y, scores, rate, scaling, temperature), seed)


def flip_chances(
    y: ArrayLike, scores: ArrayLike, rate: float = 0.4, scaling: str = "mean", temperature: float = 1.0
) -> NDArray[np.float64]:
    """Return the chance (n, K) with which each label joins the set in `instance_dependent`; 0 for the truth."""
    labels, logits = np.asarray(y), np.asarray(scores, dtype=np.float64) / temperature
    rows, k = np.arange(len(labels)), logits.shape[1]
    if labels.ndim != 1 or labels.dtype.kind not in "ui" or labels.min() < 0 or labels.max() >= k:
        raise ValueError(f"y must hold the numbers 0 to {k - 1} of the classes, one for each row of scores")
    logits[rows, labels] = -np.inf
    # In log space and over wrong labels alone, so that a classifier that is sure of y never gives 0/0.
    log_p = log_softmax(logits, axis=1)
    if scaling == "mean":
        log_chance = log_p + np.log(rate * k)
    elif scaling == "max":
        log_chance = log_p - log_p.max(1, keepdims=True)
    else:
        raise ValueError(f"scaling is {scaling!r}, but must be 'mean' or 'max'")
    chances: NDArray[np.float64] = np.exp(np.minimum(log_chance, 0.0))
    return chances


def _draw(y: ArrayLike, chances: NDArray[np.float64], seed: int) -> NDArray[np.bool_]:
    """Draw every label independently and add the truth."""
    candidates = np.random.default_rng(seed).random(chances.shape) < chances
    candidates[np.arange(len(candidates)), np.asarray(y)] = True
    return candidates
