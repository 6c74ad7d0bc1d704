"""One digit in ten has a set without its true label: estimate how many, fit with that, and find these rows."""

import numpy as np
from sklearn.datasets import load_digits

import oneof

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
rng = np.random.default_rng(0)
candidates = rng.random((len(y), 10)) < 0.2
candidates[np.arange(len(y)), y] = True
for row in np.flatnonzero((rng.random(len(y)) < 0.1) & ~candidates.all(1)):
    candidates[row, rng.choice(np.flatnonzero(~candidates[row]))] = True  # another label in the place of the truth
    candidates[row, y[row]] = False
missing = ~candidates[np.arange(len(y)), y]

model = oneof.Competition(outside="auto", epochs=40, random_state=0).fit(X, candidates)
print(f"rows without their true label: {missing.mean():.3f}, estimated {model.outside_rate_.item():.3f}")

found = model.disambiguate(X, candidates)
label, probability, margin = found
none = found.outside > 0.5
print(f"none of these: {none.sum()} rows, of which {missing[none].sum()} of {missing.sum()} are right")
print(f"{np.mean(label == y):.3f} of the true labels found")
