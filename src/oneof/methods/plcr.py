"""PLCR: consistency regularisation."""

from typing import ClassVar

import torch
from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import count, hyperparameters, number
from oneof.methods.proden import PRODEN
from oneof.train.batch import Batch


@hyperparameters
class PLCR(PRODEN):
    """Consistency regularisation (Wu et al., ICML 2022).

    Minimises, for the outputs u_v of the views v of an example,

        ``lambda_e sum_v KL(w || softmax(u_v)) - sum_{j not in S} log(1 - softmax(u_0)_j)``

    where lambda_e rises linearly from 0 to ``weight`` over the first ``ramp`` epochs. The target w is the
    normalised geometric mean of the views' distributions on the candidates S, as it was at the previous visit
    (before that step's update); at first w = 1/|S|.

    Attributes
    ----------
    w_ : tensor of shape (training_rows_, K)
        The targets w.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import PLCR
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = PLCR(epochs=10, views="plain+jitter+jitter", random_state=0).fit(X, sets)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    needs_views: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = False  # its second term teaches that labels off the set are wrong

    weight: float = number(1.0, ">= 0", doc="Final weight lambda of the consistency between views.")
    ramp: int = count(100, doc="Epochs until the final weight is reached.")

    def step(self, batch: Batch) -> Tensor:
        """Return the losses of a batch and refresh its targets from all views."""
        logits = torch.stack(batch.forward(self.network_))  # (views, ..., B, K)
        w = batch.take(self.w_)
        batch.put(self.w_, F.posterior(logits.log_softmax(-1).mean(0), batch.candidates))
        divergence = F.soft_cross_entropy(logits, w).sum(0) - len(logits) * torch.special.entr(w).sum(-1)
        weight = self.weight * batch.ramp(self.ramp)
        loss: Tensor = weight * divergence + F.complementary_nll(logits[0], batch.candidates)
        return self.with_mixed(loss, batch, w)
