"""Quality of predictions where the true label is only known to be one of the candidates."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneof.errors import InputError
from oneof.io.arguments import as_array

Floats = NDArray[np.floating[Any]]


def approximated_accuracy(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row the probability that the prediction is right, given that the true label is a candidate.

    The prediction is ``j = argmax p``; its value is ``p_j / sum_{k in S} p_k`` when j is a candidate, else 0. With
    weights pi of the candidates it is ``pi_j p_j / sum_k pi_k p_k``. The mean over rows equals accuracy when every
    set holds one label.

    Parameters
    ----------
    probabilities : array of shape (..., n, K)
        Predicted class probabilities.
    candidates : array of shape (..., n, K)
        Candidate sets, as :func:`oneof.encode` gives them; floats are weights, as `oneof.WeightedSets` has them.

    Returns
    -------
    array of shape (..., n)
    """
    p, inside = _check_arrays(probabilities, candidates)
    p_inside = np.multiply(p, inside, dtype=float)
    mass = p_inside @ np.ones(p.shape[-1])  # for many short rows a product takes a seventh of the time of sum
    chosen = _at(p_inside, p.argmax(-1))
    # Only where chosen > 0: chosen and mass may both be zero, and a prediction outside the set has the value zero.
    values: Floats = np.divide(chosen, mass, out=np.zeros_like(mass), where=chosen > 0)
    return values


def covering_rate(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row 1.0 when the prediction is a candidate, else 0.0; see `approximated_accuracy`."""
    p, inside = _check_arrays(probabilities, candidates)
    covered: Floats = (_at(np.broadcast_to(inside, p.shape), p.argmax(-1)) > 0).astype(float)
    return covered


def set_log_likelihood(probabilities: ArrayLike, candidates: ArrayLike) -> Floats:
    """Return for each row the logarithm of the probability that the true label is a candidate, ``log sum_S p_k``.

    Its mean judges models without true labels; with weights it is ``log sum_k s_k p_k``. What is below the
    resolution of its type counts as that, as in scikit-learn's log_loss: forests give exact zeros. See
    `approximated_accuracy` for the parameters.
    """
    p, inside = _check_arrays(probabilities, candidates)
    mass = np.multiply(p, inside, dtype=float).sum(-1)
    least = np.finfo(p.dtype if p.dtype.kind == "f" else float).eps
    likelihood: Floats = np.log(np.clip(mass, least, 1.0))
    return likelihood


def _check_arrays(probabilities: ArrayLike, candidates: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    """Return both as arrays; refuse candidates that are no matrix: n labels of n classes would pass for one."""
    p, inside = as_array(probabilities, "probabilities"), as_array(candidates, "candidates")
    numeric = {p.dtype.kind, inside.dtype.kind} <= set("buif")
    if p.ndim < 2 or not p.size or inside.shape[-2:] != p.shape[-2:] or not numeric:
        raise InputError(
            f"probabilities has shape {p.shape} and candidates {inside.shape}, but both must be numbers (n, K), "
            "one row for each example and one column for each class: pass oneof.encode(y, model.classes_)[0] as "
            "candidates"
        )
    if inside.dtype.kind == "f" and not (inside >= 0).all():
        raise InputError("candidates holds NaN or negative weights, but weights are at least 0: mend the rows")
    return p, inside if inside.dtype.kind == "f" else inside.astype(bool, copy=False)


def _at(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the values (...) of an array (..., K) at labels (...)."""
    return np.take_along_axis(values, labels[..., None], -1)[..., 0]
