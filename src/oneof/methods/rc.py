"""RC: risk-consistent learning."""

from collections.abc import Iterator
from typing import ClassVar

from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import hyperparameters
from oneof.methods.proden import PRODEN
from oneof.train.batch import Batch


@hyperparameters
class RC(PRODEN):
    """Risk-consistent learning (Feng et al., NeurIPS 2020).

    Minimises the cross-entropy ``-sum_j w_j log softmax(u)_j``, where w is the network's own distribution
    restricted to the candidates, ``w_j ~ softmax(u)_j`` on S, from a fresh pass after the previous visit's update;
    at first w = 1/|S|. PRODEN takes w from before that update.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import RC
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = RC(epochs=20, random_state=0).fit(X, sets)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    [0, 1, 2]
    """

    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch, then refresh its weights with the updated network."""
        w = batch.take(self.w_)
        losses = F.mean([F.soft_cross_entropy(u, w) for u in batch.forward(self.network_)])
        yield self.with_mixed(losses, batch, w)
        batch.put(self.w_, self.target(self.network_.forward_frozen_stats(batch.x), batch.candidates))

    def target(self, logits: Tensor, candidates: Tensor) -> Tensor:
        """Return the weights w (..., B, K) for the next visit."""
        return F.posterior(logits, candidates)
