"""Competition: wrong labels compete for the annotator's further guesses, which shows who is out of competition."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from oneof import functional as F
from oneof.estimator.fields import Role, choice, hyperparameters, number
from oneof.methods.mixing import Mixing
from oneof.train.batch import Batch, Data

_RATE, _DECAY = 0.03, 0.01  # learning rate and weight decay of tau, M and C
_AFFINITY_SCALE = 10.0  # so that one learning rate serves all three
_MOST_PAIRS = 256  # classes up to which every pair has its own affinity
_FEW_CLASSES = 32  # up to here all labels are computed: sets of any size then train together


@hyperparameters
class Competition(Mixing):
    r"""A generation process in which wrong labels compete.

    Whoever made the set knew the truth y and made Poisson(M) further guesses, each a wrong label k with the chance
    ``p_k = softmax_{k != y}(a_k + C_yk)``. S is the truth and all that was guessed. The truth is in S whatever the
    scores a say, while a wrong label had to win its place from the others: were the label that looks best a wrong
    one, it would have taken the guesses of all the others in S. The scores are tied to the classifier's outputs
    u, ``a = tau u``; tau, M and the affinities C between classes are learned with it. Minimises ::

        -log sum_{j in S} softmax(u)_j P(S | y = j)^kappa

    as expectation-maximisation does, without memory of earlier guesses: each view of an example is taught its own
    posterior r, or that of the first view, the one least changed. With tau = 0 and C = 0 every P(S | y = j) is the
    same, and by each view's own posterior this is CC. kappa is below 1 because real annotators do not guess
    exactly so.

    Weights pi of the candidates multiply the terms of the sum. With ``mixup`` the network is also shown mixtures
    ``t x + (1 - t) x'`` of two rows, and taught the mixture of their label weights.

    Attributes
    ----------
    tie_ : torch.nn.Linear
        Its biases are tau, and by how much log M has changed; its weights stay 0.
    log_rate_ : tensor of shape (1, 1)
        log M at first.
    affinity_ : torch.nn.Linear
        A tenth of C; for more than 256 classes, of one row that serves for all.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import Competition
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = Competition(epochs=20, random_state=0).fit(X, sets)
    >>> label, probability, margin = model.disambiguate(X, sets)
    >>> bool((label == y).mean() > 0.9)
    True
    >>> model.predict_top(X[:2], k=2).label.shape
    (2, 2)
    """

    takes_weights: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    kappa: float = number(
        0.1, ">= 0", doc="Trust in the process; 0 is CC but for targets, 1 believes it to the letter."
    )
    targets: str = choice(
        "own",
        "first",
        doc="Whose posterior teaches a view: its own, or that of the first view, which is surer and can lock in.",
        roles=Role.LATER,
    )

    def start(self, data: Data) -> None:
        """Make the network, tau = 1, M from the mean size of the sets, and C = 0."""
        super().start(data)
        K, sizes = data.n_classes, data.set_sizes()
        self.tie_ = nn.Linear(1, 2).to(data.weight)
        self.affinity_ = nn.Linear(K if K <= _MOST_PAIRS else 1, K).to(data.weight)
        for parameter in (*self.tie_.parameters(), *self.affinity_.parameters()):
            nn.init.zeros_(parameter)
        nn.init.ones_(self.tie_.bias[:1])
        wrong = (sizes.to(data.dtype).mean(-1) - 1).clamp(0.1, 0.9 * (K - 1)) / (
            K - 1
        )  # (...): share of the others
        self.log_rate_ = (-(K - 1) * torch.log1p(-wrong)).log()[..., None, None]  # all labels alike
        self._largest_set = None if K <= _FEW_CLASSES else int(sizes.max())

    def stack_settings(self) -> dict[str, Any]:
        """Add the size of the largest set, which decides on shapes; before a fit it is not known."""
        return super().stack_settings() | {"largest set": getattr(self, "_largest_set", None)}

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Learn tau, M and C at a rate of their own."""
        own = [
            {"params": list(self.tie_.parameters()), "lr": _RATE, "weight_decay": 0.0},
            {"params": list(self.affinity_.parameters()), "lr": _RATE, "weight_decay": _DECAY},
        ]
        return [*super().parameter_groups(), *own]

    def step(self, batch: Batch) -> Tensor:
        """Return the losses of a batch: the mean over its views, and that of its mixed rows."""
        u = torch.stack(batch.forward(self.network_))  # (views, ..., B, K)
        process = self.kappa * self._log_likelihood(u, batch.candidates, self._largest_set)
        teachers = slice(None) if self.targets == "own" else slice(1)
        r, entropy = F.posterior_and_entropy((u + process).detach()[teachers], batch.candidates)
        loss = (F.soft_cross_entropy(u, r) - (r * process).sum(-1) - entropy).mean(0)
        return self.with_mixed(loss, batch, r[0])

    def _log_likelihood(self, u: Tensor, candidates: Tensor, largest: int | None) -> Tensor:
        """``log P(S | y = j)`` (..., B, K)."""
        *axes, _, rows = self.affinity_.weight.shape  # axes that stand before the layers' own
        tau, change = self.tie_(u.new_zeros(*axes, 1, 1)).chunk(2, -1)
        each = torch.eye(rows, dtype=u.dtype, device=u.device) if rows > 1 else u.new_zeros(1, 1)
        affinity = _AFFINITY_SCALE * self.affinity_(each.expand(*axes, rows, rows))
        log_rate = self.log_rate_.to(u) + change  # networks of a loaded model move, its tables stay
        return F.guess_log_likelihood(tau * u, candidates, affinity, log_rate, largest, self.outside != 0)

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return the distribution r over the candidates: ``softmax(u)_j P(S | y = j)^kappa`` on S."""
        u = self.network_(x)
        largest = int(F.members(candidates).sum(-1).max()) if candidates.shape[-1] > _FEW_CLASSES else None
        return F.posterior(u + self.kappa * self._log_likelihood(u, candidates, largest), candidates)
