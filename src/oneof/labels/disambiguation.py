"""The most likely candidate of every row, from probabilities and candidate sets."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oneof.errors import InputError
from oneof.io.arguments import as_floats
from oneof.io.words import shown, warn
from oneof.labels.encoding import encode_weights
from oneof.labels.names import column_names, columns_of
from oneof.labels.validation import rows_text

Floats = NDArray[np.floating[Any]]
_ROUNDING = 1e-2  # by which the probabilities of a row may miss the sum 1: those in half precision do


class _Choice(NamedTuple):
    label: NDArray[Any]
    probability: Floats
    margin: Floats


class Disambiguation(_Choice):
    """The most likely label of every row, its probability, and the margin to the second.

    Unpacks to these three. ``outside`` (n,) is how likely it is that no candidate is the true label, which only
    models with ``outside=`` give a chance; ``label`` is none of the candidates where that is the best answer.
    ``scaling`` is the one that `oneof.resolve` has chosen; None where nothing was left open.
    """

    outside: Floats
    scaling: str | None = None

    def __new__(
        cls, label: NDArray[Any], probability: Floats, margin: Floats, outside: Floats | None = None
    ) -> Self:
        """Take the chance of outside as 0 where none is given."""
        made = super().__new__(cls, label, probability, margin)
        made.outside = np.zeros_like(probability) if outside is None else outside
        return made


def disambiguate(
    probabilities: ArrayLike, y: Any, classes: Any = None, separator: str | None = None
) -> Disambiguation:
    """Say for every row which of its candidates a model of any kind finds the most likely.

    The probability of candidate j is ``p_j / sum_{k in S} p_k``: that of the model, given that the true label is
    one of the candidates S. Weights of candidates multiply p. Rows whose candidates all have probability 0 are
    split evenly, with a warning.

    Parameters
    ----------
    probabilities : array, tensor or frame of shape (n, K)
        Class probabilities of any model, such as ``model.predict_proba(X)``; out-of-fold ones where the model was
        fitted on the same rows.
    y : candidate sets
        All that :func:`oneof.encode` takes; weights of candidates count as factors.
    classes : sequence of str or int, optional
        The class of each column, such as ``model.classes_``. By default the column names of a frame, otherwise
        what :func:`oneof.encode` finds in ``y``.
    separator : str, optional
        Splits the strings of ``y``, such as ``"cat|dog"``.

    Returns
    -------
    Disambiguation
        ``label``, ``probability`` and ``margin``, each of shape (n,).

    Examples
    --------
    >>> found = disambiguate([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], [["cat", "cow"], ["cow", "dog"]])
    >>> found.label.tolist(), found.probability.round(3).tolist()
    (['cat', 'cow'], [0.625, 0.75])
    """
    p, columns = _checked(probabilities), columns_of(probabilities)
    if columns is not None and columns != list(range(p.shape[1])):
        classes = column_names(columns, classes, p.shape[1], "probabilities")
    candidates, names = encode_weights(y, classes, separator)
    if p.shape != candidates.shape:
        raise InputError(
            f"probabilities has shape {p.shape}, but y has {len(candidates)} rows and {len(names)} classes: pass "
            "one row for each row of y, and as classes the name of each column, such as model.classes_"
        )
    impossible = np.flatnonzero((p * candidates).sum(1) <= 0)
    if impossible.size:
        warn(
            f"every candidate has probability 0 in {rows_text(impossible)}, so that the choice there is "
            "arbitrary: check that classes are in the order of the columns"
        )
    return decide(posterior(p, candidates), names)


def posterior(probabilities: NDArray[Any], candidates: NDArray[Any]) -> Floats:
    """Return ``s_j p_j / sum_k s_k p_k`` (n, K), for candidates s that are 0 or 1, or weights.

    Where the sum is 0, the probabilities say nothing, and the candidates alone decide.
    """
    weights = candidates.astype(np.float64)
    joint = weights * probabilities
    joint = np.where(joint.sum(1, keepdims=True) > 0, joint, weights)
    result: Floats = joint / joint.sum(1, keepdims=True)
    return result


def decide(
    distributions: NDArray[Any], classes: NDArray[Any], candidates: NDArray[Any] | None = None
) -> Disambiguation:
    """Return the most likely class of every row of distributions (n, K); off the candidates they are outside."""
    second, first = np.sort(distributions, axis=1)[:, -2:].T
    outside = None if candidates is None else np.where(candidates > 0, 0, distributions).sum(1)
    return Disambiguation(classes[distributions.argmax(1)], first, first - second, outside)


def _checked(probabilities: Any) -> NDArray[np.float64]:
    """Return probabilities as an array; refuse what is none, such as scores or single columns."""
    p = as_floats(probabilities, "probabilities")
    if p.ndim != 2 or not p.size:
        raise InputError(
            f"probabilities has shape {p.shape}, but must be (n, K): pass one row for each example and one column "
            "for each class"
        )
    bad = ~((p >= 0).all(1) & (np.abs(p.sum(1) - 1) <= _ROUNDING))  # NaN compares as False
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"probabilities has {shown(p[row].tolist(), 80)} in {rows_text(np.flatnonzero(bad))}, but every "
            "row must hold numbers >= 0 with the sum 1: pass predict_proba, or a softmax of scores"
        )
    return p
