"""The training loop: the only one, for every method, device and phase."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from oneof.kernels.sgd import FusedSGD
from oneof.metrics import approximated_accuracy
from oneof.train.batch import Batch, Data, Epoch, make_batch
from oneof.train.rows import Array, HostRows, Scaler
from oneof.train.runtime import convolutions, evaluating, seed_for, seeded, uncompiled

if TYPE_CHECKING:
    from oneof.estimator.classifier import PartialLabelClassifier
    from oneof.io.progress import Progress
    from oneof.train.checkpoint import Checkpoint


ROWS_AT_ONCE = 4096  # in evaluation

# From class probabilities (..., M, K) of the watched rows to numbers (...) by name.
Judge = Callable[[Array], Mapping[str, Any]]


class Paused(Exception):  # noqa: N818
    """A training has written its checkpoint and stopped before its last epoch."""


# What becomes of the learning rate when a share t of the epochs is done.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda t: 1.0,
    "cosine": lambda t: 0.5 + 0.5 * math.cos(math.pi * t),
}


@dataclass(frozen=True)
class Setup:
    """What is decided before a training begins."""

    seed: int
    held_out: Tensor  # numbers of the rows kept for validation
    scaler: Scaler


@dataclass
class State:
    """Where a training stands: all that is neither a weight nor a label table."""

    epoch: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = -1
    best_score: float = float("-inf")
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0  # spent so far

    def stopped(self, patience: int | None) -> bool:
        """Tell whether the score has not risen for ``patience`` epochs."""
        return patience is not None and self.best_epoch >= 0 and self.epoch - 1 - self.best_epoch >= patience


@dataclass(eq=False)
class Trial:
    """One training: a method that has been started, its rows, what is watched, and where it stands.

    The watched rows are judged after every epoch by their class probabilities: the approximated accuracy of those
    whose candidate ``sets`` are known decides which epoch's weights are kept, ``judge`` gives numbers for the
    history.
    """

    method: "PartialLabelClassifier"
    data: Data
    setup: Setup
    rows: tuple[Array, Array]  # x and candidates, held-out rows included
    watched: Tensor | None = None  # (M, *shape), as the data are kept
    sets: Array | None = None  # (V, K): candidate sets of the first V watched rows, which are for validation
    judge: Judge | None = None
    on_epoch: Callable[[int], None] | None = None
    pause: Callable[[], bool] | None = None
    checkpoint: "Checkpoint | None" = None
    progress: "Progress | None" = None
    state: State = field(default_factory=State)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the score has not risen for too long."""
        return self.state.epoch >= self.method.epochs or self.state.stopped(self.method.patience)

    def note(
        self,
        loss: float,
        numbers: Mapping[str, float],
        weights: Callable[["Trial"], dict[str, Tensor]],
        seconds: float,
    ) -> None:
        """Write an epoch into the history and keep the weights if they are the best so far."""
        self.state.seconds += seconds
        score = numbers.get("validation_score", float("-inf"))
        if score > self.state.best_score:
            self.state.best_epoch, self.state.best_score = self.state.epoch, score
            self.state.best_weights = {name: tensor.clone() for name, tensor in weights(self).items()}
        for name, value in {"loss": loss, **numbers}.items():
            self.state.history.setdefault(name, []).append(value)
        if self.on_epoch is not None:
            self.on_epoch(self.state.epoch)
        self.state.epoch += 1

    def keep_best(self) -> None:
        """Give the method the weights of its best epoch, if there was a score."""
        for name, tensor in self.method.weights().items():
            if name in self.state.best_weights:
                tensor.copy_(self.state.best_weights[name])


