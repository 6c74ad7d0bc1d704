"""Membership: labels that belong to nearly every candidate set around an instance are likely the true ones."""

from collections.abc import Iterator
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from oneof import functional as F
from oneof.base import PartialLabelClassifier
from oneof.engine import Batch, Data
from oneof.hyperparameters import count, hyperparameters, number

_FORGET = 0.01  # share of the moments that a batch renews


@hyperparameters
class Membership(PartialLabelClassifier):
    r"""Progressive identification helped by a second network that knows which labels are usually candidates.

    Network g learns membership, ``mu_j(x) = P(j in S | x)``, by binary cross-entropy on the candidate sets: no
    label weights enter, so that no mistake can confirm itself. The true label is always a candidate, a wrong one
    only when something suggests it; g's logits s are therefore higher at the true label. Let s_j be normal with
    mean m1_j where candidate j is true, with mean m0_j where it is wrong, and variance v in both cases. Then by
    Bayes' rule the true label of an example with candidates S is distributed as ::

        w_j ~ theta_j exp(kappa (s_j - c_j)) on S,   kappa = (m1 - m0) / v,   c_j = (m1_j + m0_j) / 2

    with theta = softmax(u) of network f, and f minimises ``-sum_j w_j log theta_j`` with w of the previous visit.
    m1, m0 and v are moving averages over batches, weighted by f's own belief, softmax(u) on S; kappa takes the
    mean gap over all labels. Where membership tells true candidates from wrong ones badly, kappa is near 0 and the
    method is PRODEN. c_j takes away what is merely frequent: a label that joins every set proves nothing.

    Parameters
    ----------
    kappa : float or None
        Trust in membership; None estimates it as above.
    warm_up : int
        For so many epochs kappa is 0, until f's belief says something.
    """

    kappa: float | None = number(None, ">= 0")
    warm_up: int = count(10, ">= 0")

    def start(self, data: Data) -> None:
        """Make f (``network_``), g (``membership_network_``), the weights w and the moments of s."""
        super().start(data)
        self.membership_network_ = self.new_network(data, data.n_classes)
        self.w_ = F.uniform(data.candidates, data.dtype)  # (N, K)
        self.weight_ = data.weight.unsqueeze(-1).clone()  # (N, 1): the moments count examples as the loss does
        self.moments_ = self.w_.new_zeros(*self.w_.shape[:-2], 6, data.n_classes)  # see F.discriminant

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Train g as f."""
        g = {
            "params": list(self.membership_network_.parameters()),
            "lr": self.lr,
            "weight_decay": self.weight_decay,
        }
        return [*super().parameter_groups(), g]

    def step(self, batch: Batch) -> Tensor | Iterator[Tensor]:
        """Return the losses of a batch; renew its weights and the moments."""
        u = batch.through(self.network_)  # each (..., B, K)
        s = batch.through(self.membership_network_)
        S, w = batch.candidates, batch.take(self.w_)
        member = S.to(w.dtype)
        self._renew(batch, u[0].detach(), F.mean([each.detach() for each in s]))
        loss_f = F.mean([F.soft_cross_entropy(each, w) for each in u])
        return loss_f + F.mean([F.bernoulli_nll(each, member, 1 - member) for each in s])

    def _renew(self, batch: Batch, u: Tensor, s: Tensor) -> None:
        """Let the batch enter the moments and the table of weights."""
        belief = F.posterior(u, batch.candidates)
        weight = batch.take(self.weight_)
        true, wrong = weight * belief, weight * (batch.candidates.to(belief.dtype) - belief)
        seen = torch.stack([(part * s**power).sum(-2) for part in (true, wrong) for power in range(3)], -2)
        self.moments_.lerp_(seen, _FORGET)
        tilt = 0.0 if batch.epoch < self.warm_up else self._tilt(s)
        batch.put(self.w_, F.posterior(u + tilt, batch.candidates))

    def _tilt(self, s: Tensor) -> Tensor:
        """``kappa (s - c)``: what membership says of each label."""
        moments = self.moments_.to(s.device)  # the networks of a loaded model move, its tables stay
        kappa, centre = F.discriminant(moments)
        slope = kappa.unsqueeze(-1) if self.kappa is None else self.kappa
        return slope * (s - centre.unsqueeze(-2))

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return w of rows with candidates."""
        return F.posterior(self.network_(x) + self._tilt(self.membership_network_(x)), candidates)

    def membership_proba(self, X: Any) -> NDArray[Any]:
        """Return mu (n, K): how likely each label is to be a candidate of this row, true or not."""
        return self._evaluate(lambda x: self.membership_network_(x).sigmoid(), self._check_rows(X))
