"""Trials that are alike as one: networks, tables and rows on a leading axis, trained in one run.

A stack of T trials is an ordinary method whose tensors have a leading axis of T: its steps are written for any
axes before the batch. Each trial keeps its own seed, split, order of rows, learning rates, weight decays, random
draws, early stopping and best weights, and ends as if it had been trained alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from oneof.augment import make_views
from oneof.labels import dense_form
from oneof.train.adamw import AdamW
from oneof.train.batch import Batch, Data
from oneof.train.checkpoint import Checkpoint
from oneof.train.checkpoint_schema import kept_buffers, parameters
from oneof.train.course import Course
from oneof.train.divergence import weights_finite_by_trial
from oneof.train.evaluation import class_probabilities
from oneof.train.loop import TrainingRun
from oneof.train.parallel.stacked_layers import StackedBatch, StackedSGD, repeated, stacked_method, take_rows
from oneof.train.rows import Array
from oneof.train.runtime import rng_state, set_rng_state
from oneof.train.trial import MetricCallback, Trial, validation_score

# Once a block of this size was freed, glibc keeps as much memory for later use; otherwise it returns memory to the
# system and takes it again at every step. glibc learns from no larger blocks.
_LARGE_BLOCK = 2**25 - 2**14  # bytes


class StartedTrial(NamedTuple):
    """A trial at its beginning, or where its checkpoint left it, and the state of its random generator."""

    trial: Trial
    run: TrainingRun
    rng_state: Tensor


class StackedTrials(TrainingRun):
    """Trials that are alike, in one run."""

    def __init__(self, started: Sequence[StartedTrial]) -> None:
        torch.empty(_LARGE_BLOCK, dtype=torch.uint8)  # and freed at once
        readers = _reader_groups(started)
        self._reader_group = {id(each.trial): number for each, number in zip(started, readers, strict=True)}
        started = sorted(started, key=lambda each: self._reader_group[id(each.trial)])  # those of a group adjoin
        self._runs = {id(each.trial): each.run for each in started}
        self.trials = [each.trial for each in started]
        self._rng_states = [each.rng_state for each in started]
        self._assemble()

    def _assemble(self) -> None:
        """Put the trials that are left side by side."""
        self._stack_rows()
        readers = Counter(self._reader_group[id(trial)] for trial in self.trials)
        self._readers = list(readers.values())
        self._first = torch.tensor([0, *accumulate(self._readers[:-1])], device=self._kept.device)
        self.method = stacked_method([trial.method for trial in self.trials], self._readers)
        self._stack_optimizer()
        averages = [trial.state.average for trial in self.trials]
        average = {name: torch.stack([each[name] for each in averages]) for name in averages[0]}
        self.course = Course(self.method, self.optimizer, self.rates, average)
        self._stack_watched()
        self._weights = self.method.weights()
        learned = self.method.learned()
        self._predictor = {name: learned[name] for name in self.trials[0].method.predictor()} | average

    def _stack_rows(self) -> None:
        """Stack the rows; tables that several trials have are kept once."""
        datas = [trial.data for trial in self.trials]
        self._kept, kept = _distinct([(data.x, data.candidates) for data in datas if isinstance(data.x, Tensor)])
        self._x, self._candidates = (torch.stack(tables) for tables in zip(*kept, strict=True))
        self.data = Data(
            _each_its_own(self._x, self._kept),
            _each_its_own(self._candidates, self._kept),
            torch.stack([data.weight for data in datas]),
            datas[0].scaler,  # tables are kept standardised, so that the other scalers are not needed
        )
        # Where the rows of each trial begin (T, 1), when all tables stand below each other.
        tables = torch.arange(len(self.trials), device=self._kept.device), self._kept
        self._own_place, self._kept_place = (len(self.data) * table.unsqueeze(1) for table in tables)

    def _stack_optimizer(self) -> None:
        """Give every parameter group the learning rates and weight decays of all trials as vectors."""
        runs = [self._runs[id(trial)] for trial in self.trials]
        groups = self.method.parameter_groups()
        like = self.data.weight
        for i, group in enumerate(groups):
            decays = [run.optimizer.param_groups[i]["weight_decay"] for run in runs]
            group["lr"] = torch.tensor([run.rates[i] for run in runs], dtype=like.dtype, device=like.device)
            group["weight_decay"] = torch.tensor(decays, dtype=like.dtype, device=like.device)
        self.rates = [group["lr"] for group in groups]
        method = self.trials[0].method
        self.optimizer = StackedSGD(groups, method.momentum)
        if method.optimizer_ == "adamw":
            self.optimizer = AdamW(groups, None, method.momentum)
        for parameter, *own in zip(parameters(self.optimizer), *map(_parameters, runs), strict=True):
            states = [run.optimizer.state[p] for run, p in zip(runs, own, strict=True)]
            for name in kept_buffers(method) if states[0] else ():
                self.optimizer.state[parameter][name] = torch.stack([state[name] for state in states])

    def _stack_watched(self) -> None:
        """Stack the watched rows, once for trials that read the same, and collect what measures them."""
        self._watched = None
        if self.trials[0].watched is not None:
            which, rows = _distinct(
                [(trial.watched,) for trial in self.trials if isinstance(trial.watched, Tensor)]
            )
            self._watched = _each_its_own(torch.stack([table for (table,) in rows]), which[self._first])
        sets = [dense_form(trial.sets) for trial in self.trials if trial.sets is not None]
        self._sets = np.stack(sets) if sets else None
        self._metrics: dict[MetricCallback, list[int]] = {}  # and the trials that have each
        for i, trial in enumerate(self.trials):
            if trial.metrics is not None:
                self._metrics.setdefault(trial.metrics, []).append(i)

    def shuffled(self) -> Tensor:
        """Return the numbers of the rows (T, N), each trial's in its own order; a group of readers draws once."""
        drawn = [self._runs[id(self.trials[i])].shuffled() for i in self._first.tolist()]
        return repeated(torch.stack(drawn), self._readers)

    def batch(self, index: Tensor) -> Batch:
        """Return the rows ``index`` (T, B) with their views; each trial draws its own."""
        names, flips = self.method.views, self.method.flips
        rows, kept = index + self._own_place, index + self._kept_place
        candidates = take_rows(self._candidates, kept)
        if names is None:
            views = [take_rows(self._x, kept[self._first])]
        else:
            made = self._each(lambda own: make_views(own, names, flips), take_rows(self._x, kept))
            views = [torch.stack(versions) for versions in zip(*made, strict=True)]
        return StackedBatch(views, candidates, index, self.of_epoch, rows, self._readers, self._each)

    def _each(self, function: Callable[[Tensor], Any], tensor: Tensor) -> list[Any]:
        """Apply a function that draws random numbers to the part of every trial, from its own generator state."""
        results = []
        for i, part in enumerate(tensor.unbind()):
            set_rng_state(self._rng_states[i], tensor.device)
            results.append(function(part))
            self._rng_states[i] = rng_state(tensor.device)
        return results

    def weights_finite(self) -> Tensor:
        """Tell of each trial whether all its weights are finite (T,), without reading back."""
        return weights_finite_by_trial(self._weights.values())

    def predictor(self, trial: Trial) -> dict[str, Tensor]:
        """Return all tensors by which one trial predicts, by name."""
        i = self.trials.index(trial)
        return {name: tensor[i] for name, tensor in self._predictor.items()}

    def measure(self) -> list[dict[str, float] | None]:
        """Evaluate the watched rows; return the score and the metrics of each trial, None where it diverged."""
        if self._watched is None:
            return [{} for _ in self.trials]
        with self.course.averaged():
            evaluated = class_probabilities(self.method, self.data, self._watched)
        probabilities: Array = evaluated.cpu().numpy()
        finite = np.asarray(np.isfinite(probabilities).all((-2, -1)))  # (T,)
        probabilities[~finite] = 1 / probabilities.shape[-1]  # measured with the others, and not looked at
        return [numbers if ok else None for numbers, ok in zip(self._judge(probabilities), finite, strict=True)]

    def _judge(self, probabilities: Array) -> list[dict[str, float]]:
        """Return the score and the metrics of each trial by the probabilities (T, M, K) of its watched rows."""
        measured: list[dict[str, float]] = [{} for _ in self.trials]
        found: list[tuple[Iterable[int], Mapping[str, Any]]] = [
            (range(len(measured)), validation_score(probabilities, self._sets))
        ]
        found += [(members, metrics(probabilities[members])) for metrics, members in self._metrics.items()]
        for members, numbers in found:
            for name, values in numbers.items():
                for i, value in zip(members, values.tolist(), strict=True):
                    measured[i][name] = value
        return measured

    def save(self, trial: Trial, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a trial, the same file as if it were alone."""
        self._give_back(trial)
        set_rng_state(self._rng_states[self.trials.index(trial)], trial.data.weight.device)
        self._runs[id(trial)].save(trial, checkpoint)

    def release(self, finished: list[Trial]) -> None:
        """Give finished trials their weights and tables back, and go on with the others."""
        if not finished:
            return
        for trial in self.trials:
            self._give_back(trial)
        keep = [i for i, trial in enumerate(self.trials) if trial not in finished]
        self._rng_states = [self._rng_states[i] for i in keep]
        self.trials = [self.trials[i] for i in keep]
        if self.trials:
            self._assemble()

    @torch.no_grad()
    def _give_back(self, trial: Trial) -> None:
        """Copy the trial's part of all tensors and buffers into its own method and optimiser."""
        i, run = self.trials.index(trial), self._runs[id(trial)]
        group = self._reader_group[id(trial)]
        first = next(other for other in self.trials if self._reader_group[id(other)] == group)
        run.order.set_state(self._runs[id(first)].order.get_state())
        own = trial.method.learned()
        for name, tensor in self.method.learned().items():
            own[name].copy_(tensor[i])
        for name, tensor in self.course.average.items():
            trial.state.average[name].copy_(tensor[i])
        for parameter, single in zip(parameters(self.optimizer), _parameters(run), strict=True):
            for name, buffer in self.optimizer.state[parameter].items():
                run.optimizer.state[single][name] = buffer[i].clone()


def _distinct(tables: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """Return which tables each trial has (T,), and those that differ.

    Trials of one split have the same rows. Kept once, these stay in a processor's cache.
    """
    kept: list[tuple[Tensor, ...]] = []
    which = []
    for own in tables:
        same = (i for i, others in enumerate(kept) if all(map(torch.equal, own, others)))
        which.append(next(same, len(kept)))
        if which[-1] == len(kept):
            kept.append(own)
    return torch.tensor(which, device=tables[0][0].device), kept


def _reader_groups(started: Sequence[StartedTrial]) -> list[int]:
    """Return for each trial the number of its group: those that read the same rows in the same order.

    These are the trials of one seed in a grid: their generators have the same state, and draw equally often.
    """
    reading = [
        tuple(
            part
            for part in (trial.data.x, trial.data.candidates, trial.watched, run.order.get_state())
            if isinstance(part, Tensor)
        )
        for trial, run, _ in started
    ]
    groups: list[int] = _distinct(reading)[0].tolist()
    return groups


def _each_its_own(tables: Tensor, which: Tensor) -> Tensor:
    """Return the table of each trial (T, N, C) from those that differ (D, N, C); a single one is not copied."""
    return tables.expand(len(which), -1, -1) if len(tables) == 1 else tables.index_select(0, which)


def _parameters(run: TrainingRun) -> Iterable[Tensor]:
    return list(parameters(run.optimizer))
