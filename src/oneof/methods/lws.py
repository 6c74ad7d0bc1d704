"""LWS: leveraged weighted loss."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from oneof import functional as F
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import hyperparameters, number
from oneof.train.batch import Batch, Data


@hyperparameters
class LWS(PartialLabelClassifier):
    """Leveraged weighted loss with the sigmoid (Wen et al., ICML 2021).

    Minimises ``beta0 sum_{j in S} w_j sigmoid(-u_j) + beta sum_{j not in S} w_j sigmoid(u_j)`` for the network's
    outputs u. The weights w are the softmax of u over the candidates S and, apart from it, over the others, from a
    fresh pass after the previous visit's update; at first w = 1/K everywhere.

    Attributes
    ----------
    w_ : tensor of shape (training_rows_, K)
        The weights w.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import LWS
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = LWS(epochs=20, random_state=0).fit(X, sets)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    [0, 1, 2]
    """

    trains_in_parts: ClassVar[bool] = True
    decay_of_tables: ClassVar[float] = 1e-3  # its losses are bounded: 0.005 would outweigh them
    by_adamw: ClassVar[tuple[str, ...]] = ("mlp",)  # a linear network loses ten points and more on BirdSong
    adamw_share: ClassVar[float] = 0.3  # large steps drive outputs to where a sigmoid has no gradient

    beta0: float = number(1.0, ">= 0", doc="Weight of the candidates.")
    beta: float = number(1.0, ">= 0", doc="Weight of the other labels: the leverage.")

    def start(self, data: Data) -> None:
        """Make the network and the table of weights w."""
        super().start(data)
        self.w_ = torch.full_like(data.candidates, 1 / data.n_classes, dtype=data.dtype)  # (N, K)

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch, then refresh its weights with the updated network."""
        S, w = batch.candidates, batch.take(self.w_)
        yield F.mean([F.leveraged_sigmoid(u, S, w, self.beta0, self.beta) for u in batch.forward(self.network_)])
        logits = self.network_.forward_frozen_stats(batch.x)
        # A full set leaves no others: the softmax over nothing is not a number there and means no weight.
        batch.put(self.w_, torch.where(S, F.posterior(logits, S), F.posterior(logits, ~S).nan_to_num(0.0)))
