"""PaPi: a guided prototypical classifier."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import count, hyperparameters, number
from oneof.methods.embedding import embed, new_projection
from oneof.methods.proden import PRODEN
from oneof.train.batch import Batch, Data


@hyperparameters
class PaPi(PRODEN):
    """Guided prototypical classifier (Xia et al., CVPR 2023).

    The network gives outputs u of the first view and, through a projection head, embeddings q of unit length; each
    class has a prototype P_j, the moving average of embeddings of that pseudo-label (the most likely candidate by
    u). The label weights follow the classifier, ``w = phi w + (1 - phi) softmax(u) on S``, and guide both:

        ``-sum_j w_j log softmax(u)_j + lambda_e sum_v [t KL(w || s_v) + (1 - t) KL(w' || s_v)]``

    where ``s_v = softmax(P q_v / temperature)`` for the embedding q_v of a mixture ``t x + (1 - t) x'`` of two
    rows of the first and of the last view, t from Beta(``mixing_beta``, ``mixing_beta``) once a batch, and w' is
    that of x'. lambda_e rises linearly from 0 to ``alignment_weight`` over the first ``ramp`` epochs. At first
    w = 1/|S|. Without views both see the same row.

    Attributes
    ----------
    w_ : tensor of shape (training_rows_, K)
        The label weights w.
    projection_ : torch.nn.Module
        The projection head of the embeddings.
    prototypes_ : tensor of shape (K, embedding_size)
        The prototype of each class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import PaPi
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = PaPi(epochs=20, random_state=0).fit(X, sets)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    [0, 1, 2]
    """

    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True
    mixes: ClassVar[bool] = False  # it has mixtures of its own
    takes_outside: ClassVar[bool] = False  # a prototype would gather rows of a label that they do not have

    alignment_weight: float = number(1.0, ">= 0", doc="Final weight lambda of the alignment with the prototypes.")
    ramp: int = count(10, doc="Epochs until the final weight is reached.")
    temperature: float = number(0.3, "> 0", doc="Temperature of similarities to prototypes.")
    mixing_beta: float = number(8.0, "> 0", doc="Parameter of the Beta distribution that mixtures are drawn from.")
    embedding_size: int = count(128, doc="Length of an embedding.")
    prototype_momentum_start: float = number(
        0.9, "in [0, 1]", doc="Share that a prototype keeps in the second epoch; 0.99 in the first."
    )
    prototype_momentum_end: float = number(
        0.5, "in [0, 1]", doc="Share that a prototype keeps at the end; it falls linearly to it."
    )
    phi_start: float = number(
        0.95, "in [0, 1]", doc="Share of w that is kept in the second epoch; 0.99 in the first."
    )
    phi_end: float = number(0.8, "in [0, 1]", doc="Share of w that is kept at the end; it falls linearly to it.")

    def start(self, data: Data) -> None:
        """Make the network, its head, the prototypes and w."""
        super().start(data)
        self.projection_ = new_projection(self.network_, data, self.embedding_size)
        axes = data.weight.shape[:-1]
        self.prototypes_ = data.weight.new_zeros(*axes, data.n_classes, self.embedding_size)  # (K, E)

    def parameter_groups(self) -> list[dict[str, object]]:
        """Train the network and its projection head."""
        parameters = [*self.network_.parameters(), *self.projection_.parameters()]
        return [{"params": parameters, "weight_decay": self.weight_decay_}]

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch by refreshed weights; then the prototypes move."""
        S, last = batch.candidates, batch.views[-1]
        u, q = embed(self.network_, self.projection_, batch.x)
        found = F.posterior(u.detach(), S)
        phi = self._falling(batch, self.phi_start, self.phi_end)
        w = phi * batch.take(self.w_) + (1 - phi) * found
        batch.put(self.w_, w)
        embeddings, labels = [q.detach()] * 2, [found.argmax(-1)] * 2
        views = [batch.x]
        if len(batch.views) > 1:
            with torch.no_grad():  # this view moves the prototypes, and is in no loss
                outputs, embeddings[1] = embed(self.network_, self.projection_, last)
            labels[1] = F.posterior(outputs, S).argmax(-1)
            views.append(last)
        aligned = 2 * F.mean(self._alignment(batch, views, w))
        losses = F.soft_cross_entropy(u, w) + self.alignment_weight * batch.ramp(self.ramp) * aligned
        yield self.with_mixed(losses, batch, w)
        momentum = self._falling(batch, self.prototype_momentum_start, self.prototype_momentum_end)
        seen = torch.cat([batch.whole(each) for each in embeddings], -2)
        named = torch.cat([batch.whole(each) for each in labels], -1)
        self.prototypes_.copy_(F.moved_prototypes(self.prototypes_, seen, named, momentum))

    def _alignment(self, batch: Batch, views: list[Tensor], w: Tensor) -> list[Tensor]:
        """How far the prototypes' distributions of mixed rows are from the weights of both rows, for each view."""
        t = batch.dirichlet(w.new_full((*w.shape[:-2], 2), self.mixing_beta))[..., :1]  # (..., 1)
        target, entropy = batch.mixed(w, t), batch.mixed(torch.special.entr(w).sum(-1), t)
        losses = []
        for view in views:
            q = embed(self.network_, self.projection_, batch.mixed(view, t))[1]
            losses.append(F.soft_cross_entropy(q @ self.prototypes_.mT / self.temperature, target) - entropy)
        return losses

    def _falling(self, batch: Batch, start: float, end: float) -> float | Tensor:
        """A share that is kept: 0.99 in the first epoch, then set at the end of each epoch."""
        if batch.before(1):
            return 0.99
        return start + batch.ramp(self.epochs, since=1) * (end - start)
