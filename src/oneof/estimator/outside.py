"""How many rows lack their true label: estimated from the sets of rows that a model has not seen."""

import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from torch import Tensor
from torch.nn.functional import logsigmoid

from oneof import functional as F
from oneof.errors import InputError, KindError
from oneof.estimator.features import as_numpy
from oneof.estimator.held_out import Folds, folds_of, held_out_log_proba, weighted_if_needed
from oneof.estimator.method_base import MethodBase
from oneof.io.words import shown
from oneof.labels import check_same_rows, encode_weights
from oneof.labels.sparse_sets import AnySets
from oneof.train.runtime import threads

if TYPE_CHECKING:
    from oneof.estimator.classifier import PartialLabelClassifier

FOLDS = 3
LEAST_RATE = 0.01  # lower estimates are within what is found where no row lacks its label
_LEAST_LOG = -60.0  # of probabilities
_MOST_PAIRS = 256  # classes up to which every pair has its own affinity
_FEW_CLASSES = 32  # up to here all labels are computed
_MOST_NUMBERS = 300_000  # rows times pairs of labels that are looked at
_DECAY = 0.01
_ITERATIONS = 200


def outside_rate(
    model: "PartialLabelClassifier",
    X: Any,
    y: Any,
    folds: int = FOLDS,
    random_state: int | None = 0,
    separator: str | None = None,
) -> float:
    """Estimate the share of rows whose true label is not among their candidates; no true labels are needed.

    Copies of the model are fitted on the other folds, and give every row its probabilities p. The rate eps
    maximises the likelihood of all sets, ``sum_i log sum_j softmax(beta log p_i)_j P(S_i | y = j)``. P is the
    process of `oneof.Competition`, in which wrong labels compete for the annotator's guesses, but with the chance
    eps the truth was then swapped for any label that was not named. All of it is fitted along: beta, and the
    process's tau, M and C.

    Parameters
    ----------
    model : PartialLabelClassifier
        A method with its settings.
    X, y : as for `fit`
        Rows and their candidate sets.
    folds : int, default=3
        Into how many parts the rows are split.
    random_state : int or None, default=0
        Of the split.
    separator : str, optional
        Splits strings such as ``"cat|dog"``.

    Returns
    -------
    float
        The rate, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from oneof import CC
    >>> X = np.repeat(np.eye(3), 60, 0) + np.random.default_rng(0).normal(0, 0.1, (180, 3))
    >>> y = np.repeat([0, 1, 2], 60)
    >>> outside_rate(CC(network="linear", epochs=20, random_state=0), X, np.eye(3)[y]) < 0.01
    True
    """
    if not isinstance(model, MethodBase):
        raise KindError(
            f"model is {shown(model, 60)}, but must be a method with settings, such as oneof.Competition()"
        )
    sets, _ = encode_weights(y, separator=separator)
    X = rows_to_split(X, sets, folds, random_state)
    return _held_out_rate(model, X, sets, folds_of(len(sets), folds, random_state))


def estimated_rate(model: "PartialLabelClassifier", x: Any, sets: NDArray[Any], weight: ArrayLike | None) -> float:
    """Return what ``outside="auto"`` means for checked rows; an estimate below 1 % is taken for 0."""
    if len(x) < 2 * FOLDS:
        return 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself has warned of the same
        rate = _held_out_rate(model, x, sets, folds_of(len(x), FOLDS, 0), weight)
    return rate if rate >= LEAST_RATE else 0.0


def _held_out_rate(
    model: "PartialLabelClassifier", X: Any, sets: NDArray[Any], split: Folds, weight: ArrayLike | None = None
) -> float:
    return fitted_rate(held_out_log_proba(plain(model), X, weighted_if_needed(sets), split, weight), sets)


