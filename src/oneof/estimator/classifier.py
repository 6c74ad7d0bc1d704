"""PartialLabelClassifier: a method with scikit-learn's interface. A method adds its own `start` and `step`."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from oneof.errors import InputError
from oneof.estimator.card import card_of, save_with_card
from oneof.estimator.checks import check_callbacks, check_results
from oneof.estimator.features import check_rows
from oneof.estimator.fields import hyperparameters
from oneof.estimator.held_out_choice import choose_number
from oneof.estimator.in_blocks import (
    AllAndBest,
    AllRows,
    Best,
    Choices,
    OnSets,
    Scores,
    Top,
    TopClasses,
    apply_in_blocks,
    check_top,
)
from oneof.estimator.method_base import MethodBase
from oneof.estimator.model_file import save_model
from oneof.estimator.onnx_file import write_onnx
from oneof.estimator.outside import estimated_rate
from oneof.estimator.preparation import candidate_sets, prepare_trial, sample_weights
from oneof.estimator.recovery import fail, recover
from oneof.io.arguments import target_path
from oneof.labels import Disambiguation, SparseSets, dense_form, warn_of_unlearned
from oneof.labels.sparse_sets import AnySets
from oneof.train.rows import Array
from oneof.train.trainer import train
from oneof.train.trial import EpochCallback, MetricCallback, Trial


@hyperparameters
class PartialLabelClassifier(MethodBase, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all methods: learns a classifier from candidate label sets.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, in the order of the columns of `predict_proba`.
    n_features_in_ : int
        Number of values in a row.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns of X, if it had names.
    input_shape_ : tuple or None
        Channels, height and width of images; None for tables.
    scaler_ : Scaler
        Means and standard deviations by which rows are standardised.
    training_rows_ : int
        Number of rows without those held out for validation.
    training_candidates_ : int or None
        Number of candidates of these rows, where candidate sets were kept sparse.
    network_ : torch.nn.Module
        The network that predicts.
    history_ : dict of lists
        Loss, and validation score if there are validation rows, of every epoch.
    label_distributions_ : array of shape (n, K)
        Distribution of the correct label over the candidates, for every row given to `fit`. Of very many classes a
        scipy.sparse.csr_array.
    transduction_ : array of shape (n,)
        The most likely candidate of every row given to `fit`.
    outside_rate_, outside_scale_ : tensors of shape (1, 1)
        With ``outside=`` the share of rows without their true label, and how much labels outside the sets weigh.
    """

    # --- scikit-learn's interface -------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        separator: str | None = None,
        callbacks: Sequence[EpochCallback] = (),
        classes: Any = None,
    ) -> Self:
        """Learn from candidate sets.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, features); images (n, height, width[, channels])
            Rows. Tables are standardised inside by the statistics of the training rows. Sparse ones are scaled and
            not centred, and the rows of a batch alone become dense.
        y : candidate sets
            A 0/1 matrix, lists or sets of class names, or plain labels: all that :func:`oneof.encode` takes. Or
            sets whose candidates have weights: votes (:func:`oneof.from_votes`) and `oneof.WeightedSets`.
        sample_weight : array of shape (n,), optional
            Weight of each row.
        X_val, y_val : optional
            Rows for early stopping and for choosing the epoch; ``y_val`` may be candidate sets or true labels.
        separator : str, optional
            Splits the strings of ``y`` and ``y_val``, such as ``"cat|dog"``; without it, a string is one label.
        callbacks : list of callables, optional
            Each is given an `oneof.callbacks.EpochReport` (epoch, loss, scores) after every epoch; one that
            returns True ends the training. `oneof.callbacks` has some for TensorBoard, MLflow, Weights & Biases
            and Optuna.
        classes : sequence of K strings or integers, optional
            The names of the columns of a matrix ``y``, or all classes where the rows do not name them all.
        """
        told = {"separator": separator, "callbacks": callbacks, "classes": classes}
        given = self.prepare(X, y, sample_weight, X_val, y_val, **told)
        return self.finish(train(given))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_") and bool(self.learned_attributes())

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of every row."""
        x = self._fitted_rows(X)
        best = Best(len(x))
        self._in_blocks(self._probabilities, x, None, best)
        names: NDArray[Any] = self.classes_[best.numbers]
        return names

    def predict_top(self, X: Any, k: int = 5) -> TopClasses:
        """Return the k most likely classes of every row and their probabilities, each (n, k), the best first.

        Takes memory for n times k numbers, where `predict_proba` of very many classes may not fit.
        """
        x = self._fitted_rows(X)
        check_top(k, len(self.classes_))
        top = Top(len(x), int(k))
        self._in_blocks(self._probabilities, x, None, top)
        return top.named(self.classes_)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the class probabilities (n, K) of every row, in the order of ``classes_``.

        What does not fit into memory is refused; `predict` and `predict_top` need no such table.
        """
        return self.evaluate(self._probabilities, X)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the class probabilities, finite where the probabilities underflow."""
        return self.evaluate(lambda x: self.class_scores(x).log_softmax(-1), X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, separator: str | None = None) -> float:
        """Return the mean approximated accuracy; on plain labels this is the accuracy.

        The separator splits strings, as for `fit`.
        """
        x = self._fitted_rows(X)
        candidates = candidate_sets(self, y, len(x), separator)
        if hasattr(self, "label_distributions_"):  # not while a training scores its own model
            warn_of_unlearned(candidates, self.label_distributions_, self.classes_)
        scores = Scores(len(x))
        self._in_blocks(lambda rows, sets: self._probabilities(rows), x, candidates, scores)
        if sample_weight is None:
            return float(np.average(scores.values))
        return float(
            np.average(scores.values, weights=sample_weights(sample_weight, scores.values, torch.float64))
        )

    def disambiguate(self, X: Any, y: Any, separator: str | None = None) -> Disambiguation:
        """Say for every row which of its candidates is the most likely, how likely, and by what margin.

        With ``outside=`` it may be none of them, and the result's ``outside`` says how likely that is.
        The separator splits strings, as for `fit`. `oneof.Pipeline` has this method, too.
        """
        if y is None:
            raise InputError("y is None, but there is nothing to choose from without candidates; use predict")
        x = self._fitted_rows(X)
        sets = candidate_sets(self, y, len(x), separator)
        choices = Choices(self.classes_)
        self._in_blocks(self.row_posterior, x, sets, choices)
        return choices.joined()

    def save(self, path: str | PathLike[str], card: bool | str = False) -> None:
        """Write the fitted model to one safetensors file; :func:`oneof.load_model` reads it back.

        With ``card=True`` its `card` is written beside it: ``model.md`` for ``model.safetensors``; words in its
        place say how the model was chosen.
        """
        check_is_fitted(self)
        save_with_card(self, save_model, path, card)

    def card(self, chosen: str | None = None) -> str:
        """Return what the model was learned from, how, and how good it is, as Markdown.

        A model that was loaded has a card, too. ``chosen`` are words on how it was chosen among others.
        """
        check_is_fitted(self)
        return card_of(self, chosen=chosen)

    def to_onnx(self, path: str | PathLike[str]) -> None:
        """Write the classifier with its scaler as an ONNX file: rows in, probabilities of the labels out.

        Its input ``X`` is a table (n, features) of float64, or images (n, height, width, channels) of float32 with
        values as `fit` saw them; its output ``probabilities`` is (n, K). The names of the classes stand in the
        metadata under ``oneof.classes``, as JSON. It needs ``pip install oneof[onnx]``.
        """
        check_is_fitted(self)
        write_onnx(self, target_path(path))

    # --- one way to train: prepare, train, finish ---------------------------------------------------------

    def prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        separator: str | None = None,
        X_watched: Any = None,
        metrics: MetricCallback | None = None,
        on_epoch: Callable[[int], None] | None = None,
        pause: Callable[[], bool] | None = None,
        callbacks: Sequence[EpochCallback] = (),
        classes: Any = None,
    ) -> Trial:
        """Check everything, put the rows on the device and start the method.

        ``model.finish(train(model.prepare(X, y)))`` is what `fit` does; see `oneof.train`.

        Parameters
        ----------
        X, y, sample_weight, X_val, y_val, separator, callbacks, classes
            As for `fit`.
        X_watched : optional
            Rows that are evaluated after every epoch, behind the validation rows, and steer nothing.
        metrics : callable, optional
            Is given the class probabilities of the validation rows and then of ``X_watched``, and returns
            numbers by name for ``history_``.
        on_epoch : callable, optional
            Is called with the number of every epoch that is done.
        pause : callable, optional
            Is asked after every epoch; True writes the checkpoint and raises `oneof.train.Paused`.
        """
        check_callbacks(callbacks)
        hooks = {"metrics": metrics, "on_epoch": on_epoch, "pause": pause, "callbacks": callbacks}
        trial = prepare_trial(self, X, y, sample_weight, X_val, y_val, X_watched, hooks, separator, classes)
        if trial.checkpoint is None or not trial.checkpoint.begun:  # else the checkpoint holds what was decided
            if self.outside == "auto":
                self.outside_rate_.fill_(
                    estimated_rate(self, trial.rows[0], dense_form(trial.rows[1]), sample_weight)
                )
            if (choice := self.open_number()) is not None:
                getattr(self, choice[0]).fill_(choose_number(self, trial, *choice))
        return trial

    def finish(self, trial: Trial) -> Self:
        """Take over what a trial of this model has learned.

        A trial that diverged raises `oneof.train.TrainingDiverged`. Where validation rows have shown which epoch
        was the best, its weights are taken instead, with a warning.
        """
        if trial.diverged is None:
            trial.restore_best()
        else:
            recover(self, trial, trial.diverged)
        x, sets = trial.rows
        kept: OnSets | AllAndBest = OnSets(sets) if isinstance(sets, SparseSets) else AllAndBest(len(x))
        if apply_in_blocks(self, self.row_posterior, x, sets, kept).size:
            fail(self, trial.diverged or trial.divergence())
        self.label_distributions_ = kept.matrix()
        self.history_ = trial.state.history
        self.transduction_ = self.classes_[kept.best.numbers]
        return self

    # --- evaluation ---------------------------------------------------------------------------------------

    def evaluate(
        self, function: Callable[..., Tensor], X: Any, y: Any = None, separator: str | None = None
    ) -> NDArray[Any]:
        """Apply a function of rows on the device, such as `class_scores`, to all rows of X, in evaluation mode.

        With candidate sets y it is a function of rows and sets, such as `label_posterior`. Results of NaN are
        refused.
        """
        x = self._fitted_rows(X)
        whole = AllRows(len(x))
        self._in_blocks(function, x, None if y is None else candidate_sets(self, y, len(x), separator), whole)
        return whole.results

    def _fitted_rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return check_rows(self, X, fitting=False)

    def _probabilities(self, x: Tensor) -> Tensor:
        return self.class_scores(x).softmax(-1)

    def _in_blocks(
        self,
        function: Callable[..., Tensor],
        x: Array,
        sets: AnySets | None,
        take: Callable[[slice, Array, Array], None],
    ) -> None:
        """Hand what a function gives for checked rows to ``take``, block by block; refuse results of NaN."""
        check_results(self, apply_in_blocks(self, function, x, sets, take))
