"""A boosted or randomised tree, or any other scikit-learn classifier, learns from candidate sets."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oneof

# Digits whose true label is hidden among others: each wrong one is a candidate with probability 0.4.
X, y = load_digits(n_class=6, return_X_y=True)
candidates = np.random.default_rng(0).random((len(y), 6)) < 0.4
candidates[np.arange(len(y)), y] = True
X, X_test, candidates, _, y, y_test = train_test_split(X, candidates, y, random_state=0)

trees = oneof.EMClassifier("extra-trees", parameters={"n_estimators": 30}, random_state=0).fit(X, candidates)
print("loss by round    ", np.round(trees.history_["loss"], 3))
print("extra trees      ", f"{trees.score(X_test, y_test):.3f}")
print("training labels  ", f"{(trees.transduction_ == y).mean():.3f} are found")

linear = oneof.EMClassifier(make_pipeline(StandardScaler(), LogisticRegression()), rounds=3, random_state=0)
print("linear model     ", f"{linear.fit(X, candidates).score(X_test, y_test):.3f}")

trees.save("trees.safetensors")  # arrays, no pickle
again = oneof.load_model("trees.safetensors")
print("the same, loaded ", np.array_equal(again.predict_proba(X_test), trees.predict_proba(X_test)))
