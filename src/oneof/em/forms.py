"""Forms in which fitted classifiers are stored: arrays, or the own text of a library. Nothing is unpickled.

A form predicts by itself, the same numbers as the classifier that it was made of. scikit-learn rebuilds a tree
only by private ways, which trust the numbers they are given: a damaged file could make it read beyond its memory.
So trees are walked here, after their arrays were checked.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from oneof.em.boosters import LightGBMForm, XGBoostForm
from oneof.em.estimators import Array, OneClass
from oneof.errors import InputError
from oneof.estimator.model_header import MisfitError
from oneof.io.words import shortened, shown

Arrays = dict[str, Array]
_BLOCK = 2**20  # nodes that are looked at together
_STORED = (
    "LogisticRegression, alone or behind a StandardScaler, DecisionTreeClassifier, RandomForestClassifier, "
    "ExtraTreesClassifier, LGBMClassifier and XGBClassifier"
)


class Form(Protocol):
    """What is stored of a fitted classifier, by which it predicts."""

    kind: ClassVar[str]

    def arrays(self) -> Arrays:
        """Return what the file holds."""

    def predict_proba(self, x: Array) -> Array:
        """Return the probabilities (n, columns) of rows."""


class OneClassForm(OneClass):
    """All rows have one class."""

    kind: ClassVar[str] = "one-class"

    def arrays(self) -> Arrays:
        """Nothing."""
        return {}


class LinearForm:
    """Logistic regression, with the means and scales of a scaler before it or without."""

    kind: ClassVar[str] = "linear"

    def __init__(self, arrays: Arrays, n_features: int, columns: int) -> None:
        rows = 1 if columns == 2 else columns
        shapes: dict[str, tuple[int, ...]] = {"coef": (rows, n_features), "intercept": (rows,)}
        if "mean" in arrays:
            shapes |= {"mean": (n_features,), "scale": (n_features,)}
        check_arrays(arrays, {name: (shape, np.floating) for name, shape in shapes.items()})
        if "scale" in arrays and not (arrays["scale"] > 0).all():
            raise MisfitError("the tensor 'form.scale' holds numbers that are not above 0")
        self._arrays = arrays
        self._model = LogisticRegression()
        self._model.coef_, self._model.intercept_ = arrays["coef"], arrays["intercept"]
        self._model.classes_, self._model.n_features_in_ = np.arange(columns), n_features
        self._scaler = StandardScaler() if "mean" in arrays else None
        if self._scaler is not None:
            self._scaler.mean_, self._scaler.scale_ = arrays["mean"], arrays["scale"]
            self._scaler.n_features_in_ = n_features

    def arrays(self) -> Arrays:
        """Coefficients and intercepts, and means and scales."""
        return self._arrays

    def predict_proba(self, x: Array) -> Array:
        """Return the softmax of linear scores."""
        p: Array = self._model.predict_proba(x if self._scaler is None else self._scaler.transform(x))
        return p


class ForestForm:
    """Decision trees, one behind the other; the mean of their leaves is predicted.

    Node i sends a row to ``left[i]`` where its feature ``feature[i]``, in float32, is at most ``threshold[i]``,
    else to ``right[i]``; a leaf has -1 there and predicts ``value[i]``.
    """

    kind: ClassVar[str] = "forest"

    def __init__(self, arrays: Arrays, n_features: int, columns: int) -> None:
        nodes = len(arrays.get("feature", ()))
        numbers: tuple[tuple[int, ...], type] = ((nodes,), np.integer)
        shapes = dict.fromkeys(("feature", "left", "right"), numbers)
        shapes |= {"threshold": ((nodes,), np.floating), "value": ((nodes, columns), np.floating)}
        roots = {"roots": (arrays.get("roots", np.empty(0)).shape, np.integer)}
        check_arrays(arrays, shapes | roots)
        self._arrays = arrays
        self._check(nodes, n_features)

    def _check(self, nodes: int, n_features: int) -> None:
        """Refuse trees in which a walk might not end, or leave the arrays."""
        found, at = self._arrays, np.arange(nodes)
        inner = found["left"] >= 0
        roots = found["roots"]
        onward = all((found[name][inner] > at[inner]).all() for name in ("left", "right"))
        inside = all((found[name][inner] < nodes).all() for name in ("left", "right"))
        features = found["feature"][inner]
        if not (onward and inside and (features >= 0).all() and (features < n_features).all()):
            raise MisfitError("the trees point to nodes or features that there are not")
        if roots.ndim != 1 or not roots.size or (roots < 0).any() or (roots >= nodes).any():
            raise MisfitError("the roots of the trees are no nodes")
        leaves = found["value"][~inner]
        if (leaves < 0).any() or not np.allclose(leaves.sum(1), 1):
            raise MisfitError("leaves of the trees hold no distributions")

    def arrays(self) -> Arrays:
        """All nodes, and the first of each tree."""
        return self._arrays

    def predict_proba(self, x: Array) -> Array:
        """Return the mean of the leaves that rows come to, added up tree by tree as scikit-learn does."""
        feature, threshold = self._arrays["feature"], self._arrays["threshold"]
        left, right = self._arrays["left"], self._arrays["right"]
        roots, value = self._arrays["roots"], self._arrays["value"]
        with np.errstate(over="ignore"):
            x32 = x.astype(np.float32)
        p = np.zeros((len(x), value.shape[1]))
        size = max(1, _BLOCK // len(roots))
        for begin in range(0, len(x), size):
            rows = x32[begin : begin + size]
            at = np.repeat(roots[:, None], len(rows), axis=1)  # (trees, rows)
            while (inner := left[at] >= 0).any():
                tree, row = np.nonzero(inner)
                node = at[tree, row]
                goes_left = rows[row, feature[node]] <= threshold[node]
                at[tree, row] = np.where(goes_left, left[node], right[node])
            for nodes in at:
                p[begin : begin + size] += value[nodes]
        p /= len(roots)
        return p


FORMS: dict[str, Any] = {form.kind: form for form in (LinearForm, ForestForm, LightGBMForm, XGBoostForm)}


def pack(estimator: Any, n_features: int, columns: int) -> Form:
    """Return the form of a fitted classifier; raise ValueError for one that has none."""
    if isinstance(estimator, OneClass):
        return OneClassForm()
    if type(estimator) in FORMS.values():  # of a model that was loaded
        form: Form = estimator
        return form
    arrays = _linear_arrays(estimator) or _tree_arrays(estimator)
    if arrays is not None:
        return (LinearForm if "coef" in arrays else ForestForm)(arrays, n_features, columns)
    for booster in (LightGBMForm, XGBoostForm):
        text = booster.text_of(estimator)
        if text is not None:
            return booster({"text": text}, n_features, columns)
    raise InputError(
        f"a model file cannot hold a fitted {type(estimator).__name__}; it holds {_STORED} as they are: fit one "
        "of these"
    )


def unpack(kind: str, arrays: Arrays, n_features: int, columns: int) -> Form:
    """Return the form that a file holds; raise MisfitError for arrays that are none."""
    if kind == OneClassForm.kind:
        check_arrays(arrays, {})
        return OneClassForm()
    if kind not in FORMS:
        raise MisfitError(f"form is {shown(kind)}, but must be one of {[OneClassForm.kind, *FORMS]}")
    form: Form = FORMS[kind](arrays, n_features, columns)
    return form


def check_arrays(arrays: Mapping[str, Array], places: Mapping[str, tuple[tuple[int, ...], type]]) -> None:
    """Refuse arrays that are missing, have no place, or another shape or kind, or are not finite."""
    for name in sorted(places.keys() ^ arrays.keys()):
        raise MisfitError(
            f"the tensor 'form.{shortened(name, 60)}' " + ("is missing" if name in places else "has no place")
        )
    for name, (shape, kind) in places.items():
        array = arrays[name]
        if array.shape != shape or not np.issubdtype(array.dtype, kind):
            form, wanted = f"{array.dtype} of shape {array.shape}", f"{kind.__name__} of shape {shape}"
            raise MisfitError(f"the tensor 'form.{name}' is {form}, but must be {wanted}")
        if not np.isfinite(array).all():
            raise MisfitError(f"the tensor 'form.{name}' holds NaN or infinity")


def _linear_arrays(estimator: Any) -> Arrays | None:
    scaler, model = None, estimator
    if isinstance(estimator, Pipeline) and len(estimator) == 2 and type(estimator[0]) is StandardScaler:
        scaler, model = estimator[0], estimator[1]
        if scaler.mean_ is None or scaler.scale_ is None:
            return None
    if type(model) is not LogisticRegression:
        return None
    arrays = {"coef": model.coef_, "intercept": model.intercept_}
    return arrays if scaler is None else arrays | {"mean": scaler.mean_, "scale": scaler.scale_}


def _tree_arrays(estimator: Any) -> Arrays | None:
    if type(estimator) is DecisionTreeClassifier:
        trees = [estimator.tree_]
    elif type(estimator) in (RandomForestClassifier, ExtraTreesClassifier):
        trees = [each.tree_ for each in estimator.estimators_]
    else:
        return None
    roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])

    def joined(name: str) -> Array:
        return np.concatenate([getattr(tree, name) for tree in trees])

    def children(name: str) -> Array:
        parts = [getattr(tree, name) for tree in trees]
        return np.concatenate(
            [np.where(part < 0, -1, part + root) for part, root in zip(parts, roots, strict=True)]
        )

    arrays: Arrays = {
        "feature": joined("feature").astype(np.int32),
        "threshold": joined("threshold"),
        "left": children("children_left").astype(np.int32),
        "right": children("children_right").astype(np.int32),
        "value": joined("value")[:, 0, :],
        "roots": roots.astype(np.int32),
    }
    return arrays
