"""VALEN: variational label enhancement."""

from copy import deepcopy
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from oneof import functional as F
from oneof.estimator.fields import choice, count, hyperparameters, number
from oneof.methods.proden import PRODEN
from oneof.train.batch import Batch, Data
from oneof.train.runtime import evaluating

_ROWS_AT_ONCE = 512  # whose features are computed


@hyperparameters
class VALEN(PRODEN):
    """Variational label enhancement (Xu et al., NeurIPS 2021), in the form of its released code.

    An inference network gives outputs e of the rows; with S the candidates, ``c = softmax_S(e) + floor`` are the
    parameters of a Dirichlet distribution from which one label distribution d is drawn. After a warm-up of PRODEN,
    the classifier's outputs u, e and the decoder are trained together on ::

        reconstruction_weight * (feature_weight |decoder(d) - x|^2 + set_weight BCE(d, S) + |softmax(sigmoid(d d'))
        - A|^2) + divergence_weight * KL(Dir(alpha) || Dir(1)) + inference_weight * CE(O, e)
        + classifier_weight * CE(D, u)

    with means over features, labels and the batch, ``alpha = exp(e / 4)`` within [0.01, 30], and A the
    row-normalised graph of each row and its k nearest neighbours. O is the classifier's own distribution on S and
    D = correct * d + (1 - correct) * O, d restricted to S, both as they were at the previous visit.

    The one optimiser goes on from the warm-up with its momentum, where the released code makes a new one; the
    warm-up takes the mean over views, the rest their sum; features for the graph are taken in evaluation mode.

    Attributes
    ----------
    inference_network_, decoder_ : torch.nn.Module
        The inference network and the decoder.
    w_, d_ : tensors of shape (training_rows_, K)
        O and D.
    neighbours_ : tensor of shape (training_rows_, k)
        Numbers of the nearest rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import VALEN
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = VALEN(epochs=20, random_state=0).fit(X, sets)
    >>> label, probability, margin = model.disambiguate(X, sets)
    >>> bool((label == y).mean() > 0.9)
    True
    """

    largest_lr: ClassVar[float] = 0.03  # five losses add up: at the common 0.1 the inference network diverges

    warm_up: int = count(
        10, ">= 0", doc="Epochs of PRODEN; then the graph is made, from features of images and rows of tables."
    )
    reconstruction_weight: float = number(
        1.0, ">= 0", doc="Weight of the reconstructions; alpha in the released code."
    )
    divergence_weight: float = number(0.1, ">= 0", doc="Weight of the divergence; beta in the released code.")
    inference_weight: float = number(
        5.0, ">= 0", doc="Weight of the inference network's loss; gamma in the released code."
    )
    classifier_weight: float = number(
        1.0, ">= 0", doc="Weight of the classifier's loss; theta in the released code."
    )
    correct: float = number(1.0, "in [0, 1]", doc="Share of d in D.")
    neighbours: int = count(3, doc="Nearest neighbours k of a row in the graph.")
    feature_weight: float = number(0.01, ">= 0", doc="Weight of the features among the reconstructions.")
    set_weight: float = number(0.01, ">= 0", doc="Weight of the candidate sets among the reconstructions.")
    floor: float = number(
        0.01, "> 0", doc="Smallest parameter of the Dirichlet distribution that d is drawn from."
    )
    inference_start: str = choice(
        "initial",
        "warmed",
        doc="Weights that the inference network starts from: the classifier's first or warmed ones.",
    )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # the graph is made of all rows at once
        return tags

    def start(self, data: Data) -> None:
        """Make the classifier, the inference network, the decoder, O (``w_``), D and the neighbour lists."""
        super().start(data)
        self.inference_network_ = deepcopy(self.network_)
        size = prod(data.shape)
        self.decoder_ = nn.Sequential(nn.Linear(data.n_classes, size), nn.ReLU(), nn.Linear(size, size))
        for layer in self.decoder_:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight)
                nn.init.constant_(layer.bias, 0.01)
        self.decoder_.to(data.weight)
        self.d_ = self.w_.clone()  # (N, K)
        k = min(self.neighbours, len(data) - 1)
        self.neighbours_ = torch.zeros_like(self.w_[..., :1], dtype=torch.int64).repeat_interleave(k, -1)  # (N, k)

    def parameter_groups(self) -> list[dict[str, object]]:
        """Train the three networks alike."""
        networks = (self.network_, self.inference_network_, self.decoder_)
        parameters = [parameter for network in networks for parameter in network.parameters()]
        return [{"params": parameters, "weight_decay": self.weight_decay_}]

    def start_epoch(self, epoch: int, data: Data) -> None:
        """When the warm-up is over: let D start as O, and find the neighbours."""
        if epoch != self.warm_up:
            return
        self.d_.copy_(self.w_)
        if self.inference_start == "warmed":
            self.inference_network_.load_state_dict(self.network_.state_dict())
        if len(data.shape) > 1:
            with evaluating([self.network_]):
                x = torch.cat([self.network_.features(rows) for rows in data.blocks(_ROWS_AT_ONCE)], -2)
        else:
            x = data.x if isinstance(data.x, Tensor) else torch.cat(list(data.blocks(_ROWS_AT_ONCE)))
        self.neighbours_.copy_(F.nearest_neighbours(x, self.neighbours_.shape[-1]))

    def step(self, batch: Batch) -> Tensor:
        """Return the losses of a batch and refresh O and D."""
        if batch.before(self.warm_up):
            return self.identify(batch, batch.candidates)
        S = batch.candidates
        u, e = batch.forward_pair(self.network_, self.inference_network_)
        own, drawn = batch.take(self.w_), batch.take(self.d_)  # O and D
        d = batch.dirichlet(F.posterior(e[0], S) + self.floor)  # (..., B, K)
        divergence = F.dirichlet_kl((e[0] / 4).exp().clamp(0.01, 30.0))
        inference = torch.stack([F.soft_cross_entropy(each, own) for each in e]).sum(0)
        classifier = torch.stack([F.soft_cross_entropy(each, drawn) for each in u]).sum(0)
        # Through logarithms, so that candidates whose sample underflows to zero are not lost for ever.
        # Restricted to S without the weights of S, which d has from its distribution.
        d_on_S = F.posterior(d.clamp_min(torch.finfo(d.dtype).tiny).log(), F.possible(S))
        batch.put(self.d_, self.correct * d_on_S + (1 - self.correct) * own)
        batch.put(self.w_, F.posterior(u[0], S))
        losses = (
            self.reconstruction_weight * self._reconstruction(batch, d)
            + self.divergence_weight * divergence
            + self.inference_weight * inference
            + self.classifier_weight * classifier
        )
        return self.with_mixed(losses, batch, drawn)

    def _reconstruction(self, batch: Batch, d: Tensor) -> Tensor:
        """How badly d explains the features, the candidate sets and the neighbours of the batch."""
        x = batch.x.flatten(d.dim() - 1)
        features = (self.decoder_(d) - x).square().mean(-1)
        target = F.indicator(batch.candidates, d.dtype)
        # The released code takes the distribution for logits; so does this.
        sets = binary_cross_entropy_with_logits(d, target, reduction="none").mean(-1)
        similarity = (d @ d.mT).sigmoid().softmax(-1)  # (..., B, B)
        graph = (similarity - F.adjacency(batch.take(self.neighbours_), batch.index).to(d.dtype)).square().mean(-1)
        loss: Tensor = self.feature_weight * features + self.set_weight * sets + graph
        return loss
