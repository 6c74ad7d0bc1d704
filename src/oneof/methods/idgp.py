"""IDGP: the decompositional generation process."""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from oneof import functional as F
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import choice, count, hyperparameters, number
from oneof.train.batch import Batch, Data


@hyperparameters
class IDGP(PartialLabelClassifier):
    r"""Decompositional generation process (Qiao, Xu & Geng, ICLR 2023).

    A candidate set S is a correct label, ``y ~ Cat(theta)`` with ``theta ~ Dir(lambda)``, and the wrong labels
    that the instance itself suggests, ``Ber(z_j)`` with ``z_j ~ Beta(alpha_j, beta_j)``. Network f gives
    ``lambda = a exp(f(x)/gamma) + b``, network g gives alpha and beta likewise; theta and z are the posterior
    means of Eq. 8 and 9. Both are fitted by maximum a posteriori::

        - likelihood_weight * log sum_{j in S} theta_j prod_{k in S\j} z_k prod_{k not in S\j} (1 - z_k)
        - prior_weight * sum_j w_j log theta_j
        - distractor_prior_weight * sum_j [A_j log z_j + B_j log(1 - z_j)]

    with constants w ~ lambda-hat - 1 (scaled to sum to one over the labels), A ~ alpha-hat - 1 and
    B ~ beta-hat - 1 (scaled to sum to one for each label), where lambda-hat mixes a share m of lambda at epoch
    r with the present lambda, and alpha-hat, beta-hat a share d of epoch q.

    For the first ``warm_up`` epochs f learns as PRODEN does and g learns z from S without f's label weights.

    Parameters
    ----------
    objective : {"map", "ml", "uniform", "released"}
        The paper's objective; its likelihood alone, in full (IDGP-ML); with a constant z, the paper's degenerate
        case; the objective of the authors' released code.
    a, b, gamma
        Scale of the concentrations; below b = 1 the prior weights lambda - 1 can be negative and are cut at 0.
    m, d, r, q, eps
        Prior information kept, the epochs it is taken at (None: the first after the warm-up), and the weight
        of a non-candidate.
    alternate : {"simultaneous", "sequential"}
        One backward pass for both networks, or Algorithm 1 literally: g first, then f with the new g.
    lr_g, weight_decay_g : float or None
        For g. None is 0.3 * lr and 0.5, so that z knows what many rows share and no single row by heart (on
        small tables it then hardly depends on the row); with "released" None is as for f.
    temperature_f, temperature_g, weight_f, weight_fg, weight_g, weight_gf, weight_consistency
        Of "released" alone: its T1, T2, alpha, beta, theta, gamma and delta = eta.
    """

    objective: str = choice("map", "ml", "uniform", "released")
    a: float = number(10.0, "> 0")
    b: float = number(1.0, ">= 0")
    gamma: float = number(0.7, "> 0")
    m: float = number(0.0, "in [0, 1]")
    d: float = number(0.5, "in [0, 1]")
    r: int | None = count(None, ">= 0")
    q: int | None = count(None, ">= 0")
    eps: float = number(0.0, ">= 0")
    warm_up: int = count(10, ">= 0")
    prior_weight: float = number(1.0, ">= 0")
    distractor_prior_weight: float = number(0.1, ">= 0")
    likelihood_weight: float = number(0.01, ">= 0")
    alternate: str = choice("simultaneous", "sequential")
    lr_g: float | None = number(None, "> 0")
    weight_decay_g: float | None = number(None, ">= 0")
    temperature_f: float = number(1.0, "> 0")
    temperature_g: float = number(1.0, "> 0")
    weight_f: float = number(1.0, ">= 0")
    weight_fg: float = number(0.1, ">= 0")
    weight_g: float = number(1.0, ">= 0")
    weight_gf: float = number(1.0, ">= 0")
    weight_consistency: float = number(1.0, ">= 0")

    def start(self, data: Data) -> None:
        """Make f (``network_``), g (``distractor_network_``), the weights w and the snapshots of Eq. 10, 11."""
        super().start(data)
        k = data.n_classes
        self.distractor_network_ = self.new_network(data, k if self.objective == "released" else 2 * k)
        self.w_ = F.uniform(data.candidates, data.dtype)  # (N, K): PRODEN's weights; d of the released code
        if self.objective == "released":
            self.membership_ = data.candidates.to(data.dtype)  # (N, K): bm of the released code
            return
        wrong = (data.candidates.sum((-2, -1)) - len(data)).to(data.dtype)
        self.p_ = (wrong / (len(data) * (k - 1))).clamp(0.01, 0.99)  # the constant z of "uniform"
        self.u_ = torch.zeros_like(self.w_)  # (N, K): log(lambda - 1) at epoch r
        self.v_ = self.u_.repeat_interleave(2, -1)  # (N, 2K): log(alpha - 1) and log(beta - 1) at epoch q
        self.u_taken_ = torch.zeros_like(data.candidates[..., :1])  # (N, 1): whether the snapshot is made
        self.v_taken_ = torch.zeros_like(self.u_taken_)
        self._all_taken = False, False

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Warn, once a fit, of a prior that is not what Eq. 6 says; see which snapshots are complete."""
        if epoch == 0 and self.b < 1 and self.objective in ("map", "uniform"):
            warnings.warn(
                f"b is {self.b}: below 1 the prior weights lambda - 1 can be negative and are cut at 0; use b=1",
                stacklevel=2,
            )
        if self.objective != "released":
            u_whole, v_whole = self._all_taken
            self._all_taken = (
                u_whole or (self.m > 0 and bool(self.u_taken_.all())),
                v_whole or (self.d > 0 and bool(self.v_taken_.all())),
            )

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Give g its own learning rate and weight decay."""
        slow = self.objective != "released"
        lr_g = self.lr * (0.3 if slow else 1) if self.lr_g is None else self.lr_g
        decay_g = (0.5 if slow else self.weight_decay) if self.weight_decay_g is None else self.weight_decay_g
        g = {"params": list(self.distractor_network_.parameters()), "lr": lr_g, "weight_decay": decay_g}
        return [*super().parameter_groups(), g]

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch; with ``alternate="sequential"`` first g's, then f's."""
        if self.objective == "released":
            yield self._released(batch)
        elif batch.before(self.warm_up):
            yield self._warm_up(batch)
        else:
            yield from self._maximum_a_posteriori(batch)

    # --- the paper ----------------------------------------------------------------------------------------

    def _warm_up(self, batch: Batch) -> Tensor:
        """PRODEN for f; for g the likelihood's own Bernoulli targets o - r with f's weights w in r's place."""
        u, v = self._outputs(batch)
        u = u / self.gamma
        w = batch.take(self.w_)
        distractor = batch.candidates.to(w.dtype) - w  # (..., B, K)
        batch.put(self.w_, F.posterior(u[0], batch.candidates))
        s = self._distractor_logits(v, batch.candidates)
        return F.prior_nll(u, s, w, distractor, 1 - distractor).mean(0)

    def _maximum_a_posteriori(self, batch: Batch) -> Iterator[Tensor]:
        S = batch.candidates
        u, v = self._outputs(batch)
        l = F.label_scores(u, self.a, self.b, self.gamma, S)  # noqa: E741
        s = self._distractor_logits(v, S)
        prior = None if self.objective == "ml" else self._prior(batch, u.detach(), v.detach())

        if self.alternate == "sequential" and self.objective != "uniform":
            yield self._nll(l.detach(), s, S, prior)
            s = self._distractor_logits(_stacked(batch.forward(self.distractor_network_.forward_frozen_stats)), S)
        loss = self._nll(l, s, S, prior)
        del u, v, l, s, prior  # memory that gradients do not need would only push the rest out of the cache
        yield loss

    def _nll(
        self,
        l: Tensor,  # noqa: E741
        s: Tensor,
        candidates: Tensor,
        prior: tuple[Tensor, Tensor, Tensor] | None,
    ) -> Tensor:
        """The mean over views of the likelihood's loss, or of the likelihood's and the prior's."""
        if prior is None:
            return F.generation_nll(l, s, candidates).mean(0)
        return F.map_nll(l, s, candidates, self.likelihood_weight, *prior).mean(0)

    def _outputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Outputs u (views, ..., B, K) of f and v (views, ..., B, 2K) of g."""
        u, v = batch.forward_pair(self.network_, self.distractor_network_)
        return _stacked(u), _stacked(v)

    def _distractor_logits(self, v: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Logits s of z from g's outputs; constant when the generation is uniform."""
        v_alpha, v_beta = v.chunk(2, -1)
        if self.objective == "uniform":
            return torch.logit(self.p_)[..., None, None].expand_as(v_alpha)
        return F.distractor_logits(v_alpha, v_beta, self.a, self.b, self.gamma, candidates)

    def _prior(self, batch: Batch, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights w, A, B of Eq. 6: each view's from its own outputs, and from the snapshots."""
        u_whole, v_whole = self._all_taken
        log_w = self._with_snapshot(batch, u, self.u_, self.u_taken_, u_whole, self.r, self.m)
        log_v = self._with_snapshot(batch, v, self.v_, self.v_taken_, v_whole, self.q, self.d)
        w = F.dirichlet_weights(log_w, batch.candidates, self.eps)
        A, B = F.beta_weights(*log_v.chunk(2, -1))
        return (
            w.mul_(self.prior_weight),
            A.mul_(self.distractor_prior_weight),
            B.mul_(self.distractor_prior_weight),
        )

    def _with_snapshot(
        self,
        batch: Batch,
        present: Tensor,
        table: Tensor,
        taken: Tensor,
        whole: bool,
        epoch: int | None,
        share: float,
    ) -> Tensor:
        """Log prior weights of Eq. 10 and 11; the snapshot is a row's first visit from ``epoch`` on."""
        log_present = F.log_prior_weight(present, self.a, self.b, self.gamma)
        if share == 0 or batch.before(self.warm_up if epoch is None else epoch):
            return log_present
        snapshot = batch.take(table)
        if not whole:
            snapshot = torch.where(batch.take(taken), snapshot, log_present[0])
            batch.put(table, snapshot)
            batch.put(taken, torch.ones_like(batch.take(taken)))
        return F.log_mix(snapshot, log_present, share)

    # --- the authors' released code -----------------------------------------------------------------------

    def _released(self, batch: Batch) -> Tensor:
        """L_F + L_G of the released code, summed over views; a warm-up of f alone, then of g alone."""
        o = batch.candidates
        d, bm = batch.take(self.w_), batch.take(self.membership_)
        u, v = batch.forward_pair(self.network_, self.distractor_network_)
        U, s = [each / self.temperature_f for each in u], [each / self.temperature_g for each in v]
        prior_f = _total([F.soft_cross_entropy(each, d) for each in U])
        prior_g = _total([F.bernoulli_nll(each, bm, 1 - bm) for each in s])
        first, second = batch.before(self.warm_up), batch.before(2 * self.warm_up)
        if first or not second:
            batch.put(self.w_, F.posterior(U[0], o))
        if not first:
            batch.put(self.membership_, o * s[0].sigmoid())
        if second:
            return prior_f if first else prior_g
        coupling = _total([self._released_coupling(*view, d, o) for view in zip(U, s, strict=True)])
        loss = self.weight_f * prior_f + self.weight_g * prior_g + coupling
        if len(batch.views) == 1:
            return loss
        ramp = batch.ramp(100, since=2 * self.warm_up) * self.weight_consistency
        return loss + ramp * _total([self._released_consistency(*view, d, bm) for view in zip(u, v, strict=True)])

    def _released_coupling(self, U: Tensor, s: Tensor, d: Tensor, o: Tensor) -> Tensor:
        """The terms in which each network weighs the other's labels: L_fg and L_gf."""
        pseudo_label = torch.zeros_like(o).scatter(-1, d.masked_fill(~o, -1).argmax(-1, keepdim=True), True)
        s_constant = s.detach()
        q = F.posterior(torch.where(pseudo_label, s_constant, -s_constant), o)
        p = F.posterior(U.detach(), o)
        from_g = F.soft_cross_entropy(U, q)
        from_f = F.bernoulli_nll(s, o.to(s.dtype), p + (~o).to(s.dtype))
        return self.weight_fg * from_g + self.weight_gf * from_f

    @staticmethod
    def _released_consistency(u: Tensor, v: Tensor, d: Tensor, bm: Tensor) -> Tensor:
        """KL(d || softmax(u)) and the positive part of KL(bm || sigmoid(v)), both without temperature."""
        entropy = torch.special.entr(d).sum(-1) + torch.special.entr(bm).sum(-1)
        divergence: Tensor = F.soft_cross_entropy(u, d) + F.bernoulli_nll(v, bm, torch.zeros_like(bm)) - entropy
        return divergence

    # --- prediction ---------------------------------------------------------------------------------------

    def class_scores(self, x: Tensor) -> Tensor:
        """Return log lambda: theta of an example whose candidate set is unknown."""
        u: Tensor = self.network_(x)
        if self.objective == "released":
            return u / self.temperature_f
        return F.label_scores(u, self.a, self.b, self.gamma)

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return the responsibilities r; the released code knows none and follows f."""
        if self.objective == "released":
            return super().label_posterior(x, candidates)
        l = F.label_scores(self.network_(x), self.a, self.b, self.gamma, candidates)  # noqa: E741
        return F.responsibilities(l, self._distractor_logits(self.distractor_network_(x), candidates), candidates)

    def distractor_proba(self, X: Any) -> NDArray[Any]:
        """Return z (n, K): how likely each label is to come as a wrong candidate of this row.

        With ``objective="released"`` g estimates membership instead: how likely the label is to be a candidate.
        """
        return self.evaluate(self._distractor_proba, X)

    def _distractor_proba(self, x: Tensor) -> Tensor:
        v = self.distractor_network_(x)
        return (v / self.temperature_g if self.objective == "released" else self._distractor_logits(v)).sigmoid()


def _stacked(views: list[Tensor]) -> Tensor:
    """The views of a batch on a leading axis."""
    return views[0].unsqueeze(0) if len(views) == 1 else torch.stack(views)


def _total(losses: list[Tensor]) -> Tensor:
    """The sum over views, as in the released code."""
    return torch.stack(losses).sum(0)
