"""How good predictions are when the truth is only known to be one of the candidates."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]


def approximated_accuracy(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row the chance that the prediction is right, given that the truth is a candidate.

    The prediction is ``j = argmax p``; its value is ``p_j / sum_{k in S} p_k`` when j is a candidate, else 0.
    The mean over rows equals accuracy when every set holds one label.

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Predicted class probabilities.
    candidates : boolean array of shape (n, K)
        Candidate sets, as :func:`oneof.encode` gives them.

    Returns
    -------
    array of shape (n,)
    """
    p, inside = np.asarray(probabilities, dtype=float), np.asarray(candidates, dtype=bool)
    p_inside = np.where(inside, p, 0.0)
    mass, chosen = p_inside.sum(1), p_inside[np.arange(len(p)), p.argmax(1)]
    # Not chosen / mass where both underflow to zero: a prediction outside the set is worth zero.
    values: Floats = np.divide(chosen, mass, out=np.zeros_like(mass), where=chosen > 0)
    return values


def covering_rate(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row 1.0 when the prediction is a candidate, else 0.0; see `approximated_accuracy`."""
    predicted = np.asarray(probabilities).argmax(1)
    covered: Floats = np.asarray(candidates, dtype=bool)[np.arange(len(predicted)), predicted].astype(float)
    return covered
