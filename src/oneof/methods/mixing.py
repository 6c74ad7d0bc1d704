"""Mixup, for methods that have weights of labels: mixtures of rows are taught the mixtures of their weights."""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import Role, hyperparameters, number
from oneof.train.batch import Batch


@hyperparameters
class Mixing(PartialLabelClassifier):
    """A method whose network is also shown mixtures ``t x + (1 - t) x'`` of two rows."""

    mixes_by: ClassVar[float] = 1.0  # the weight where mixup is None and there are no views

    mixup: float | None = number(
        None,
        ">= 0",
        doc="Weight of the loss on mixtures of two rows, which are taught the mixtures of their label weights; "
        "None is 0 with views, which serve the same end, and 1 without (IDGP: 0.5; CAVL and PaPi: 0).",
        roles=Role.LATER,
        first=0.0,
    )

    @property
    def mixing_weight(self) -> float:
        """The weight of the loss on mixtures, 0 where there are none."""
        usual = self.mixes_by if self.views is None else 0.0
        return usual if self.mixup is None else self.mixup

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
