"""Which method? Compare them on held-out rows by candidate sets alone, then fit the one to take."""

import numpy as np
from sklearn.datasets import load_wine

import oneof

X, y = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
candidates = np.eye(3, dtype=bool)[y]
candidates[np.arange(len(y)), (y + 1) % 3] |= (
    rng.random(len(y)) < 0.6
)  # look-alikes: the next class is often there

found = oneof.compare(X, candidates, ["cc", "proden", "membership"], settings={"epochs": 30}, random_state=0)
print(found)

model = oneof.METHODS[found.best](epochs=30, random_state=0).fit(X, candidates)
print(f"{found.best}: {np.mean(model.transduction_ == y):.3f} of the true labels found")
print(f"sure {found.sure:.2f}, behind the best on average: {found.scores['cc'].behind.mean:.4f} (cc)")
