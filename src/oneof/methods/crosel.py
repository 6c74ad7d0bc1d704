"""CroSel: cross selection of confident pseudo-labels."""

from typing import ClassVar

import torch
from torch import Tensor

from oneof import functional as F
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import count, hyperparameters, number
from oneof.nn.networks import Network
from oneof.train.batch import Batch, Data
from oneof.train.evaluation import block_size
from oneof.train.runtime import eager, evaluating

_NONE = -1  # the label of a row that a network has not selected


@hyperparameters
class CroSel(PartialLabelClassifier):
    """Cross selection of confident pseudo-labels (Tian et al., CVPR 2024).

    Two networks learn as CC does for ``warm_up`` epochs. Then each selects rows for the other before every epoch:
    those for which its predictions after the last ``memory`` epochs agree on a candidate y, with a mean
    probability above ``threshold``. For the outputs u of the first view of a row and those r of a mixture of two
    rows, each network minimises

        ``[other has selected the row] -log softmax(u)_y + lambda (1 - share) CE(r, mixture of targets)``

    The first term is the mean over the selected rows of a batch. Rows of the first view are taught the network's
    own distribution on S by the last view, and the other way round; they are mixed as ``t x + (1 - t) x'`` with
    ``t = max(b, 1 - b)``, b from Beta(``mixing_beta``, ``mixing_beta``) once a batch. ``share`` is the mean share
    of rows that the two have selected, lambda ``consistency_weight``. The mean of both outputs predicts. Without
    views both see the same row.

    Attributes
    ----------
    second_network_ : torch.nn.Module
        The other network.
    labels_, confidence_ : tensors of shape (training_rows_, 2 memory)
        Predictions after recent epochs and their probabilities: those of the first network, then of the second.
    selected_ : tensor of shape (training_rows_, 2)
        The label y by which each network has selected a row, -1 where it has not.
    share_ : tensor of shape (1, 1)
        The mean share of selected rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import CroSel
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = CroSel(epochs=20, random_state=0).fit(X, sets)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    takes_weights: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    warm_up: int = count(10, ">= 0", doc="Epochs in which both networks learn as CC does.")
    memory: int = count(3, doc="Epochs whose predictions must agree.")
    threshold: float = number(0.9, "in [0, 1]", doc="Mean probability above which a prediction is selected.")
    consistency_weight: float = number(1.0, ">= 0", doc="Weight lambda of the loss on mixed rows.")
    mixing_beta: float = number(
        0.75, "> 0", doc="Parameter of the Beta distribution that mixtures are drawn from."
    )

    def start(self, data: Data) -> None:
        """Make both networks; nothing is remembered or selected yet."""
        super().start(data)
        self.second_network_ = self.new_network(data, data.n_classes)
        rows = data.weight.unsqueeze(-1)  # (N, 1)
        self.confidence_ = torch.zeros_like(rows).repeat_interleave(2 * self.memory, -1)  # (N, 2M)
        self.labels_ = torch.full_like(self.confidence_, _NONE, dtype=torch.int64)  # (N, 2M)
        self.selected_ = self.labels_[..., :2].clone()  # (N, 2)
        self.share_ = torch.zeros_like(rows[..., :1, :])  # (1, 1)

    def parameter_groups(self) -> list[dict[str, object]]:
        """Train both networks alike."""
        parameters = [parameter for network in self._networks() for parameter in network.parameters()]
        return [{"params": parameters, "weight_decay": self.weight_decay_}]

    def _networks(self) -> tuple[Network, Network]:
        return self.network_, self.second_network_

    def class_scores(self, x: Tensor) -> Tensor:
        """Return the mean of both networks' outputs."""
        first, second = (network(x) for network in self._networks())
        scores: Tensor = (first + second) / 2
        return scores

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Remember what both networks say after the epoch before; from the end of the warm-up on, select."""
        if epoch > max(0, self.warm_up - self.memory):
            self._remember(data)
        if epoch >= self.warm_up:
            labels, sure = self._by_network(self.labels_), self._by_network(self.confidence_)
            latest = labels[..., -1]
            chosen = (labels == latest.unsqueeze(-1)).all(-1) & (sure.mean(-1) > self.threshold) & (latest >= 0)
            self.selected_.copy_(latest.masked_fill(~chosen, _NONE))
            selected = data.total(chosen.to(self.share_.dtype).sum(-1, keepdim=True))  # (1, 1)
            self.share_.copy_(selected / (2 * data.all_rows))

    def _remember(self, data: Data) -> None:
        """Let the predictions of all rows push out the oldest ones; one that is no candidate is none."""
        size = block_size(data, data.x)
        everything = torch.arange(len(data), device=data.weight.device)
        found: list[tuple[Tensor, Tensor]] = []
        with evaluating(self._networks()), eager(self.compile):
            for x, index in zip(data.blocks(size), torch.split(everything, size), strict=True):
                outputs = torch.stack([network(x) for network in self._networks()], -2)  # (..., B, 2, K)
                sure, label = outputs.softmax(-1).max(-1)  # (..., B, 2)
                inside = F.members(data.sets_of(index)).gather(-1, label)
                found.append((sure, label.masked_fill(~inside, _NONE)))
        for table, news in zip((self.confidence_, self.labels_), zip(*found, strict=True), strict=True):
            new = torch.cat([self._by_network(table)[..., 1:], torch.cat(news, -2).unsqueeze(-1)], -1)
            table.copy_(new.flatten(-2))

    def _by_network(self, table: Tensor) -> Tensor:
        """What was remembered, (..., N, 2, memory)."""
        return table.view(*table.shape[:-1], 2, self.memory)

    def step(self, batch: Batch) -> Tensor:
        """Return the losses of a batch: the sum of both networks', neither of which reaches the other."""
        if batch.before(self.warm_up):
            first, second = batch.forward_pair(*self._networks())
            return F.mean([F.candidate_nll(u, batch.candidates) for u in first]) + F.mean(
                [F.candidate_nll(u, batch.candidates) for u in second]
            )
        selected = batch.take(self.selected_)  # (..., B, 2)
        return self._loss(batch, self.network_, selected[..., 1]) + self._loss(
            batch, self.second_network_, selected[..., 0]
        )

    def _loss(self, batch: Batch, network: Network, labels: Tensor) -> Tensor:
        """One network's losses by the labels (..., B) that the other has selected."""
        views = [batch.x] if len(batch.views) == 1 else [batch.x, batch.views[-1]]
        u = network(batch.x)
        with torch.no_grad():
            outputs = [u.detach(), *(network(view) for view in views[1:])]
            targets = [F.posterior(each, batch.candidates) for each in reversed(outputs)]
        chosen = (labels >= 0).to(u.dtype)
        own = -u.log_softmax(-1).gather(-1, labels.clamp_min(0).unsqueeze(-1)).squeeze(-1)
        share = batch.total(chosen.unsqueeze(-1)) / batch.all_rows
        known = own * chosen / share.clamp_min(1 / batch.all_rows)
        t = batch.dirichlet(u.new_full((*u.shape[:-2], 2), self.mixing_beta)).amax(-1, keepdim=True)  # (..., 1)
        mixed = torch.cat([batch.mixed(view, t) for view in views], batch.index.dim() - 1)
        logits = network(mixed).chunk(len(views), -2)
        pairs = zip(logits, targets, strict=True)
        consistency = F.mean([F.soft_cross_entropy(r, batch.mixed(target, t)) for r, target in pairs])
        weight = self.consistency_weight * (1 - self.share_.squeeze(-1))
        loss: Tensor = known + weight * consistency
        return loss
