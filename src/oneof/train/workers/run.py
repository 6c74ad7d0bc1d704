"""A training by several workers, as one of them carries it out."""

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneof.augment.draws import for_part
from oneof.train.batch import Batch, make_batch
from oneof.train.checkpoint import Checkpoint
from oneof.train.evaluation import probability_blocks
from oneof.train.loop import LEAST_WEIGHT, TrainingRun, run_epochs
from oneof.train.rows import Array
from oneof.train.trainer import surroundings
from oneof.train.trial import Trial
from oneof.train.trial_state import State
from oneof.train.workers.group import Group, WorkersDisagree
from oneof.train.workers.norms import share_norms
from oneof.train.workers.part import (
    PartBatch,
    PartCheckpoint,
    PartData,
    WorkerPart,
    move,
    own_places,
    place,
    sizes_in,
)


@dataclass
class Outcome:
    """What a training has learned, and where it ended."""

    state: State
    learned: dict[str, Tensor]  # nothing, where it diverged
    diverged: bool
    warned: list[str]  # what the first worker was warned of


def train_part(part: WorkerPart, device: torch.device) -> Outcome | None:
    """Train as one of the workers, whose process group stands; the first one returns the outcome."""
    group = Group()
    trial = _trial(part, group, device)
    with surroundings(trial), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        run = WorkersRun(trial, part, group)
        run_epochs(run)
        return run.outcome([str(each.message) for each in caught if each.category is UserWarning])


def _trial(part: WorkerPart, group: Group, device: torch.device) -> Trial:
    """Return the trial of one worker."""
    method, data = part.method, move(part.method, part.data, device)
    method.tables_of_rows_ = part.tables
    for module in method.modules():
        share_norms(module, group)
    checkpoint = None
    if part.checkpoint is not None:
        checkpoint = PartCheckpoint(*part.checkpoint)
        checkpoint.cut(part, group.rank)
    own = {field.name: getattr(data, field.name) for field in fields(data)}
    first, _ = place(part.rows, group.rank)
    rows = PartData(**own, group=group, first=first, whole_rows=sum(part.rows))
    watched = None if part.watched is None else part.watched.to(device)
    nothing = (np.empty(0), np.empty(0))  # the rows as the user gave them, which training does not read
    return Trial(method, rows, part.setup, nothing, watched, part.sets, checkpoint=checkpoint)


class WorkersRun(TrainingRun):
    """The run of one worker: the same steps as in a run alone, on its own rows."""

    def __init__(self, trial: Trial, part: WorkerPart, group: Group) -> None:
        super().__init__(trial)
        self.part, self.group = part, group
        self._first, _ = place(part.rows, group.rank)
        self._trial = trial
        if not group.agree(trial.state.epoch):
            raise WorkersDisagree(
                "the workers do not read the same checkpoint; name one on a disk that all machines share, at the "
                "same path, or leave it out"
            )

    def batch(self, index: Tensor) -> Batch:
        """Return the rows of a step that this worker has, with their views."""
        places = own_places(index, self._first, len(self.data))
        rows = index[places] - self._first
        with for_part(places, len(index)):
            batch = make_batch(self.data, rows, self.of_epoch, self.method.views, self.method.flips)
        own: dict[str, Any] = {field.name: getattr(batch, field.name) for field in fields(batch)}
        return PartBatch(**own, places=places, size=len(index), group=self.group)

    def differentiate(self, losses: Tensor, weight: Tensor) -> Tensor:
        """Give the weights the gradients of the weighted mean over all rows of the step; return this mean."""
        loss = (weight * losses).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        reached = [
            parameter
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        ends = torch.stack([loss.detach(), weight.sum()])
        flat = self.group.add(torch.cat([*(each.grad.flatten() for each in reached), ends]))
        *gradients, (total, weights) = torch.split(flat, [*(each.numel() for each in reached), 2])
        weights = weights.clamp_min(LEAST_WEIGHT)
        for parameter, gradient in zip(reached, gradients, strict=True):
            parameter.grad = gradient.div_(weights).view_as(parameter)
        mean: Tensor = total / weights
        return mean

    def run_epoch(self) -> list[float]:
        """Pass over the rows once; see that all workers have drawn the same random numbers."""
        losses = super().run_epoch()
        drawn = torch.get_rng_state() if self.data.weight.device.type == "cpu" else torch.cuda.get_rng_state()
        if not self.group.agree(int(drawn.double().dot(torch.arange(len(drawn), dtype=torch.float64)))):
            raise WorkersDisagree(
                "the workers have drawn different random numbers: some layer of the network draws for each row, "
                "as Dropout does, which several workers cannot do; train with one, or without this layer"
            )
        return losses

    def _measure(self) -> list[dict[str, float] | None]:
        """Evaluate the watched rows, of which every worker has some."""
        (trial,) = self.trials
        if not sum(self.part.watched_rows):
            return [{}]
        values = torch.from_numpy(self._scores(trial)).to(self.data.weight.device)
        begin, end = place(self.part.watched_rows, self.group.rank)
        places = torch.arange(begin, end, device=values.device)
        scores: Array = self.group.whole(values, places, sum(self.part.watched_rows)).cpu().numpy()
        mean = float(scores.mean())
        return [{"validation_score": mean} if np.isfinite(mean) else None]

    def _scores(self, trial: Trial) -> Array:
        """Return the scores of this worker's watched rows; NaN where probabilities are not finite."""
        if trial.watched is None or trial.sets is None or not len(trial.watched):
            return np.empty(0)

        def score(rows: slice, evaluated: Tensor) -> Array:
            found = trial.score_block(rows, evaluated)
            return np.full(len(evaluated), np.nan) if found is None else found

        return np.concatenate(probability_blocks(self.method, self.data, trial.watched, score))

    def checkpoint_due(self) -> bool:
        """Tell whether it is time to write one, by the clock of the first worker."""
        return self.group.any(self.group.rank == 0 and super().checkpoint_due())

    def save(self, trial: Trial, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of the whole training, as one process would: the first worker does."""
        learned = self._learned()
        if self.group.rank == 0:
            checkpoint.save(self.method, self.optimizer, self.order, trial.setup, trial.state, learned)

    def _learned(self) -> dict[str, Tensor]:
        """Return on the first worker all that was learned, with the table rows of all workers."""
        learned = self.method.learned()
        for name in sorted(self.part.tables):
            whole = self.group.join(learned[name], sizes_in(learned[name], self.part))
            if whole is not None:
                learned[name] = whole
        return learned

    def outcome(self, warned: list[str]) -> Outcome | None:
        """Return what was learned, and the warnings, to the first worker."""
        trial, diverged = self._trial, self._trial.diverged is not None
        learned = {} if diverged else self._learned()
        if self.group.rank:
            return None
        state = trial.state
        best, average = (_on_cpu(each) for each in (state.best_weights, state.average))
        own = {name: tensor.clone() for name, tensor in _on_cpu(learned).items()}
        return Outcome(replace(state, best_weights=best, average=average), own, diverged, warned)


def _on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors as any machine can read them."""
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}
