"""CC: classifier-consistent learning."""

from typing import ClassVar

from torch import Tensor

from oneof import functional as F
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.fields import hyperparameters
from oneof.train.batch import Batch


@hyperparameters
class CC(PartialLabelClassifier):
    """Classifier-consistent learning (Feng et al., NeurIPS 2020).

    Minimises ``-log sum_{j in S} softmax(u)_j`` for the network's outputs u and the candidate set S: the
    likelihood of the set when wrong candidates come uniformly. Weights pi of the candidates enter as
    ``-log sum_{j in S} pi_j softmax(u)_j``. Keeps no label table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import CC
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = CC(epochs=20, random_state=0).fit(X, sets)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    takes_weights: ClassVar[bool] = True
    takes_outside: ClassVar[bool] = True
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True

    def step(self, batch: Batch) -> Tensor:
        """Return the losses of a batch, the mean over its views."""
        return F.mean([F.candidate_nll(u, batch.candidates) for u in batch.forward(self.network_)])
