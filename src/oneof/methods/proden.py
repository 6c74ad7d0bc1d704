"""PRODEN: progressive identification."""

from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import hyperparameters
from oneof.methods.mixing import Mixing
from oneof.train.batch import Batch, Data


@hyperparameters
class PRODEN(Mixing):
    """Progressive identification (Lv et al., ICML 2020).

    Minimises the cross-entropy ``-sum_j w_j log softmax(u)_j``, where w is the network's own distribution
    restricted to the candidates, ``w_j ~ softmax(u)_j`` on S, as it was at the previous visit of the example
    (before that step's update); at first w = 1/|S|. With weights pi of the candidates ``w_j ~ pi_j softmax(u)_j``,
    and at first ``w_j ~ pi_j``. With ``mixup`` the network is also shown mixtures ``t x + (1 - t) x'`` of two
    rows, and taught the mixture of their weights.

    Attributes
    ----------
    w_ : tensor of shape (training_rows_, K)
        The label weights w; where classes are very many, one for each candidate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import PRODEN
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = PRODEN(epochs=20, random_state=0).fit(X, sets)
    >>> label, probability, margin = model.disambiguate(X, sets)
    >>> bool((label == y).mean() > 0.9)
    True
    """

    takes_weights: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = True
    takes_alim: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    def start(self, data: Data) -> None:
        """Make the network and the table of weights w."""
        super().start(data)
        self.w_ = data.uniform()  # (N, K)

    def step(self, batch: Batch) -> Tensor | Iterator[Tensor]:
        """Return the losses of a batch."""
        return self.identify(batch, batch.candidates)

    def identify(self, batch: Batch, candidates: Tensor) -> Tensor:
        """Return the losses of a batch and refresh its weights on the candidates from the first view."""
        logits = batch.forward(self.network_)  # each (..., B, K)
        w = batch.take(self.w_)
        batch.put(self.w_, F.posterior(logits[0], candidates))
        return self.with_mixed(F.mean([F.soft_cross_entropy(u, w) for u in logits]), batch, w)
