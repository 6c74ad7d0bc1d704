"""A method of your own in one file: a sharpened posterior on the candidates is the target."""

from sklearn.datasets import load_digits

import oneof
from oneof import functional as F
from oneof.data.corrupt import uniform
from oneof.estimator import PartialLabelClassifier, hyperparameters, number
from oneof.testing import check_method


@hyperparameters
class Sharpened(PartialLabelClassifier):
    """Cross-entropy to the network's own posterior on the candidates, sharpened by a power."""

    power: float = number(2.0, "> 0", doc="To which the posterior is raised before it sums to 1 again.")

    def step(self, batch):
        """Return the losses of a batch, the mean over its views."""
        outputs = batch.forward(self.network_)
        target = F.posterior(self.power * outputs[0].detach(), batch.candidates)
        return F.mean([F.soft_cross_entropy(u, target) for u in outputs])


X, y = load_digits(return_X_y=True)
candidates = uniform(y, 10, 0.3, seed=0)
for method in (Sharpened(epochs=30, random_state=0), oneof.CC(epochs=30, random_state=0)):
    print(method, round(method.fit(X[:1200], candidates[:1200]).score(X[1200:], y[1200:]), 3))
check_method(Sharpened)