def plain(model: "PartialLabelClassifier") -> "PartialLabelClassifier":
    """Return a copy of a model that trusts every set, and trains on all rows without a trace."""
    trusting = {"outside": 0.0, "outside_rule": "share"}
    alone = {**trusting, "checkpoint": None, "verbose": 0, "validation_fraction": 0.0, "patience": None}
    copy: PartialLabelClassifier = clone(model).set_params(**alone)
    return copy


def rows_to_split(X: Any, sets: AnySets, folds: Any, random_state: Any) -> Any:
    """Return X as an array or a frame; refuse what cannot be split so."""
    X, rows, seed = as_numpy(X), len(sets), random_state
    X = X.to_numpy() if isinstance(X, pd.Index) else X
    check_same_rows(X.shape[0] if getattr(X, "shape", ()) else 0, rows)
    if isinstance(folds, bool) or not isinstance(folds, Integral) or not 2 <= int(folds) <= rows // 2:
        raise InputError(f"folds is {shown(folds, 60)}, but must be a whole number from 2 to {rows // 2}")
    if seed is not None and (
        isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**32
    ):
        raise InputError(
            f"random_state is {shown(seed, 60)}, but must be None or a whole number from 0 to 2**32 - 1"
        )
    return X


def with_outside(sets: NDArray[Any], rate: float) -> NDArray[np.float64]:
    """Return weights (n, K) of all labels for calibrated probabilities: those off the sets by the rate."""
    weights = F.outside_weights(torch.as_tensor(sets), torch.float64).numpy()
    return np.where(weights < 0, -weights * rate / (1 - rate), weights)


def fitted_rate(log_p: NDArray[Any], sets: NDArray[Any]) -> float:
    """Return the rate of `outside_rate` from log-probabilities (n, K) of rows that their model has not seen."""
    n, K = sets.shape
    largest = None if K <= _FEW_CLASSES else int((sets > 0).sum(1).max())
    most = max(50, _MOST_NUMBERS // (K * (largest or K)))
    if n > most:
        chosen = np.arange(most) * n // most
        log_p, sets = log_p[chosen], sets[chosen]
    u = torch.as_tensor(log_p, dtype=torch.float64).clamp_min(_LEAST_LOG)
    likelihood = _Process(u, F.outside_weights(torch.as_tensor(sets), u.dtype), largest)
    optimizer = torch.optim.LBFGS(
        likelihood.parameters(), max_iter=_ITERATIONS, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = likelihood()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    with threads(1):  # tensors are small
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return float(np.nan_to_num(likelihood.logit.detach().sigmoid().item()))


class _Process(torch.nn.Module):
    """Minus the mean log-likelihood of candidate sets, given probabilities of a model."""

    def __init__(self, u: Tensor, weights: Tensor, largest: int | None) -> None:
        super().__init__()
        K = u.shape[-1]
        self.u, self.weights, self.largest = u, weights, largest
        self.inside = F.members(weights)
        self.log_weight = weights.abs().log()  # minus infinity where no label is left outside
        wrong = (self.inside.sum(-1).to(u.dtype).mean() - 1).clamp(0.1, 0.9 * (K - 1)) / (K - 1)
        self.log_power, self.tau = (torch.nn.Parameter(u.new_full((), value)) for value in (0.0, 1.0))
        self.log_rate = torch.nn.Parameter((-(K - 1) * torch.log1p(-wrong)).log().view(1, 1))
        self.affinity = torch.nn.Parameter(u.new_zeros(K if K <= _MOST_PAIRS else 1, K))
        self.logit = torch.nn.Parameter(u.new_full((), -3.0))  # of the rate

    def forward(self) -> Tensor:
        """Return the loss."""
        u = self.log_power.exp() * self.u
        process = F.guess_log_likelihood(
            self.tau * u, self.weights, self.affinity, self.log_rate, self.largest, outside=True
        )
        share = torch.where(self.inside, logsigmoid(-self.logit), logsigmoid(self.logit))
        terms = u.log_softmax(-1) + process + share + self.log_weight
        return -terms.logsumexp(-1).mean() + _DECAY * self.affinity.square().sum() / len(u)
