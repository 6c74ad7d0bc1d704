"""Digits with candidate sets, a tenth of which lack the truth: find such rows, decide a few, learn again."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

import oneof
from oneof.review import rank
from oneof.review.held_out import predict_held_out

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]
rng = np.random.default_rng(0)
sets = np.eye(10, dtype=bool)[y] | (rng.random((500, 10)) < 0.2)
sets[::10] = np.eye(10, dtype=bool)[(y[::10] + 1) % 10]  # the truth is not among them

model = oneof.CC(epochs=20, random_state=0)
ranking = rank(predict_held_out(model, X, pd.DataFrame(sets)), sets)
wrong = ranking.answer != y
print(f"{wrong.mean():.0%} of all answers are wrong, {wrong[ranking.order[:50]].mean():.0%} of the first fifty")
for row in ranking.order[:3]:
    print(f"row {row}: answer {ranking.answer[row]}, wrong by {ranking.wrong[row]:.0%} ({ranking.reason[row]})")

decisions = {int(row): int(y[row]) for row in ranking.order[:50]}  # what a person would say; None: none of these
new = oneof.apply_decisions(sets, decisions)
before, after = (model.fit(X, each).predict(X) for each in (sets, new.y))
print(f"right before {(before == y).mean():.3f}, after {(after == y).mean():.3f}")
