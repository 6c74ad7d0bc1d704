"""DIRK: distilling reliable knowledge."""

from collections.abc import Iterator
from copy import deepcopy
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from oneof import functional as F
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import count, hyperparameters, number
from oneof.methods.embedding import embed, follow, new_projection, next_places
from oneof.train.batch import Batch, Data


@hyperparameters
class DIRK(PartialLabelClassifier):
    """Distillation of reliable knowledge (Wu et al., AAAI 2024).

    A teacher, the moving average of the network, gives probabilities p of the first view. Scaled to sum to one on
    the candidates S they are a, and on the other labels c; the network learns, by cross-entropy of the same view,

        ``t = alpha a + (1 - alpha) c``,  ``alpha = M max c / (M max c + min_S a)``,  ``M = 1 / sum_S p``

    so that no label outside the set passes a candidate. Added, times ``contrastive_weight``, is a contrast (REF):
    an embedding q of the last view is drawn to the teacher's embeddings of the first view, those of recent batches
    in a queue among them, whose t has its mode at the same label; each counts by the softmax of the cosine
    between targets, divided by ``target_temperature``. Before epoch ``contrast_start`` q is drawn to its own row
    alone. Without views both see the same row.

    Attributes
    ----------
    projection_ : torch.nn.Module
        The projection head of the embeddings.
    teacher_, teacher_projection_ : torch.nn.Module
        Moving averages of the network and of its head.
    queue_ : tensor of shape (queue length, embedding_size)
        The teacher's embeddings of recent batches.
    queue_targets_ : tensor of shape (queue length, K)
        Their targets t, zero where the first, random embeddings have not been overwritten yet.
    pointer_ : tensor
        The place in the queue that is overwritten next.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import DIRK
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = DIRK(epochs=20, random_state=0).fit(X, sets)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    [0, 1, 2]
    """

    trains_in_parts: ClassVar[bool] = True

    teacher_momentum: float = number(0.99, "in [0, 1]", doc="Share that the teacher keeps in every step.")
    contrastive_weight: float = number(1.0, ">= 0", doc="Weight of the contrast; 0 is DIRK without REF.")
    temperature: float = number(0.07, "> 0", doc="Temperature of similarities of embeddings.")
    target_temperature: float = number(0.4, "> 0", doc="Temperature of similarities of targets.")
    queue_size: int = count(4096, doc="Length of the queue; it is at least that of a batch.")
    embedding_size: int = count(128, doc="Length of an embedding.")
    contrast_start: int = count(
        1, ">= 0", doc="First epoch in which targets say which embeddings belong together."
    )

    def start(self, data: Data) -> None:
        """Make the network, its teacher, their heads and the queue."""
        super().start(data)
        self.projection_ = new_projection(self.network_, data, self.embedding_size)
        self.teacher_, self.teacher_projection_ = deepcopy(self.network_), deepcopy(self.projection_)
        for module in (self.teacher_, self.teacher_projection_):
            module.requires_grad_(False)
        length = max(self.queue_size, self.batch_of(len(data)))  # a batch must not overwrite itself
        like, axes = data.weight, data.candidates.shape[:-2]
        self.queue_ = normalize(torch.randn(*axes, length, self.embedding_size).to(like), dim=-1)  # (Q, E)
        self.queue_targets_ = like.new_zeros(*axes, length, data.n_classes)  # (Q, K)
        self.pointer_ = like.new_zeros(axes, dtype=torch.int64)

    def parameter_groups(self) -> list[dict[str, object]]:
        """Train the network and its head; the teacher follows."""
        parameters = [*self.network_.parameters(), *self.projection_.parameters()]
        return [{"params": parameters, "weight_decay": self.weight_decay_}]

    def step(self, batch: Batch) -> Iterator[Tensor]:
        """Yield the losses of a batch; then the teacher follows and the queue takes its embeddings."""
        first, last = batch.views[0], batch.views[-1]
        with torch.no_grad():
            outputs, k = embed(self.teacher_, self.teacher_projection_, first)
            targets = F.rectified(outputs, batch.candidates)
        u, q = embed(self.network_, self.projection_, first)
        losses = F.soft_cross_entropy(u, targets)
        k, targets = batch.whole(k), batch.whole(targets)
        if self.contrastive_weight:
            if len(batch.views) > 1:
                q = embed(self.network_, self.projection_, last)[1]
            losses = losses + self.contrastive_weight * self._contrast(batch, q, k, targets)
        yield losses
        follow(self.teacher_, self.network_, self.teacher_momentum)
        follow(self.teacher_projection_, self.projection_, self.teacher_momentum)
        self._enqueue(k, targets)

    def _contrast(self, batch: Batch, q: Tensor, k: Tensor, targets: Tensor) -> Tensor:
        """How far each q is from the embeddings that it belongs with; k and targets are of the whole step."""
        if batch.before(self.contrast_start):
            return F.instance_contrast(q, batch.own(k), self.queue_, self.temperature)
        temperatures = self.temperature, self.target_temperature
        return batch.own(
            F.target_contrast(batch.whole(q), k, self.queue_, targets, self.queue_targets_, *temperatures)
        )

    def _enqueue(self, k: Tensor, targets: Tensor) -> None:
        """Overwrite the oldest embeddings."""
        length = self.queue_.shape[-2]
        places = next_places(self.pointer_, k, length).unsqueeze(-1)  # (..., B, 1)
        self.queue_.scatter_(-2, places.expand_as(k), k)
        self.queue_targets_.scatter_(-2, places.expand_as(targets), targets.to(self.queue_targets_.dtype))
        self.pointer_.copy_((self.pointer_ + k.shape[-2]) % length)
