"""The classifiers inside: those that have names here, and how any of them is fitted on weighted copies of rows."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from oneof.errors import InputError
from oneof.io.words import reason, shown

Array = NDArray[Any]
_LEAST = 1e-3  # probability of a candidate, below which no copy of its row is made


def _lightgbm() -> Any:
    try:
        from lightgbm import LGBMClassifier  # noqa: PLC0415  an optional package
    except ImportError:
        raise InputError(
            "estimator 'lightgbm' needs LightGBM, which is missing; pip install oneof[trees]"
        ) from None
    # XGBoost's own default for leaves: with LightGBM's, 0.001, leaves of nothing but copies of little weight get
    # values without bound, and fits diverge.
    return LGBMClassifier(n_jobs=1, verbose=-1, min_child_weight=1.0)


def _xgboost() -> Any:
    try:
        from xgboost import XGBClassifier  # noqa: PLC0415  an optional package
    except ImportError:
        raise InputError("estimator 'xgboost' needs XGBoost, which is missing; pip install xgboost") from None
    return XGBClassifier(n_jobs=1)


# Each with the defaults of its library, but for one thread, silence, and what is said below. Linear models need
# features of one scale.
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "extra-trees": ExtraTreesClassifier,
    "random-forest": RandomForestClassifier,
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
}


class FittedCopies(NamedTuple):
    """A classifier that was fitted on copies of rows, and the class number of each column of its probabilities."""

    estimator: Any
    columns: Array

    def probabilities(self, x: Array, n_classes: int) -> Array:
        """Return class probabilities (n, K); classes that the classifier has not seen have probability 0."""
        p = np.zeros((len(x), n_classes))
        p[:, self.columns] = self.estimator.predict_proba(x)
        return p


class OneClass:
    """What is fitted where all copies have one label, which many classifiers refuse."""

    def predict_proba(self, x: Array) -> Array:
        """Return ones (n, 1)."""
        return np.ones((len(x), 1))


def is_estimator(value: Any) -> bool:
    """Tell whether a value is a name or a classifier whose rows can be weighted."""
    if isinstance(value, str):
        return value in ESTIMATORS
    usable = not isinstance(value, type) and all(
        hasattr(value, name) for name in ("fit", "predict_proba", "get_params")
    )
    return usable and _weight_parameter(value) is not None


def make_estimator(estimator: Any, parameters: Mapping[str, Any] | None, seed: int) -> Any:
    """Return a classifier that is not fitted: a named one or a copy of a given one, with parameters and a seed.

    A random state that the classifier has already is kept. Parameters of a pipeline are those of its last step.
    """
    made = ESTIMATORS[estimator]() if isinstance(estimator, str) else clone(estimator)
    try:
        last_step(made).set_params(**parameters or {})
    except (ValueError, TypeError) as error:
        raise InputError(
            f"parameters is {shown(parameters)}, which {type(last_step(made)).__name__} does not take "
            f"({reason(error, 120)}); see its get_params()"
        ) from None
    unseeded = [
        name
        for name, value in made.get_params().items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    made.set_params(**dict.fromkeys(unseeded, seed))
    return made


def last_step(estimator: Any) -> Any:
    """Return the classifier at the end of a pipeline; any other is itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def fit_copies(estimator: Any, x: Array, r: Array, weight: Array) -> FittedCopies:
    """Fit a copy of a classifier on row i once for each label j, with the weight ``weight_i r_ij``."""
    rows, labels = np.nonzero((r >= _LEAST) & (weight[:, None] > 0))
    columns, codes = np.unique(labels, return_inverse=True)  # XGBoost wants labels without gaps
    if len(columns) == 1:
        return FittedCopies(OneClass(), columns)
    made = clone(estimator)
    try:
        made.fit(x[rows], codes, **{str(_weight_parameter(made)): weight[rows] * r[rows, labels]})
    except Exception as error:  # libraries have errors of their own kinds
        raise InputError(
            f"{type(last_step(made)).__name__} could not be fitted ({reason(error, 200)}); change its parameters"
        ) from error
    return FittedCopies(made, columns)


def _weight_parameter(estimator: Any) -> str | None:
    """Return the name by which ``fit`` takes the weights of rows, None where it does not."""
    if isinstance(estimator, Pipeline):
        name, step = estimator.steps[-1]
        inner = None if isinstance(step, str | None) else _weight_parameter(step)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
