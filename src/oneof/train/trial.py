"""A trial: one training from its prepared rows to its result, and where it stands."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from oneof.errors import TrainingDiverged
from oneof.io.progress import EpochProgress
from oneof.labels import SparseSets, dense_form
from oneof.labels.sparse_sets import AnySets
from oneof.metrics import approximated_accuracy
from oneof.train.batch import Data
from oneof.train.checkpoint import Checkpoint
from oneof.train.divergence import diverged_error
from oneof.train.method import Method
from oneof.train.rows import Array, HostRows
from oneof.train.trial_state import Setup, State

# From class probabilities (..., M, K) of the watched rows to numbers (...) by name.
MetricCallback = Callable[[Array], Mapping[str, Any]]


class EpochReport(NamedTuple):
    """What callbacks are told of an epoch that is done."""

    epoch: int  # from 0
    loss: float
    scores: dict[str, float]  # validation_score, where there are validation rows, and what `metrics` gave

    def numbers(self) -> dict[str, float]:
        """Return the loss and the scores, by name."""
        return {"loss": self.loss, **self.scores}


EpochCallback = Callable[[EpochReport], bool | None]  # True ends the training


@dataclass(eq=False)
class Trial:
    """One training: a method that has been started, its rows, what is watched, and where it stands.

    The watched rows are evaluated after every epoch. Those whose candidate ``sets`` are known give the validation
    score, which decides which epoch's weights are kept. ``metrics`` gives further numbers for the history, which
    steer nothing.
    """

    method: Method
    data: Data
    setup: Setup
    rows: tuple[Array, AnySets]  # x and candidates, held-out rows included
    watched: Tensor | HostRows | None = None  # (M, *shape), stored as the data are
    sets: AnySets | None = None  # (V, K): candidate sets of the first V watched rows, which are for validation
    metrics: MetricCallback | None = None
    on_epoch: Callable[[int], None] | None = None
    pause: Callable[[], bool] | None = None
    callbacks: Sequence[EpochCallback] = ()
    checkpoint: Checkpoint | None = None
    progress: EpochProgress | None = None
    state: State = field(default_factory=State)
    diverged: TrainingDiverged | None = None  # the error, where numbers are no longer finite
    told_to_stop: bool = False  # by a callback

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, score or callback ended the training, or it has diverged."""
        done = self.state.epoch >= self.method.epochs or self.state.stopped(self.method.patience)
        return done or self.told_to_stop or self.diverged is not None

    @property
    def recordable(self) -> bool:
        """Whether a GPU could record its steps: rows and dense sets lie there, and pass networks all at once."""
        here = isinstance(self.data.x, Tensor) and isinstance(self.data.sets, Tensor)
        return self.data.weight.device.type == "cuda" and here and self.method.rows_at_once is None

    def divergence(self) -> TrainingDiverged:
        """Return the error of a training that diverges in the present epoch, or in the last one."""
        return diverged_error(self.method, min(self.state.epoch, self.method.epochs - 1))

    def checkpoint_in_use(self) -> AbstractContextManager[None]:
        """Keep other fits from using the checkpoint, if there is one."""
        return nullcontext() if self.checkpoint is None else self.checkpoint.in_use()

    def end_epoch(
        self,
        loss: float,
        numbers: Mapping[str, float],
        predictor: Callable[["Trial"], dict[str, Tensor]],
        seconds: float,
    ) -> None:
        """Write an epoch into the history and keep the weights if they are the best so far."""
        self.state.seconds += seconds
        score = numbers.get("validation_score", float("-inf"))
        if score > self.state.best_score:
            self.state.best_epoch, self.state.best_score = self.state.epoch, score
            self.state.best_weights = {name: tensor.clone() for name, tensor in predictor(self).items()}
        for name, value in {"loss": loss, **numbers}.items():
            self.state.history.setdefault(name, []).append(value)
        if self.on_epoch is not None:
            self.on_epoch(self.state.epoch)
        report = EpochReport(self.state.epoch, loss, dict(numbers))
        answers = [callback(report) for callback in self.callbacks]
        self.told_to_stop = any(answer is True for answer in answers)
        self.state.epoch += 1

    @property
    def measured_in_blocks(self) -> bool:
        """Whether probabilities of all watched rows are too many: where sets are sparse and nobody else asks."""
        return isinstance(self.sets, SparseSets) and self.metrics is None

    def score_block(self, rows: slice, evaluated: Tensor) -> Array | None:
        """Return the scores of some validation rows from their class probabilities; None where not finite."""
        probabilities: Array = evaluated.cpu().numpy()
        if self.sets is None or not np.isfinite(probabilities).all():
            return None
        return approximated_accuracy(probabilities, dense_form(self.sets[rows]))

    def measure(self, evaluated: Tensor) -> dict[str, float] | None:
        """Return the score and the metrics of the watched rows from their class probabilities (M, K).

        None where these are not finite.
        """
        probabilities: Array = evaluated.cpu().numpy()
        if not np.isfinite(probabilities).all():
            return None
        numbers = {**validation_score(probabilities, self.sets)}
        if self.metrics is not None:
            numbers |= self.metrics(probabilities)
        return {name: float(value) for name, value in numbers.items()}

    def restore_best(self) -> None:
        """Give the method the weights of its best epoch, if there was a score, or else their average."""
        chosen = self.state.average | self.state.best_weights
        for name, tensor in self.method.weights().items():
            if name in chosen:
                tensor.copy_(chosen[name])


def validation_score(probabilities: Array, sets: AnySets | None) -> dict[str, Array]:
    """Return the score (...), where there are validation sets (..., V, K), by probabilities (..., M, K)."""
    if sets is None:
        return {}
    values = approximated_accuracy(probabilities[..., : sets.shape[-2], :], dense_form(sets))
    return {"validation_score": values.mean(-1)}
