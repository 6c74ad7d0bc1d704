"""PiCO: contrastive label disambiguation."""

from collections.abc import Iterator
from copy import deepcopy
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from oneof import functional as F
from oneof.estimator.fields import count, hyperparameters, number
from oneof.methods.embedding import embed, follow, new_projection, next_places
from oneof.methods.proden import PRODEN
from oneof.train.batch import Batch, Data


@hyperparameters
class PiCO(PRODEN):
    """Contrastive label disambiguation (Wang et al., ICLR 2022).

    An encoder gives outputs u and, through a projection head, an embedding q of unit length of the first view;
    its moving average gives an embedding k of the last view. With the embeddings of recent batches in a queue,
    minimises ``-sum_j w_j log softmax(u)_j + contrastive_weight * L_cont``, where L_cont draws each q to the
    embeddings that have the same pseudo-label (the most likely candidate by u). Each class has a prototype, the
    moving average of its embeddings; w follows, with a share ``1 - phi``, the candidate of the nearest prototype.
    At first w = 1/|S|. Before epoch ``prototype_start`` L_cont draws q to its own k alone and w stays.

    Attributes
    ----------
    projection_ : torch.nn.Module
        The projection head.
    key_network_, key_projection_ : torch.nn.Module
        Moving averages of the encoder and of its head.
    queue_ : tensor of shape (queue length, embedding_size)
        Embeddings of recent batches.
    queue_labels_ : tensor of shape (queue length,)
        Their pseudo-labels, -1 where the first, random embeddings have not been overwritten yet.
    pointer_ : tensor
        The place in the queue that is overwritten next.
    prototypes_ : tensor of shape (K, embedding_size)
        The prototype of each class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import PiCO
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = PiCO(epochs=10, views="plain+jitter+jitter", random_state=0).fit(X, sets)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    needs_views: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False  # w follows the nearest prototype, whose nearness is no probability
    takes_outside: ClassVar[bool] = False

    contrastive_weight: float = number(0.5, ">= 0", doc="Weight of the contrastive loss.")
    temperature: float = number(0.07, "> 0", doc="Temperature tau of the contrastive loss.")
    encoder_momentum: float = number(0.999, "in [0, 1]", doc="Share that the encoder's moving average keeps.")
    prototype_momentum: float = number(0.99, "in [0, 1]", doc="Share that a prototype keeps.")
    queue_size: int = count(8192, doc="Length of the queue; it is at least that of a batch.")
    embedding_size: int = count(128, doc="Length of an embedding.")
    prototype_start: int = count(1, ">= 0", doc="First epoch in which w follows the prototypes.")
    phi_start: float = number(
        0.95, "in [0, 1]", doc="Share of w that is kept in the second epoch; 0.99 in the first."
    )
    phi_end: float = number(0.8, "in [0, 1]", doc="Share of w that is kept at the end; it falls linearly to it.")

    def start(self, data: Data) -> None:
        """Make the encoder, its moving average, their heads, the queue, the prototypes and w."""
        super().start(data)
        self.projection_ = new_projection(self.network_, data, self.embedding_size)
        self.key_network_, self.key_projection_ = deepcopy(self.network_), deepcopy(self.projection_)
        for module in (self.key_network_, self.key_projection_):
            module.requires_grad_(False)
        # One batch must fit: what a batch enqueues it must not overwrite itself.
        length = max(self.queue_size, self.batch_of(len(data)))
        like, axes = data.weight, data.weight.shape[:-1]
        queue = torch.randn(*axes, length, self.embedding_size).to(like)
        self.queue_ = normalize(queue, dim=-1)  # (Q, E)
        self.queue_labels_ = like.new_full((*axes, length), -1, dtype=torch.int64)  # (Q,): -1 matches nothing
        self.pointer_ = like.new_zeros(axes, dtype=torch.int64)
        self.prototypes_ = like.new_zeros(*axes, data.n_classes, self.embedding_size)  # (K, E)

    def parameter_groups(self) -> list[dict[str, object]]:
        """Train the encoder and its projection head; the moving average follows by itself."""
        parameters = [*self.network_.parameters(), *self.projection_.parameters()]
        return [{"params": parameters, "weight_decay": self.weight_decay_}]

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch; w, prototypes and moving average are refreshed before, the queue after."""
        S, w = batch.candidates, batch.take(self.w_)
        u, q = embed(self.network_, self.projection_, batch.views[0])
        pseudo = F.posterior(u.detach(), S).argmax(-1)  # (..., B)
        similarity = q.detach() @ self.prototypes_.mT  # (..., B, K), by the prototypes before this batch
        all_q, every_pseudo = batch.whole(q), batch.whole(pseudo)
        moved = F.moved_prototypes(self.prototypes_, all_q.detach(), every_pseudo, self.prototype_momentum)
        self.prototypes_.copy_(moved)
        follow(self.key_network_, self.network_, self.encoder_momentum)
        follow(self.key_projection_, self.projection_, self.encoder_momentum)
        with torch.no_grad():
            k = batch.whole(embed(self.key_network_, self.key_projection_, batch.views[-1])[1])
        if batch.before(self.prototype_start):
            contrastive = F.instance_contrast(q, batch.own(k), self.queue_, self.temperature)
        else:
            nearest = similarity.masked_fill(~S, float("-inf")).argmax(-1)
            phi = self._phi(batch)
            w = phi * w + (1 - phi) * one_hot(nearest, S.shape[-1]).to(w.dtype)
            batch.put(self.w_, w)
            contrast = F.label_contrast(all_q, k, self.queue_, every_pseudo, self.queue_labels_, self.temperature)
            contrastive = batch.own(contrast)
        losses = F.soft_cross_entropy(u, w) + self.contrastive_weight * contrastive
        yield self.with_mixed(losses, batch, w)
        self._enqueue(k, every_pseudo)

    def _phi(self, batch: Batch) -> float | Tensor:
        """The share of w that is kept: 0.99 in the first epoch, then set at the end of each epoch."""
        if batch.before(1):
            return 0.99
        return self.phi_start + batch.ramp(self.epochs, since=1) * (self.phi_end - self.phi_start)

    def _enqueue(self, k: Tensor, labels: Tensor) -> None:
        """Overwrite the oldest embeddings, going round at the end."""
        length, size = self.queue_.shape[-2], k.shape[-2]
        places = next_places(self.pointer_, k, length)  # (..., B)
        self.queue_.scatter_(-2, places.unsqueeze(-1).expand_as(k), k)
        self.queue_labels_.scatter_(-1, places, labels)
        self.pointer_.copy_((self.pointer_ + size) % length)
