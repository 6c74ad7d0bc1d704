"""Folds that keep the labels of candidate sets in balance, and scorers that need no true labels."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

import oneof

X, y = load_iris(return_X_y=True)  # sorted by class: plain folds would lack one
candidates = np.random.default_rng(0).random((150, 3)) < 0.3
candidates[np.arange(150), y] = True

folds = oneof.CandidateKFold(5, shuffle=True, random_state=0)
model = oneof.EMClassifier(LogisticRegression(max_iter=500), rounds=2, random_state=0)
scorers = {name: oneof.SCORERS[name] for name in ("approximated_accuracy", "covering_rate", "set_log_likelihood")}
for name, values in cross_validate(model, X, candidates, cv=folds, scoring=scorers).items():
    print(f"{name:28} {values.mean():.3f}")

grid = {"estimator__C": [0.001, 0.1, 10.0]}
search = GridSearchCV(model, grid, cv=folds, scoring=oneof.SCORERS["set_log_likelihood"]).fit(X, candidates)
print(search.best_params_, f"accuracy on true labels {search.best_estimator_.score(X, y):.3f}")
