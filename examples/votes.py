"""Five annotators of different skill label digits: fit with their votes, resolve every row, see whom to trust."""

import numpy as np
from sklearn.datasets import load_digits

import oneof

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
rng = np.random.default_rng(0)
skills = {"anna": 0.9, "ben": 0.8, "carl": 0.7, "dora": 0.6, "emil": 0.2}
columns = [np.where(rng.random(len(y)) < skill, y, rng.integers(10, size=len(y))) for skill in skills.values()]
missing = rng.random((len(y), 5)) < 0.4  # not everybody sees every digit
missing[np.arange(len(y)), rng.integers(5, size=len(y))] = False
votes = oneof.from_votes(np.where(missing, None, np.stack(columns, 1)).tolist())

print("candidates a row", votes.candidates.sum(1).mean().round(2))
print(votes.annotators.set_axis([*skills]).round(2))
majority = votes.counts == votes.counts.max(1, keepdims=True)
print("majority   ", (majority[np.arange(len(y)), y] / majority.sum(1)).mean().round(3))
print("Dawid-Skene", (votes.consensus == y).mean().round(3))

resolved = oneof.resolve(oneof.IDGP(epochs=40, random_state=0), X, votes)
print("resolved   ", (resolved.label == y).mean().round(3))
print("worth a second look:", resolved.margin.argsort()[:5])
