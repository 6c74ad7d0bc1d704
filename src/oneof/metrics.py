"""Quality of predictions where the true label is only known to be one of the candidates."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]


def approximated_accuracy(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row the probability that the prediction is right, given that the true label is a candidate.

    The prediction is ``j = argmax p``; its value is ``p_j / sum_{k in S} p_k`` when j is a candidate, else 0.
    The mean over rows equals accuracy when every set holds one label.

    Parameters
    ----------
    probabilities : array of shape (..., n, K)
        Predicted class probabilities.
    candidates : boolean array of shape (..., n, K)
        Candidate sets, as :func:`oneof.encode` gives them.

    Returns
    -------
    array of shape (..., n)
    """
    p = np.asarray(probabilities)
    p_inside = np.multiply(p, np.asarray(candidates, dtype=bool), dtype=float)
    mass = p_inside @ np.ones(p.shape[-1])  # for many short rows a product takes a seventh of the time of sum
    chosen = _at(p_inside, p.argmax(-1))
    # Only where chosen > 0: chosen and mass may both be zero, and a prediction outside the set has the value zero.
    values: Floats = np.divide(chosen, mass, out=np.zeros_like(mass), where=chosen > 0)
    return values


def covering_rate(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row 1.0 when the prediction is a candidate, else 0.0; see `approximated_accuracy`."""
    p, inside = np.asarray(probabilities), np.asarray(candidates, dtype=bool)
    covered: Floats = _at(np.broadcast_to(inside, p.shape), p.argmax(-1)).astype(float)
    return covered


def _at(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the values (...) of an array (..., K) at labels (...)."""
    return np.take_along_axis(values, labels[..., None], -1)[..., 0]
