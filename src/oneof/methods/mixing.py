"""Mixup, for methods that have weights of labels: mixtures of rows are taught the mixtures of their weights."""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import Role, hyperparameters, number
from oneof.train.batch import Batch

_ROWS = 400  # that all mixtures together count as
_MOST = 10_000  # rows; of more, mixtures count next to nothing and would cost as much time as ever


@hyperparameters
class Mixing(PartialLabelClassifier):
    """A method whose network is also shown mixtures ``t x + (1 - t) x'`` of two rows."""

    mixes: ClassVar[bool] = True  # where mixup is None and there are no views

    mixup: float | None = number(
        None,
        ">= 0",
        doc="Weight of the loss on mixtures of two rows, which are taught the mixtures of their label weights; "
        "None is 0 with views, which serve the same end, and min(1, 400 / n) for n rows without, 0 for more than "
        "10,000 (CAVL and PaPi: 0).",
        roles=Role.LATER,
        first=0.0,
    )

    @property
    def mixing_weight(self) -> float:
        """The weight of the loss on mixtures of a fit, 0 where there are none.

        They stand in for rows that are missing, so that they count less where there are many.
        """
        if self.mixup is not None:
            return self.mixup
        rows = self.training_rows_
        return min(1.0, _ROWS / rows) if self.mixes and self.views is None and rows <= _MOST else 0.0

    def with_mixed(
        self,
        losses: Tensor,
        batch: Batch,
        targets: Tensor,
        network: Callable[[Tensor], Tensor] | None = None,
        shown: Tensor | None = None,
    ) -> Tensor:
        """Add the losses of mixtures of rows to those of the rows.

        Targets (..., B, K) carry no gradient; ``network`` gives the scores of labels where they are not the
        outputs of ``network_``; where ``shown`` (..., B) is given, it says which mixtures count.
        """
        if not self.mixing_weight:
            return losses
        mixed = batch.mixup(network or self.network_, targets)
        return losses + self.mixing_weight * (mixed if shown is None else mixed * shown)
