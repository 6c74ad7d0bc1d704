"""PartialLabelClassifier: what every method shares. A method adds its own `start` and `step`."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from oneof import functional as F
from oneof.estimator.checks import check_pixels, check_views, check_warm_up
from oneof.estimator.common_settings import CommonSettings
from oneof.estimator.features import check_rows, image_shape
from oneof.estimator.fields import Role, check, hyperparameters, names_with
from oneof.estimator.model_file import save_model
from oneof.estimator.state import Learned
from oneof.io.progress import Progress
from oneof.labels import check_learnable, check_same_rows, encode
from oneof.metrics import approximated_accuracy
from oneof.nn import networks
from oneof.train.batch import Batch, Data
from oneof.train.checkpoint import Checkpoint, fingerprint
from oneof.train.loop import ROWS_AT_ONCE, Judge, Setup, Trial, train
from oneof.train.rows import Array, HostRows, Scaler
from oneof.train.runtime import evaluating, is_too_large, resolve_device, seed_for, seeded, threads, uncompiled


class Disambiguation(NamedTuple):
    """The most likely candidate of every row, its probability, and the margin to the second."""

    label: NDArray[Any]
    probability: NDArray[np.floating[Any]]
    margin: NDArray[np.floating[Any]]


@hyperparameters
class PartialLabelClassifier(CommonSettings, Learned, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class: learns a classifier from candidate label sets.

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
    network_ : torch.nn.Module
        The network that predicts.
    history_ : dict of lists
        Loss, and validation score if there are validation rows, of every epoch.
    label_distributions_ : array of shape (n, K)
        Distribution of the correct label over the candidates, for every row given to `fit`.
    transduction_ : array of shape (n,)
        The most likely candidate of every row given to `fit`.
    """

    version: ClassVar[int] = 1  # raised when the same settings give other numbers
    needs_views: ClassVar[bool] = False  # whether the method compares several views of each example

    # --- what a method may redefine -----------------------------------------------------------------------

    def start(self, data: Data) -> None:
        """Make the networks and label tables: every tensor and module set here is saved and restored."""
        self.network_ = self.new_network(data, data.n_classes)

    def start_epoch(self, epoch: int, data: Data) -> None:
        """Do what must be done between epochs, where a method has phases."""

    def step(self, batch: Batch) -> Tensor | Iterable[Tensor]:
        """Return the losses (..., B) of a batch and refresh its label tables.

        Written with ``yield`` the method goes on after the weights have been updated by the loss it yielded.
        """
        raise NotImplementedError("a method defines step(batch)")

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups."""
        return [{"params": list(self.network_.parameters()), "weight_decay": self.weight_decay}]

    def class_scores(self, x: Tensor) -> Tensor:
        """Return scores (..., B, K) whose softmax is the predicted distribution."""
        scores: Tensor = self.network_(x)
        return scores

    def label_posterior(self, x: Tensor, candidates: Tensor) -> Tensor:
        """Return the distribution of the correct label over the candidates (..., B, K)."""
        return F.posterior(self.class_scores(x), candidates)

    # --- scikit-learn's interface -------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Learn from candidate sets.

        Parameters
        ----------
        X : array, tensor or frame of shape (n, features); images (n, height, width[, channels])
            Rows. Tables are standardised inside by the statistics of the training rows.
        y : candidate sets
            A 0/1 matrix, lists or sets of class names, or plain labels: all that :func:`oneof.encode` takes.
        sample_weight : array of shape (n,), optional
            Weight of each row.
        X_val, y_val : optional
            Rows for early stopping and for choosing the epoch; ``y_val`` may be candidate sets or true labels.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of every row."""
        return self._names(self.predict_proba(X).argmax(1))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the class probabilities (n, K) of every row, in the order of ``classes_``."""
        return self._evaluate(lambda x: self.class_scores(x).softmax(-1), self._check_rows(X))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the class probabilities, finite where the probabilities underflow."""
        return self._evaluate(lambda x: self.class_scores(x).log_softmax(-1), self._check_rows(X))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean approximated accuracy; on plain labels this is the accuracy."""
        probabilities = self.predict_proba(X)
        candidates = self._check_sets(y, len(probabilities))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return float(np.average(approximated_accuracy(probabilities, candidates), weights=weights))

    def disambiguate(self, X: Any, y: Any) -> Disambiguation:
        """Say for every row which of its candidates is the most likely, how likely, and by what margin."""
        x = self._check_rows(X)
        return self._decide(self._posterior(x, self._check_sets(y, len(x))))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one safetensors file; :func:`oneof.load_model` reads it back."""
        check_is_fitted(self)
        save_model(self, path)

    # --- fitting ------------------------------------------------------------------------------------------

    def _fit(self, *given: Any, **watching: Any) -> Self:
        """Fit, with all that `_prepare` takes."""
        trial = self._prepare(*given, **watching)
        with threads(self._thread_count()), Progress(type(self).__name__, self.epochs, self.verbose > 0) as shown:
            trial.progress = shown
            train(trial)
        return self._finish(trial)

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        X_watched: Any = None,
        judge: Judge | None = None,
        on_epoch: Callable[[int], None] | None = None,
        pause: Callable[[], bool] | None = None,
    ) -> Trial:
        """Check everything, put the rows on the device and start the method.

        After every epoch ``judge`` is given the probabilities of the validation rows and then of ``X_watched``, for
        curves that must not steer the training; ``pause`` may stop it for later.
        """
        check(self)
        check_warm_up(self)
        check_views(self)
        x = check_rows(self, X, fitting=True)
        check_pixels(self.views, x)
        self.input_shape_ = image_shape(x)
        self.n_features_in_ = int(np.prod(x.shape[1:]))
        candidates, self.classes_ = encode(y)
        check_same_rows(len(x), len(candidates))
        check_learnable(candidates)
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        x_val, candidates_val = self._check_validation(X_val, y_val)

        checkpoint = None
        if self.checkpoint is not None:
            data_mark = fingerprint(x, candidates, weight, x_val, candidates_val)
            checkpoint = Checkpoint(self.checkpoint, self._identity(), data_mark)
        setup = (checkpoint.setup if checkpoint else None) or self._set_up(x, weight)
        self.scaler_ = setup.scaler
        training = np.setdiff1d(np.arange(len(x)), setup.held_out.numpy(), assume_unique=True)
        if len(setup.held_out):
            x_val, candidates_val = x[setup.held_out.numpy()], candidates[setup.held_out.numpy()]
        with threads(self._thread_count()):
            on_disk = isinstance(X, np.memmap)
            data = self._put_on_device(x, training, candidates[training], weight[training], on_disk)
            self.training_rows_ = len(data)
            self.forget()
            with seeded(seed_for(setup.seed, "weights"), data.weight.device):
                self.start(data)
            watched = [
                rows
                for rows in (x_val, None if X_watched is None else self._check_rows(X_watched))
                if rows is not None
            ]
            return Trial(
                self,
                data,
                setup,
                (x, candidates),
                watched=self._store(np.concatenate(watched)) if watched else None,
                sets=candidates_val,
                judge=judge,
                on_epoch=on_epoch,
                pause=pause,
                checkpoint=checkpoint,
            )

    def _finish(self, trial: Trial) -> Self:
        """Take over what was learned."""
        trial.keep_best()
        with threads(self._thread_count()):
            self.label_distributions_ = self._posterior(*trial.rows)
        self.history_ = trial.state.history
        self.transduction_ = self._decide(self.label_distributions_).label
        return self

    def _set_up(self, x: Array, weight: Array) -> Setup:
        """Draw the seed and the held-out rows, and learn the scaler from the others."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        held_out = np.zeros(0, dtype=np.int64)
        if self.validation_fraction > 0:
            size = max(1, round(self.validation_fraction * len(x)))
            if size > len(x) - 2:
                raise ValueError(
                    f"validation_fraction is {self.validation_fraction}, which leaves {len(x) - size} of {len(x)} "
                    "rows for training, but at least 2 are needed; lower it"
                )
            held_out = np.sort(np.random.default_rng(seed_for(seed, "split")).permutation(len(x))[:size])
        training = np.delete(np.arange(len(x)), held_out)
        if not weight[training].sum() > 0:
            raise ValueError("the weights of the training rows sum to 0; give some row a positive sample_weight")
        return Setup(seed, torch.as_tensor(held_out), Scaler.fit(x, training, weight[training]))

    def _put_on_device(self, x: Array, rows: Array, candidates: Array, weight: Array, on_disk: bool) -> Data:
        """Put rows on the device, once; x stays where it is when it lies on disk or is too large."""
        device, dtype = resolve_device(self.device), self._dtype()
        stays = on_disk or is_too_large(x, device)
        return Data(
            HostRows(x, rows, self.scaler_, dtype, device) if stays else self._store(x[rows]),
            torch.as_tensor(candidates, device=device),
            torch.as_tensor(weight, device=device, dtype=dtype),
            self.scaler_.to(device, dtype),
        )

    def _store(self, x: Array) -> Tensor:
        return self.scaler_.store(x, self._dtype()).to(resolve_device(self.device))

    def new_network(self, data: Data, outputs: int) -> networks.Network:
        """Make a network of the chosen architecture with so many outputs, on the device of the data."""
        network = networks.build(self.network, data.shape, outputs, self.precision == "bf16", self.compile)
        network = network.to(data.weight.device, data.dtype)
        # Channels beside each other in memory make convolutions on a GPU several times faster.
        if data.weight.device.type == "cuda" and len(data.shape) == 3:
            network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network

    # --- checks -------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return check_rows(self, X, fitting=False)

    def _check_sets(self, y: Any, rows: int) -> Array:
        """Return candidate sets as a boolean matrix over ``classes_``."""
        try:
            candidates, _ = encode(y, self.classes_)
        except ValueError as error:
            raise ValueError(
                f"{error}. The classes are those of the training rows; where a fold may lack some, encode all "
                "rows first: matrix, classes = oneof.encode(y)"
            ) from None
        check_same_rows(rows, len(candidates))
        return candidates

    def _check_validation(self, X_val: Any, y_val: Any) -> tuple[Array | None, Array | None]:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together; pass both or neither")
        if X_val is None:
            if self.patience is not None and not self.validation_fraction:
                raise ValueError(
                    f"patience is {self.patience}, but there are no validation rows; pass X_val and y_val, or set "
                    "validation_fraction"
                )
            return None, None
        if self.validation_fraction:
            raise ValueError("pass X_val and y_val or set validation_fraction, not both")
        x_val = self._check_rows(X_val)
        return x_val, self._check_sets(y_val, len(x_val))

    def _identity(self) -> dict[str, Any]:
        """Return every parameter that can change what is learned, in a form that JSON can hold."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        traceless = names_with(self, Role.TRACELESS)
        return {"method": type(self).__name__} | {
            name: value if isinstance(value, str | int | float | None) else describe(value)
            for name, value in settings.items()
            if name not in traceless
        }

    # --- evaluation ---------------------------------------------------------------------------------------

    def _evaluate(self, function: Callable[..., Tensor], x: Array, *others: Array) -> NDArray[Any]:
        """Apply a function of rows, and of other arrays with as many rows, in evaluation mode."""
        device, dtype = resolve_device(self.device), self._dtype()
        for module in self.modules():
            module.to(device)
        parts = []
        with threads(self._thread_count()), evaluating(self.modules()), uncompiled(self.compile):
            for begin in range(0, len(x), ROWS_AT_ONCE):
                rows = slice(begin, begin + ROWS_AT_ONCE)
                more = (torch.as_tensor(other[rows], device=device) for other in others)
                parts.append(function(self.scaler_.load(self._store(x[rows]), dtype), *more).cpu())
        return torch.cat(parts).numpy()

    def _posterior(self, x: Array, candidates: Array) -> NDArray[Any]:
        return self._evaluate(self.label_posterior, x, candidates)

    def _decide(self, distributions: NDArray[Any]) -> Disambiguation:
        best = distributions.argmax(1)
        second, first = np.sort(distributions, axis=1)[:, -2:].T
        return Disambiguation(self._names(best), first, first - second)

    def _names(self, index: NDArray[Any]) -> NDArray[Any]:
        names: NDArray[Any] = self.classes_[index]
        return names

    # --- where and how to compute -------------------------------------------------------------------------

    def _dtype(self) -> torch.dtype:
        return torch.float64 if self.precision == "fp64" else torch.float32

    def _thread_count(self) -> int | None:
        if self.threads is None and networks.is_small(self.network, self.input_shape_ or ()):
            return 1
        return self.threads


def describe(value: Any) -> str:
    """Name a network factory or a random state."""
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
