"""The training loop: the only one, for every method, device and phase."""

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneof.acceleration import faster
from oneof.errors import Paused
from oneof.io.memory import check_room
from oneof.labels import SparseSets
from oneof.train.adamw import AdamW
from oneof.train.batch import Batch, Epoch, make_batch
from oneof.train.checkpoint import Checkpoint
from oneof.train.course import BY_STEP, Course, start_average
from oneof.train.divergence import finite_losses, weights_finite
from oneof.train.evaluation import class_probabilities, probability_blocks
from oneof.train.rows import first_rows
from oneof.train.runtime import seed_for
from oneof.train.sgd import SGD, SGDByStep
from oneof.train.trial import Trial

LEAST_WEIGHT = 1e-12  # of a step, by which its losses are divided


class TrainingRun:
    """A trial in training: its optimiser, the order of its rows, its epochs and steps.

    Subclasses in `oneof.train.parallel` hold several trials, or replay recorded steps.
    """

    of_epoch: Epoch  # the present one
    _clock: Tensor | None = None  # its number, always in the same place

    def __init__(self, trial: Trial) -> None:
        self.trials = [trial]
        self.method, self.data = trial.method, trial.data
        optimizer: Any = AdamW
        if self.method.optimizer_ == "sgd":
            by_step = self.method.schedule in BY_STEP
            optimizer = SGDByStep if by_step else faster("sgd", self.data.weight) or SGD
        self.optimizer: Any = optimizer(
            self.method.parameter_groups(), lr=self.method.lr_, momentum=self.method.momentum
        )
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.order = torch.Generator().manual_seed(seed_for(trial.setup.seed, "order"))
        if trial.checkpoint is not None:
            trial.state = trial.checkpoint.restore(self.method, self.optimizer, self.order) or trial.state
        trial.state.average = trial.state.average or start_average(self.method)
        self.course = Course(self.method, self.optimizer, self.rates, trial.state.average)

    def shuffled(self) -> Tensor:
        """Return the numbers of the rows (N,) in random order."""
        return torch.randperm(self.data.all_rows, generator=self.order)

    def batch(self, index: Tensor) -> Batch:
        """Return the rows ``index`` with their views."""
        return make_batch(self.data, index, self.of_epoch, self.method.views, self.method.flips)

    def run_epoch(self) -> list[float]:
        """Pass over the rows once, in random order; return the mean loss of each trial, read back once.

        It is NaN where weights are no longer finite.
        """
        order, total = self.begin_epoch()
        self.run_steps(order, total)
        return finite_losses(total / order.shape[-2], self.weights_finite())

    def begin_epoch(self) -> tuple[Tensor, Tensor]:
        """Return the rows (..., steps, B) of every step and a place (...) to add the losses up."""
        method, data, epoch = self.method, self.data, self.epoch
        if self._clock is None:
            self._clock = torch.zeros((), dtype=torch.float64, device=data.weight.device)
        self.of_epoch = Epoch(epoch, self._clock.fill_(epoch))
        for module in method.modules():
            module.train()
        method.weigh_outside(epoch, data)
        method.start_epoch(epoch, data)
        size = method.batch_size_
        self.course.begin_epoch(epoch, data.all_rows // size, data.weight)
        whole = data.all_rows // size * size  # the remainder is dropped: every step has the same shape
        shuffled = self.shuffled().to(data.weight.device)[..., :whole]  # (..., N)
        return shuffled.view(*shuffled.shape[:-1], -1, size), torch.zeros_like(data.weight[..., 0])

    def run_steps(self, order: Tensor, total: Tensor) -> None:
        """Take all steps and add their losses to the total."""
        numbers = torch.arange(order.shape[-2], device=order.device).view(-1, 1)
        for number, index in zip(numbers, order.unbind(-2), strict=True):
            self.step(index, total, number)

    def step(self, index: Tensor, total: Tensor, number: Tensor) -> None:
        """Update the weights by the rows ``index``: once, or as often as the method yields a loss.

        ``number`` (1,) says which step of the epoch it is.
        """
        self.course.begin_step(number)
        batch = self.batch(index)
        weight = self.data.weight.gather(-1, batch.index)
        for losses in losses_of(self.method.step(self.method.seen(batch))):
            self.optimizer.zero_grad()  # a network that a loss does not reach stays as it is
            loss = self.differentiate(losses, weight)
            self.optimizer.step()
        self.course.end_step(number)
        total += loss

    def differentiate(self, losses: Tensor, weight: Tensor) -> Tensor:
        """Give the weights their gradients of the weighted mean of losses (..., B); return this mean (...)."""
        loss = (weight * losses).sum(-1) / weight.sum(-1).clamp_min(LEAST_WEIGHT)
        loss.sum().backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    @property
    def epoch(self) -> int:
        """The present epoch, which all trials share."""
        return self.trials[0].state.epoch

    def weights_finite(self) -> Tensor:
        """Tell of each trial whether all its weights are finite (...), without reading back."""
        return weights_finite(self.method.weights().values())

    def predictor(self, trial: Trial) -> dict[str, Tensor]:
        """Return all tensors by which one trial predicts, by name."""
        return self.method.predictor() | dict(self.course.average)

    def measure(self) -> list[dict[str, float] | None]:
        """Evaluate the watched rows; return the score and the metrics of each trial, None where it diverged."""
        with self.course.averaged():
            return self._measure()

    def _measure(self) -> list[dict[str, float] | None]:
        (trial,) = self.trials
        if trial.watched is None:
            return [{}]
        if trial.measured_in_blocks and trial.sets is not None:
            rows = first_rows(trial.watched, len(trial.sets))
            scores = probability_blocks(self.method, self.data, rows, trial.score_block)
            finite = [part for part in scores if part is not None]
            mean = float(np.concatenate(finite).mean()) if len(finite) == len(scores) else None
            return [None if mean is None else {"validation_score": mean}]
        if isinstance(trial.sets, SparseSets):  # and metrics want the probabilities of all rows
            shape = len(trial.watched), self.data.n_classes
            what = f"what metrics are given, probabilities of shape {shape},"
            check_room(what, math.prod(shape) * self.data.dtype.itemsize, "watch fewer rows, or leave metrics out")
        return [trial.measure(class_probabilities(self.method, self.data, trial.watched))]

    def checkpoint_due(self) -> bool:
        """Tell whether it is time to write a checkpoint."""
        return any(trial.checkpoint is not None and trial.checkpoint.due() for trial in self.trials)

    def save(self, trial: Trial, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a trial."""
        checkpoint.save(self.method, self.optimizer, self.order, trial.setup, trial.state)

    def release(self, finished: list[Trial]) -> None:
        """Go on without finished trials."""
        self.trials = [trial for trial in self.trials if trial not in finished]

    def close(self) -> None:
        """Free what only the training needed."""


def run_epochs(run: TrainingRun) -> None:
    """Run epochs until all trials of a run are finished: the only training loop."""
    try:
        run.release([trial for trial in run.trials if trial.finished])
        while run.trials:
            _run_epoch(run)
    finally:
        run.close()


def _run_epoch(run: TrainingRun) -> None:
    """Train for an epoch, measure and note it, save, and release finished trials."""
    begun = time.perf_counter()
    losses = dict(zip(run.trials, run.run_epoch(), strict=True))
    _release_diverged(run, [trial for trial, loss in losses.items() if not math.isfinite(loss)])
    measured = dict(zip(run.trials, run.measure(), strict=True)) if run.trials else {}
    seconds = (time.perf_counter() - begun) / len(losses)
    _release_diverged(run, [trial for trial, numbers in measured.items() if numbers is None])
    for trial in run.trials:
        trial.end_epoch(losses[trial], measured[trial] or {}, run.predictor, seconds)
    pausing = any(trial.pause is not None and trial.pause() for trial in run.trials)
    # All at the same epoch, so that they can go on together.
    due = pausing or run.checkpoint_due()
    for trial in run.trials:
        if trial.checkpoint is not None and (trial.finished or due):
            run.save(trial, trial.checkpoint)
        if trial.progress is not None:
            trial.progress.update(trial.state.epoch, trial.state.history, trial.finished)
    run.release([trial for trial in run.trials if trial.finished])
    if pausing and run.trials:
        raise Paused(run.trials[0].state.epoch)


def _release_diverged(run: TrainingRun, diverged: list[Trial]) -> None:
    """Go on without trials whose numbers are no longer finite; nothing of the present epoch is kept."""
    for trial in diverged:
        trial.diverged = trial.divergence()
    run.release(diverged)


def losses_of(step: Tensor | Iterable[Tensor]) -> Iterable[Tensor]:
    """A step returns its losses (..., B), or yields several: the weights are updated at each."""
    return (step,) if isinstance(step, Tensor) else step