class TrainingRun:
    """A trial under way: its optimiser, the order of its rows, and its noise. `oneof.train.parallel.stack` has many in one."""

    of_epoch: Epoch  # the one under way
    _clock: Tensor | None = None  # its number, always in the same place

    def __init__(self, trial: Trial) -> None:
        self.trials = [trial]
        self.method, self.data = trial.method, trial.data
        kind = FusedSGD if self.data.weight.device.type == "cuda" else torch.optim.SGD
        self.optimizer: Any = kind(
            self.method.parameter_groups(), lr=self.method.lr, momentum=self.method.momentum
        )
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.order = torch.Generator().manual_seed(seed_for(trial.setup.seed, "order"))
        if trial.checkpoint is not None:
            trial.state = trial.checkpoint.restore(self.method, self.optimizer, self.order) or trial.state

    def shuffled(self) -> Tensor:
        """Return the numbers of the rows (N,) in random order."""
        return torch.randperm(len(self.data), generator=self.order)

    def batch(self, index: Tensor) -> Batch:
        """Return the rows ``index`` with their views."""
        return make_batch(self.data, index, self.of_epoch, self.method.views, self.method.flips)

    def run_epoch(self) -> list[float]:
        """Pass over the rows once, in random order; return the mean loss of each trial, read back once."""
        order, total = self.begin_epoch()
        self.run_steps(order, total)
        return (total / order.shape[-2]).reshape(-1).tolist()

    def begin_epoch(self) -> tuple[Tensor, Tensor]:
        """Return the rows (..., steps, B) of every step and a place (...) to add the losses up."""
        method, data, epoch = self.method, self.data, self.epoch
        if self._clock is None:
            self._clock = torch.zeros((), dtype=torch.float64, device=data.weight.device)
        self.of_epoch = Epoch(epoch, self._clock.fill_(epoch))
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * SCHEDULES[method.schedule](epoch / method.epochs)
        for module in method.modules():
            module.train()
        method.start_epoch(epoch, data)
        size = min(method.batch_size, len(data))
        whole = len(data) // size * size  # the remainder is dropped: every step has the same shape
        shuffled = self.shuffled().to(data.weight.device)[..., :whole]  # (..., N)
        return shuffled.view(*shuffled.shape[:-1], -1, size), torch.zeros_like(data.weight[..., 0])

    def run_steps(self, order: Tensor, total: Tensor) -> None:
        """Take all steps and add their losses to the total."""
        for index in order.unbind(-2):
            self.step(index, total)

    def step(self, index: Tensor, total: Tensor) -> None:
        """Update the weights by the rows ``index``: once, or as often as the method yields a loss."""
        batch, weight = self.batch(index), self.data.weight.gather(-1, index)
        for losses in losses_of(self.method.step(batch)):
            loss = (weight * losses).sum(-1) / weight.sum(-1).clamp_min(1e-12)  # (...)
            self.optimizer.zero_grad(set_to_none=True)  # a network that a loss does not reach stays as it is
            loss.sum().backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        total += loss.detach()

    @property
    def epoch(self) -> int:
        """The epoch under way, which all trials share."""
        return self.trials[0].state.epoch

    def weights(self, trial: Trial) -> dict[str, Tensor]:
        """Return the weights of one trial, by name."""
        return self.method.weights()

    def watch(self) -> list[dict[str, float]]:
        """Return what the watched rows say, for each trial."""
        (trial,) = self.trials
        if trial.watched is None:
            return [{}]
        return [judged(trial, evaluate(self.method, self.data, trial.watched))]

    def save(self, trial: Trial, checkpoint: "Checkpoint") -> None:
        """Write the checkpoint of a trial."""
        checkpoint.save(self.method, self.optimizer, self.order, trial.setup, trial.state)

    def leave(self, finished: list[Trial]) -> None:
        """Let finished trials go."""
        self.trials = [trial for trial in self.trials if trial not in finished]

    def close(self) -> None:
        """Free what only the training needed."""


def train(trial: Trial) -> None:
    """Train one trial for all its epochs, or until its score stops rising.

    With a ``score`` the weights of the best epoch are kept. A checkpoint that exists is continued. The order of
    rows comes from a CPU generator, so that every device sees the same. When ``pause`` says so after an epoch, the
    checkpoint is written and `Paused` raised.
    """
    device = trial.data.weight.device
    with seeded(seed_for(trial.setup.seed, "noise"), device), convolutions(trial.method.deterministic):
        if device.type == "cuda" and not isinstance(trial.data.x, HostRows):
            from oneof.train.parallel.graphs import RecordedRun

            run(RecordedRun(trial))
        else:
            run(TrainingRun(trial))


def run(course: TrainingRun) -> None:
    """Run the epochs of a course until all its trials are finished: the only training loop."""
    try:
        course.leave([trial for trial in course.trials if trial.finished])
        while course.trials:
            _run_epoch(course)
    finally:
        course.close()


def _run_epoch(course: TrainingRun) -> None:
    """Train for an epoch, judge and note it, save, and let finished trials go."""
    begun = time.perf_counter()
    losses = course.run_epoch()
    watched = course.watch()
    seconds = (time.perf_counter() - begun) / len(course.trials)
    for trial, loss, numbers in zip(course.trials, losses, watched, strict=True):
        trial.note(loss, numbers, course.weights, seconds)
    pausing = any(trial.pause is not None and trial.pause() for trial in course.trials)
    # All at the same epoch, so that they can go on together.
    due = pausing or any(trial.checkpoint is not None and trial.checkpoint.due() for trial in course.trials)
    for trial in course.trials:
        if trial.checkpoint is not None and (trial.finished or due):
            course.save(trial, trial.checkpoint)
        if trial.progress is not None:
            trial.progress.update(trial.state, trial.finished)
    course.leave([trial for trial in course.trials if trial.finished])
    if pausing and course.trials:
        raise Paused(course.trials[0].state.epoch)


def losses_of(step: Tensor | Iterable[Tensor]) -> Iterable[Tensor]:
    """A step returns its losses (..., B), or yields several: the weights are updated at each."""
    return (step,) if isinstance(step, Tensor) else step


def evaluate(method: "PartialLabelClassifier", data: Data, rows: Tensor) -> Tensor:
    """Return the class probabilities (..., M, K) of stored rows (..., M, *shape), in evaluation mode."""
    axis = data.candidates.dim() - 2
    with evaluating(method.modules()), uncompiled(method.compile):
        blocks = torch.split(rows, ROWS_AT_ONCE, axis)
        scores = [method.class_scores(data.scaler.load(block, data.dtype)) for block in blocks]
        whole = scores[0] if len(scores) == 1 else torch.cat(scores, -2)
        return whole.softmax(-1)


def judged(trial: Trial, evaluated: Tensor) -> dict[str, float]:
    """Return what the class probabilities (M, K) of a trial's watched rows say."""
    probabilities: Array = evaluated.cpu().numpy()
    numbers = {**scored(probabilities, trial.sets), **(trial.judge(probabilities) if trial.judge else {})}
    return {name: float(value) for name, value in numbers.items()}


def scored(probabilities: Array, sets: Array | None) -> dict[str, Array]:
    """Return the score (...), where there are validation sets (..., V, K), by probabilities (..., M, K)."""
    if sets is None:
        return {}
    return {"validation_score": approximated_accuracy(probabilities[..., : sets.shape[-2], :], sets).mean(-1)}
