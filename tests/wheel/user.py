"""A user's program as type checkers see it: ``make wheel`` runs ``mypy --strict`` on it against the wheel."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import oneof
from oneof.data import PartialLabels

X: NDArray[np.float64] = np.zeros((2, 3))
sets = [["cat", "dog"], ["cow"]]

model = oneof.IDGP(epochs=3, lr=0.1, random_state=0)
assert_type(model.fit(X, sets), oneof.IDGP)
labels: NDArray[Any] = model.predict(X)
label, probability, margin = model.disambiguate(X, sets)
assert_type(oneof.load_dataset("lost"), PartialLabels)
assert_type(oneof.from_votes([["cat", "cat", "dog"]]), oneof.Votes)
best: str = oneof.compare(X, sets).best
trees = oneof.EMClassifier("extra-trees", rounds=2).fit(X, sets)

oneof.IDGP(epochs="3")  # type: ignore[arg-type]  # strict mode complains where nothing is ignored
oneof.IDPG()  # type: ignore[attr-defined]
