"""EMClassifier: any classifier of scikit-learn's kind learns from candidate sets."""

from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from oneof.em.estimators import ESTIMATORS, FittedCopies, is_estimator, make_estimator
from oneof.em.model_file import save_em_model
from oneof.em.rounds import learn
from oneof.errors import InputError
from oneof.estimator.card import card_of, save_with_card
from oneof.estimator.common_settings import accepts_random_state
from oneof.estimator.features import check_rows
from oneof.estimator.fields import Role, check, count, hyperparameters, number, setting
from oneof.estimator.in_blocks import Top, TopClasses, check_top
from oneof.estimator.preparation import sample_weights
from oneof.labels import (
    Disambiguation,
    check_learnable,
    check_same_rows,
    decide,
    encode_for_model,
    encode_weights,
    posterior,
    warn_of_absent,
    warn_of_unlearned,
)
from oneof.metrics import approximated_accuracy


def _accepts_parameters(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and all(isinstance(name, str) for name in value))


@hyperparameters
class EMClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier with sample weights, taught by expectation-maximisation over weighted copies of rows.

    Row i is there once for each candidate j, with the weight r_ij, the probability that j is its true label. In
    every round the classifier is fitted on the copies (M), and ``r_ij = p_j(x_i) / sum_{k in S_i} p_k(x_i)`` for
    all j in S_i (E). The probabilities p of a row come from a fit on other folds: trees repeat the weights that
    they have seen, and would change nothing. After the last round the classifier is fitted on all rows.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, in the order of the columns of `predict_proba`.
    n_features_in_ : int
        Number of values in a row.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.
    estimator_ : classifier
        The fitted classifier; its classes are those numbers of ``classes_`` that some row may have.
    history_ : dict of lists
        Of every round the loss, ``-log sum_{k in S} p_k`` of rows by a fit that has not seen them, and the change:
        how much of the probability moved to another candidate.
    label_distributions_ : array of shape (n, K)
        Distribution of the correct label over the candidates, for every row given to `fit`.
    transduction_ : array of shape (n,)
        The most likely candidate of every row given to `fit`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from oneof import EMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> sets = [{t, (t + i) % 3} for i, t in enumerate(y)]  # the truth, mostly beside another label
    >>> model = EMClassifier("logistic", rounds=2, random_state=0).fit(X, sets)
    >>> model.predict(X[[0, 60, 120]]).tolist()
    [0, 1, 2]
    """

    version: ClassVar[int] = 1  # raised when the same settings give other numbers

    estimator: Any = setting(
        "extra-trees",
        f"one of {[*ESTIMATORS]}, or a classifier with predict_proba whose fit takes sample_weight",
        is_estimator,
        doc="What is fitted: a name, or a classifier of scikit-learn's kind, which itself stays as it is. Of a "
        "pipeline, the last step gets the weights.",
        kw_only=False,
        option="--estimator",
    )
    parameters: dict[str, Any] | None = setting(
        None,
        "a dict of names and values, or None",
        _accepts_parameters,
        doc="Parameters of the classifier that are not its defaults, such as {'n_estimators': 500}.",
    )
    rounds: int = count(5, doc="Rounds at most.")
    folds: int = count(5, ">= 2", doc="Folds of rows: each gets its probabilities from a fit on the others.")
    tol: float = number(0.01, ">= 0", doc="Stop when a round changes a row by less than this, on average.")
    random_state: int | np.random.RandomState | None = setting(
        None,
        "a whole number from 0 to 2**32 - 1, a RandomState or None",
        accepts_random_state,
        doc="Seed of the folds, and of the classifier where it has none.",
        roles=Role.NOT_SAVED | Role.NOT_IN_PLANS,
        option="--seed",
    )

    # Tables alone: see check_rows.
    input_shape_: ClassVar[None] = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        separator: str | None = None,
        classes: Any = None,
    ) -> Self:
        """Learn from candidate sets.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, features)
            Rows, which the classifier gets as they are.
        y : candidate sets
            A 0/1 matrix, lists or sets of class names, or plain labels: all that :func:`oneof.encode` takes. Or
            sets whose candidates have weights: votes (:func:`oneof.from_votes`) and `oneof.WeightedSets`.
        sample_weight : array of shape (n,), optional
            Weight of each row.
        separator : str, optional
            Splits the strings of ``y``, such as ``"cat|dog"``; without it, a string is one label.
        classes : sequence of K strings or integers, optional
            The names of the columns of a matrix ``y``, or all classes where the rows do not name them all.
        """
        check(self)
        x = check_rows(self, X, fitting=True)
        if x.ndim != 2:
            raise InputError(
                f"X has shape {np.shape(X)}, but {type(self).__name__} learns from tables; pass "
                "X.reshape(len(X), -1), or use a method with a network for images, such as IDGP"
            )
        self.n_features_in_ = x.shape[1]
        candidates, self.classes_ = encode_weights(y, classes, separator)
        check_same_rows(len(x), len(candidates))
        check_learnable(candidates)
        warn_of_absent(candidates, self.classes_)
        weight = sample_weights(sample_weight, x, torch.float64)
        if not weight.sum() > 0:
            raise InputError("the weights of the training rows sum to 0; give some row a positive sample_weight")
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        estimator = make_estimator(self.estimator, self.parameters, seed)
        learned = learn(estimator, x, candidates, weight, self.rounds, self.folds, self.tol, seed)
        self.estimator_, self.columns_ = learned.fitted
        self.history_ = learned.history
        self.label_distributions_ = learned.distributions
        self.transduction_ = decide(self.label_distributions_, self.classes_).label
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of every row."""
        best = self.predict_proba(X).argmax(1)
        names: NDArray[Any] = self.classes_[best]
        return names

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the class probabilities (n, K) of every row, in the order of ``classes_``."""
        check_is_fitted(self)
        x = check_rows(self, X, fitting=False)
        return FittedCopies(self.estimator_, self.columns_).probabilities(x, len(self.classes_))

    def predict_top(self, X: Any, k: int = 5) -> TopClasses:
        """Return the k most likely classes of every row and their probabilities, each (n, k), the best first."""
        check_is_fitted(self)
        check_top(k, len(self.classes_))
        probabilities = self.predict_proba(X)
        top = Top(len(probabilities), int(k))
        top(slice(None), probabilities, probabilities)
        return top.named(self.classes_)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the class probabilities; that of 0 is minus infinity."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[Any] = np.log(self.predict_proba(X))
        return logarithms

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, separator: str | None = None) -> float:
        """Return the mean approximated accuracy; on plain labels this is the accuracy.

        The separator splits strings, as for `fit`.
        """
        probabilities, candidates = self._judged(X, y, separator)
        warn_of_unlearned(candidates > 0, self.label_distributions_, self.classes_)
        weight = None if sample_weight is None else sample_weights(sample_weight, probabilities, torch.float64)
        return float(np.average(approximated_accuracy(probabilities, candidates), weights=weight))

    def disambiguate(self, X: Any, y: Any, separator: str | None = None) -> Disambiguation:
        """Say for every row which of its candidates is the most likely, how likely, and by what margin.

        For rows given to `fit`, ``label_distributions_`` has the answer of fits that have not seen them.
        """
        if y is None:
            raise InputError("y is None, but there is nothing to choose from without candidates; use predict")
        probabilities, candidates = self._judged(X, y, separator)
        return decide(posterior(probabilities, candidates), self.classes_)

    def save(self, path: str | PathLike[str], card: bool | str = False) -> None:
        """Write the fitted model to one safetensors file; :func:`oneof.load_model` reads it back.

        It holds linear models and trees as arrays, LightGBM and XGBoost in their own text; others are refused.
        With ``card=True`` its `card` is written beside it: ``model.md`` for ``model.safetensors``; words in its
        place say how the model was chosen.
        """
        check_is_fitted(self)
        save_with_card(self, save_em_model, path, card)

    def card(self, chosen: str | None = None) -> str:
        """Return what the model was learned from, how, and how good it is, as Markdown.

        ``chosen`` are words on how it was chosen among others.
        """
        check_is_fitted(self)
        return card_of(self, chosen=chosen)

    def _judged(self, X: Any, y: Any, separator: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the probabilities of rows, and their candidate sets over the classes of the model."""
        probabilities = self.predict_proba(X)
        candidates = encode_for_model(y, self.classes_, separator)
        check_same_rows(len(probabilities), len(candidates))
        return probabilities, candidates
