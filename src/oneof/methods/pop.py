"""POP: progressive purification."""

from typing import ClassVar

import torch
from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import count, hyperparameters, number
from oneof.methods.proden import PRODEN
from oneof.train.batch import Batch, Data

_STILL = 1e-4  # share of all labels: sets that lose fewer have settled


@hyperparameters
class POP(PRODEN):
    """Progressive purification (Xu et al., ICML 2023).

    Learns as PRODEN does, on sets that shrink. From epoch ``warm_up`` on, whenever the number of an epoch is a
    multiple of ``period``, a label j leaves its set for good when

        ``w-bar_j / max_k w-bar_k < theta``

    where w-bar is the mean of the label weights w at the ends of the last ``period`` epochs; what is left of w-bar
    becomes w. Whenever fewer than one label in 10,000 has left, theta grows to ``theta (1 + increase)``, at most
    to ``theta_end``. The likeliest label always stays.

    Attributes
    ----------
    w_ : tensor of shape (training_rows_, K)
        The label weights w.
    kept_ : tensor of shape (training_rows_, K)
        The candidates that are left, with their weights where they have some.
    total_ : tensor of shape (training_rows_, K)
        Sum of w over the epochs since w-bar was last looked at.
    theta_ : tensor of shape (1, 1)
        The present theta.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import POP
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = POP(epochs=20, warm_up=5, random_state=0).fit(X, sets)
    >>> label, probability, margin = model.disambiguate(X, sets)
    >>> bool((label == y).mean() > 0.9)
    True
    """

    trains_in_parts: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = False  # what leaves a set is taken for wrong, for good

    warm_up: int = count(20, ">= 0", doc="First epoch after which labels may leave.")
    period: int = count(5, doc="Epochs from one purification to the next, over which w is averaged.")
    theta: float = number(1e-3, "in [0, 1]", doc="First threshold, relative to the likeliest label of the row.")
    theta_end: float = number(0.4, "in [0, 1]", doc="Largest threshold that it grows to.")
    increase: float = number(1e-3, ">= 0", doc="Share by which the threshold grows when sets have settled.")

    def start(self, data: Data) -> None:
        """Make PRODEN's network and w; all candidates are kept."""
        super().start(data)
        self.kept_ = data.candidates.clone()  # (N, K)
        self.total_ = torch.zeros_like(self.w_)  # (N, K)
        self.theta_ = torch.full_like(self.w_[..., :1, :1], self.theta)  # (1, 1)

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Purify after the epoch before, if it was its turn."""
        ended = epoch - 1
        if ended < 0:
            return
        self.total_ += self.w_
        if ended % self.period == 0:
            if ended >= self.warm_up:
                self._purify(data)
            self.total_.zero_()

    def _purify(self, data: Data) -> None:
        """Let unlikely labels go, and raise theta where hardly any went."""
        unlikely = self.total_ < self.theta_ * self.total_.amax(-1, keepdim=True)
        gone = data.total((unlikely & F.members(self.kept_)).sum(-1, keepdim=True))  # (1, 1)
        self.kept_.masked_fill_(unlikely, 0)
        self.w_.copy_(F.uniform(self.total_.masked_fill(unlikely, 0.0), self.w_.dtype))
        settled = (gone < _STILL * data.all_rows * unlikely.shape[-1]) & (self.theta_ < self.theta_end)
        grown = (self.theta_ * (1 + self.increase)).clamp(max=self.theta_end)
        self.theta_.copy_(torch.where(settled, grown, self.theta_))

    def step(self, batch: Batch) -> Tensor:
        """Return the losses of a batch and refresh its weights, both on the candidates that are left."""
        return self.identify(batch, batch.take(self.kept_))
