"""CAVL: class activation value learning."""

from typing import ClassVar

from torch import Tensor

from oneof import functional as F
from oneof.estimator.fields import hyperparameters
from oneof.methods.rc import RC


@hyperparameters
class CAVL(RC):
    """Class activation value learning (Zhang et al., ICLR 2022).

    Minimises the cross-entropy to the candidate with the largest class activation value ``v_j = |1 - u_j| u_j``
    of the network's outputs u, from a fresh pass after the previous visit's update; at first to 1/|S| on the
    candidates S. An activation value is no probability, which weights of the candidates could multiply.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import CAVL
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = CAVL(epochs=20, random_state=0).fit(X, sets)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    [0, 1, 2]
    """

    takes_weights: ClassVar[bool] = False
    takes_outside: ClassVar[bool] = False
    zero_off_sets: ClassVar[bool] = True
    trains_in_parts: ClassVar[bool] = True
    mixes: ClassVar[bool] = False  # it loses up to five points by them

    def target(self, logits: Tensor, candidates: Tensor) -> Tensor:
        """Return the one-hot target (..., B, K) for the next visit; always a candidate."""
        return F.class_activation(logits, candidates)
