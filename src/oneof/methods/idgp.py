"""IDGP: the decompositional generation process."""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import Role, choice, count, hyperparameters, number
from oneof.methods.idgp_checks import warn_of_settings
from oneof.methods.idgp_released import released_losses, released_membership
from oneof.methods.mixing import Mixing
from oneof.methods.snapshots import Snapshot
from oneof.train.batch import Batch, Data

WEIGHTS = (0.01, 0.1, 1.0)  # of the likelihood, among which held-out rows choose
Prior = tuple[Tensor, Tensor, Tensor]  # the constants w, A and B of Eq. 6, each (views, ..., B, K)


@hyperparameters
class IDGP(Mixing):
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

    Weights pi of the candidates multiply the terms of the sum over S, and w; objective="released" has no place for
    them. For the first ``warm_up`` epochs f learns as PRODEN does and g learns z from S without f's label weights.
    With ``mixup`` f is also shown mixtures ``t x + (1 - t) x'`` of two rows, and taught the mixture of their
    weights w ~ exp(f(x)/gamma) on S of the previous visit; objective="released" has no place for that either.

    Attributes
    ----------
    network_, distractor_network_ : torch.nn.Module
        f and g.
    w_ : tensor of shape (training_rows_, K)
        Label weights of the warm-up and of mixtures of rows; with ``objective="released"`` its d.
    u_, v_ : tensors of shapes (training_rows_, K) and (training_rows_, 2K)
        Snapshots: log(lambda - 1) of epoch r; log(alpha - 1) and log(beta - 1) of epoch q. With b < 1, b stands in
        place of 1.
    u_taken_, v_taken_ : boolean tensors of shape (training_rows_, 1)
        Whether a row has its snapshot.
    likelihood_weight_ : tensor
        The weight that was chosen, with ``likelihood_weight=None``.
    p_ : tensor
        The constant z of ``objective="uniform"``.
    membership_ : tensor of shape (training_rows_, K)
        With ``objective="released"`` its bm, in place of snapshots and p_.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import IDGP
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = IDGP(epochs=20, random_state=0).fit(X, sets)
    >>> model.distractor_proba(X[:2]).shape  # P(j in S | x) of each label, were it a wrong one
    (2, 3)
    """

    takes_weights: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    objective: str = choice(
        "map",
        "ml",
        "uniform",
        "released",
        doc="map is the paper's objective; ml its likelihood alone, in full (IDGP-ML); uniform has a constant z, "
        "the paper's degenerate case; released is the objective of the authors' code.",
    )
    a: float = number(10.0, "> 0", doc="Scale of the concentrations lambda, alpha and beta.")
    b: float = number(1.0, ">= 0", doc="Least concentration; below 1, negative weights lambda - 1 are cut at 0.")
    gamma: float = number(0.7, "> 0", doc="Temperature of the outputs of f and g.")
    m: float = number(0.0, "in [0, 1]", doc="Share of lambda-hat that is lambda at epoch r.")
    d: float = number(0.5, "in [0, 1]", doc="Share of alpha-hat and beta-hat that is alpha and beta at epoch q.")
    r: int | None = count(None, ">= 0", doc="Epoch of m's snapshot; None is the first after the warm-up.")
    q: int | None = count(None, ">= 0", doc="Epoch of d's snapshot; None is the first after the warm-up.")
    eps: float = number(0.0, ">= 0", doc="Weight of a label that is no candidate in w, before scaling.")
    warm_up: int = count(10, ">= 0", doc="Epochs of the warm-up; released has so many for f, then as many for g.")
    prior_weight: float = number(1.0, ">= 0", doc="Weight of the prior of theta.")
    distractor_prior_weight: float = number(0.1, ">= 0", doc="Weight of the prior of z.")
    likelihood_weight: float | None = number(
        0.01,
        ">= 0",
        doc="Weight of the likelihood beside the priors. None chooses 0.01, 0.1 or 1 by how well they "
        "cover the candidate sets of held-out rows: 3 trainings more, below 5,000 rows 15.",
        optional=True,
    )
    distractors: str = choice(
        "labels",
        "rows",
        doc="Objective map only. labels is the paper's; under g's weight decay z is hardly more than how often a "
        "label is a wrong candidate. rows: g learns in full from what f takes for wrong, z knows rows, and f "
        "learns as with a constant z, since such a z misleads it.",
    )
    alternate: str = choice(
        "simultaneous",
        "sequential",
        doc="One backward pass for both networks, or Algorithm 1 literally: g first, then f with the new g.",
    )
    lr_g: float | None = number(
        None,
        "> 0",
        doc="Learning rate of g, which descends by SGD also where f has AdamW; None is 0.3 of what f has by SGD. "
        "For released g is trained as f, and None is lr.",
        roles=Role.VECTOR_IN_STACK,
    )
    weight_decay_g: float | None = number(
        None,
        ">= 0",
        doc="Weight decay of g; None is 0.5, or what f has for released and by SGD for distractors='rows'. 0.5 "
        "keeps g from learning single rows by heart; on small tables z then hardly depends on the row.",
        roles=Role.VECTOR_IN_STACK,
    )
    temperature_f: float = number(1.0, "> 0", doc="Released objective only: T1, temperature of f.")
    temperature_g: float = number(1.0, "> 0", doc="Released objective only: T2, temperature of g.")
    weight_f: float = number(1.0, ">= 0", doc="Released objective only: its alpha, weight of f's own targets.")
    weight_fg: float = number(1.0, ">= 0", doc="Released objective only: its beta, weight of g's targets for f.")
    weight_g: float = number(1.0, ">= 0", doc="Released objective only: its theta, weight of g's own targets.")
    weight_gf: float = number(1.0, ">= 0", doc="Released objective only: its gamma, weight of f's targets for g.")
    weight_consistency: float = number(
        1.0, ">= 0", doc="Released objective only: its delta = eta, weight of consistency with the targets."
    )
    consistency: str = choice(
        "always",
        "views",
        doc="Released objective only: always has the consistency term for every view, as its authors wrote it; "
        "views leaves it out where there is but one.",
    )

    def open_number(self) -> tuple[str, tuple[float, ...]] | None:
        """Have the weight of the likelihood chosen, where it is None."""
        chosen = self.likelihood_weight is None and self.objective in ("map", "uniform")
        return ("likelihood_weight_", WEIGHTS) if chosen else None

    def start(self, data: Data) -> None:
        """Make f (``network_``), g (``distractor_network_``), the weights w and the snapshots of Eq. 10, 11."""
        super().start(data)
        k = data.n_classes
        self.distractor_network_ = self.new_network(data, k if self.objective == "released" else 2 * k)
        self.w_ = data.uniform()  # (N, K): PRODEN's weights; d of the released code
        if self.objective == "released":
            self.membership_ = released_membership(self, data)  # (N, K): bm of the released code
            return
        wrong = (data.set_sizes().sum(-1) - len(data)).to(data.dtype)
        self.p_ = (wrong / (len(data) * (k - 1))).clamp(0.01, 0.99)  # the constant z of "uniform"
        if self.likelihood_weight is None:
            self.likelihood_weight_ = torch.full_like(self.p_, WEIGHTS[0])  # until it is chosen
        self.u_ = torch.zeros_like(self.w_)  # (N, K): log(lambda - min(b, 1)) at epoch r
        read = self.d > 0 and self.objective != "ml" and self._snapshot_epochs()[1] < self.epochs
        self.v_ = data.row_table(2 * k, "v_ of IDGP", read)  # (N, 2K): the same of alpha, beta at epoch q
        self.u_taken_ = torch.zeros_like(data.weight, dtype=torch.bool).unsqueeze(-1)  # (N, 1): whether it is made
        self.v_taken_ = torch.zeros_like(self.u_taken_)
        self._all_taken = False, False

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Warn, once a fit, of settings that are not what they seem; see which snapshots are complete."""
        if epoch == 0:
            warn_of_settings(self)
        if self.objective != "released":
            of_f, of_g = self._snapshots()
            self._all_taken = of_f.is_complete(), of_g.is_complete()

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Give g its own learning rate and weight decay; by AdamW's even steps z would follow f into mistakes."""
        plain = self.objective != "released"
        by = "sgd" if plain else self.optimizer_
        decay = 0.5 if plain and self.distractors == "labels" else self.decay_by(by)
        g = {"params": list(self.distractor_network_.parameters()), "plain": plain}
        g["lr"] = self.rate_by(by) * (0.3 if plain else 1) if self.lr_g is None else self.lr_g
        g["weight_decay"] = decay if self.weight_decay_g is None else self.weight_decay_g
        return [*super().parameter_groups(), g]

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch; with ``alternate="sequential"`` first g's, then f's."""
        if self.objective == "released":
            yield released_losses(self, batch)
        elif batch.before(self.warm_up):
            yield self._warm_up(batch)
        else:
            yield from self._maximum_a_posteriori(batch)

    def _warm_up(self, batch: Batch) -> Tensor:
        """PRODEN for f; for g the likelihood's own Bernoulli targets o - r with f's weights w in r's place."""
        u, v = self._outputs(batch)
        l = u / self.gamma  # noqa: E741
        w = self._weights(l[0], batch)
        distractor = F.indicator(batch.candidates, w.dtype) * (1 - w)  # (..., B, K)
        s = self.distractor_logits(v, batch.candidates)
        losses = F.prior_nll(l, s, w, distractor, 1 - distractor).mean(0)
        return self.with_mixed(losses, batch, w, self.class_scores)

    def _maximum_a_posteriori(self, batch: Batch) -> Iterator[Tensor]:
        S = batch.candidates
        u, v = self._outputs(batch)
        l = F.label_scores(u, self.a, self.b, self.gamma, S)  # noqa: E741
        s = self.distractor_logits(v, S)
        prior = None if self.objective == "ml" else self._prior(batch, u.detach(), v.detach())
        if self.alternate == "sequential" and self.objective != "uniform":
            yield self._nll(l.detach(), s, S, prior)
            s = self.distractor_logits(_stacked(batch.forward(self.distractor_network_.forward_frozen_stats)), S)
        loss = self._nll(l, s, S, prior)
        if self.mixing_weight:
            loss = self.with_mixed(loss, batch, self._weights(u[0] / self.gamma, batch), self.class_scores)
        del u, v, l, s, prior  # memory that gradients do not need would only push the rest out of the cache
        yield loss

    def _weights(self, l: Tensor, batch: Batch) -> Tensor:  # noqa: E741
        """The label weights w of the previous visit, in whose place those of this one are put."""
        w = batch.take(self.w_)
        batch.put(self.w_, F.posterior(l, batch.candidates))
        return w

    def _nll(self, l: Tensor, s: Tensor, candidates: Tensor, prior: Prior | None) -> Tensor:  # noqa: E741
        """The mean over views of the likelihood's loss, or of the likelihood's and the prior's."""
        if prior is None:
            return F.generation_nll(l, s, candidates).mean(0)
        if not self._knows_rows:
            return F.map_nll(l, s, candidates, self._weight(), *prior).mean(0)
        o = F.indicator(candidates, s.dtype)
        wrong = (o - F.posterior(l.detach(), candidates)).clamp_(min=0)  # not below: f may believe in labels off S
        of_f = F.map_nll(l, self._constant(s), candidates, self._weight(), *prior)
        return (of_f + F.bernoulli_nll(s, wrong, 1 - o)).mean(0)

    @property
    def _knows_rows(self) -> bool:
        return self.distractors == "rows" and self.objective == "map"

    def _weight(self) -> float | Tensor:
        """The weight of the likelihood: a number, or (..., 1, 1) where it was chosen."""
        given = self.likelihood_weight
        return self.likelihood_weight_[..., None, None] if given is None else given

    def _outputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Outputs u (views, ..., B, K) of f and v (views, ..., B, 2K) of g."""
        u, v = batch.forward_pair(self.network_, self.distractor_network_)
        return _stacked(u), _stacked(v)

    def distractor_logits(self, v: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Return the logits s of z from the outputs of g; constant when the generation is uniform."""
        v_alpha, v_beta = v.chunk(2, -1)
        if self.objective == "uniform":
            return self._constant(v_alpha)
        return F.distractor_logits(v_alpha, v_beta, self.a, self.b, self.gamma, candidates)

    def _constant(self, like: Tensor) -> Tensor:
        """The logits of the constant z, by which all candidates are alike: r ~ theta on S."""
        return torch.logit(self.p_.to(like))[..., None, None].expand_as(like)

    def _prior(self, batch: Batch, u: Tensor, v: Tensor) -> Prior:
        """Weights w, A, B of Eq. 6: each view's from its own outputs, and from the snapshots."""
        of_f, of_g = self._snapshots()
        mixed = (
            snapshot.mixed_with(F.log_excess(present, self.a, self.b, self.gamma), batch)
            for snapshot, present in ((of_f, u), (of_g, v))
        )
        log_w, log_v = (F.log_less(each, 1 - self.b) for each in mixed)
        w = F.dirichlet_weights(log_w, batch.candidates, self.eps).mul_(self.prior_weight)
        A, B = (each.mul_(self.distractor_prior_weight) for each in F.beta_weights(*log_v.chunk(2, -1)))
        return w, A, B

    def _snapshots(self) -> tuple[Snapshot, Snapshot]:
        """The snapshots of Eq. 10 and 11: of lambda at epoch r, of alpha and beta at epoch q."""
        (u_all, v_all), (r, q) = self._all_taken, self._snapshot_epochs()
        return (
            Snapshot(self.u_, self.u_taken_, u_all, r, self.m),
            Snapshot(self.v_, self.v_taken_, v_all, q, self.d),
        )

    def _snapshot_epochs(self) -> list[int]:
        return [max(self.warm_up, epoch or 0) for epoch in (self.r, self.q)]

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
        v: Tensor = self.distractor_network_(x)
        s = self._constant(v[..., : l.shape[-1]]) if self._knows_rows else self.distractor_logits(v, candidates)
        return F.responsibilities(l, s, candidates)

    def distractor_proba(self, X: Any) -> NDArray[Any]:
        """Return z (n, K): how likely each label is to come as a wrong candidate of this row.

        With ``objective="released"`` g estimates membership instead: how likely the label is to be a candidate.
        """
        return self.evaluate(self._distractor_proba, X)

    def _distractor_proba(self, x: Tensor) -> Tensor:
        v = self.distractor_network_(x)
        return (v / self.temperature_g if self.objective == "released" else self.distractor_logits(v)).sigmoid()


def _stacked(views: list[Tensor]) -> Tensor:
    """The views of a batch on a leading axis."""
    return views[0].unsqueeze(0) if len(views) == 1 else torch.stack(views)
