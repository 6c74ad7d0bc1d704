"""Mixup, for methods that have weights of labels: mixtures of rows are taught the mixtures of their weights."""

from collections.abc import Callable

from torch import Tensor

from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import Role, hyperparameters, number
from oneof.train.batch import Batch


@hyperparameters
class Mixing(PartialLabelClassifier):
    """A method whose network is also shown mixtures ``t x + (1 - t) x'`` of two rows."""

    mixup: float | None = number(
        None,
        ">= 0",
        doc="Weight of the loss on mixtures of two rows, which are taught the mixtures of their label weights; "
        "None is 1 without views and 0 with views, which serve the same end.",
        roles=Role.LATER,
        first=0.0,
    )

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
        weight = float(self.views is None) if self.mixup is None else self.mixup
        if not weight:
            return losses
        mixed = batch.mixup(network or self.network_, targets)
        return losses + weight * (mixed if shown is None else mixed * shown)
