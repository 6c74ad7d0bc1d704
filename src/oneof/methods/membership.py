"""Membership: labels that belong to nearly every candidate set around an instance are likely the true ones."""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from oneof import functional as F
from oneof.estimator.fields import count, hyperparameters
from oneof.methods.mixing import Mixing
from oneof.train.batch import Batch, Data

_HELD_OUT = 10  # one row in so many teaches the judge, and nothing else
_JUDGE_RATE, _JUDGE_DECAY = 0.05, 0.01
_FORGET = 0.01  # share of the moments that a batch renews


@hyperparameters
class Membership(Mixing):
    r"""Progressive identification helped by a second network that knows which labels are usually candidates.

    Network g learns membership, ``mu_j(x) = P(j in S | x)``, by binary cross-entropy on the candidate sets: no
    label weights enter, so that no mistake can confirm itself. The true label is always a candidate, a wrong one
    only when something suggests it; g's logits s are therefore higher at the true label. How far they are to be
    trusted is learned from one row in ten, which neither network sees: a judge with two numbers minimises ::

        -log sum_{j in S} softmax(lambda u + kappa (s - c))_j

    there, where u are the outputs of network f and c_j lies halfway between the mean s_j of rows whose true label
    is j and of rows in which j is a wrong candidate, by f's belief: what is merely frequent is taken away. On the
    other rows f minimises ``-sum_j w_j log softmax(u)_j`` with the label weights of their previous visit, ::

        w_j ~ exp(lambda u_j + kappa (s_j - c_j)) on S

    Where wrong labels are look-alikes, g keeps f from locking in its first mistakes; where they are drawn at
    random, f soon covers new sets better than g does, kappa is mostly near 0, and this is nearly PRODEN. Weights
    pi of the candidates multiply w_j, and the terms of the judge's sum. With ``mixup`` f is also shown mixtures
    ``t x + (1 - t) x'`` of two of its rows, and taught the mixture of their weights.

    Attributes
    ----------
    membership_network_ : torch.nn.Module
        g.
    judge_ : torch.nn.Linear
        The judge: its weights are lambda - 1 and kappa.
    w_ : tensor of shape (training_rows_, K)
        The label weights w.
    held_out_ : boolean tensor of shape (training_rows_, 1)
        Rows that teach the judge, and nothing else.
    weight_ : tensor of shape (training_rows_, 1)
        Sample weights.
    moments_ : tensor of shape (4, K)
        What c is made of: counts and sums of s, of true labels and of wrong candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import Membership
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = Membership(epochs=20, random_state=0).fit(X, sets)
    >>> label, probability, margin = model.disambiguate(X, sets)
    >>> bool((label == y).mean() > 0.9)
    True
    >>> model.membership_proba(X[:2]).shape  # P(j in S | x)
    (2, 3)
    """

    takes_weights: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    warm_up: int = count(
        10, ">= 0", doc="For so many epochs lambda = 1 and kappa = 0 in w, until there is something to judge."
    )

    def start(self, data: Data) -> None:
        """Make f (``network_``), g (``membership_network_``), the judge, the weights w and the moments of s."""
        super().start(data)
        self.membership_network_ = self.new_network(data, data.n_classes)
        self.judge_ = nn.Linear(2, 1).to(data.weight)  # its weights are lambda - 1 and kappa; its bias cancels
        for parameter in self.judge_.parameters():
            nn.init.zeros_(parameter)
        self.w_ = data.uniform()  # (N, K)
        drawn = torch.randperm(len(data)) < len(data) // _HELD_OUT  # not every tenth: classes may come in turn
        self.held_out_ = drawn.to(data.weight.device).expand(data.weight.shape).unsqueeze(-1).clone()  # (N, 1)
        self.weight_ = data.weight.unsqueeze(-1).clone()  # (N, 1): the moments count examples as the loss does
        self.moments_ = data.weight.new_zeros(*data.weight.shape[:-1], 4, data.n_classes)  # see F.midpoints

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Train g as f, and the judge at a rate of its own."""
        g, judge = ({"params": list(module.parameters())} for module in (self.membership_network_, self.judge_))
        own = {"lr": self.lr_, "weight_decay": self.weight_decay_}
        return [*super().parameter_groups(), g | own, judge | {"lr": _JUDGE_RATE, "weight_decay": _JUDGE_DECAY}]

    def step(self, batch: Batch) -> Tensor | Iterator[Tensor]:
        """Return the losses of a batch; renew its weights and the moments."""
        u, s = batch.forward_pair(self.network_, self.membership_network_)  # each (..., B, K)
        S, w = batch.candidates, batch.take(self.w_)
        member, belief = F.indicator(S, w.dtype), F.posterior(u[0].detach(), S)
        first, mean = u[0].detach(), F.mean([each.detach() for each in s])
        self._count(batch, belief, mean)
        scores = self._scores(first, mean)
        batch.put(self.w_, belief if batch.before(self.warm_up) else F.posterior(scores.detach(), S))
        held_out = batch.take(self.held_out_)[..., 0]
        free = ~(held_out | batch.preceding(held_out)) if self.mixing_weight else None  # else no message is due
        loss_f = self.with_mixed(F.mean([F.soft_cross_entropy(each, w) for each in u]), batch, w, shown=free)
        loss_g = F.mean([F.bernoulli_nll(each, member, 1 - member) for each in s])
        return torch.where(held_out, F.candidate_nll(scores, S), loss_f + loss_g)

    def _count(self, batch: Batch, belief: Tensor, s: Tensor) -> None:
        """Let the batch enter the moments."""
        weight = batch.take(self.weight_)
        true, wrong = weight * belief, weight * F.indicator(batch.candidates, s.dtype) * (1 - belief)
        seen = torch.stack(
            [batch.total(part * value) for part in (true, wrong) for value in (torch.ones_like(s), s)], -2
        )
        self.moments_.lerp_(seen, _FORGET)

    def _scores(self, u: Tensor, s: Tensor) -> Tensor:
        """``lambda u + kappa (s - c)``, up to a constant."""
        centre = F.midpoints(self.moments_.to(s))  # the networks of a loaded model move, its tables stay
        both = torch.stack([u, s - centre.unsqueeze(-2)], -1)  # (..., B, K, 2)
        added: Tensor = self.judge_(both.flatten(-3, -2))
        return u + added.view(u.shape)

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return w of rows with candidates."""
        return F.posterior(self._scores(self.network_(x), self.membership_network_(x)), candidates)

    def membership_proba(self, X: Any) -> NDArray[Any]:
        """Return mu (n, K): how likely each label is to be a candidate of this row, true or not."""
        return self.evaluate(lambda x: self.membership_network_(x).sigmoid(), X)
