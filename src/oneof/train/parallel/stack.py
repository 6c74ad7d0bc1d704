"""Many trials at once: networks, tables and rows of alike trials on a leading axis, in one course.

A stack of T trials is an ordinary method whose tensors have a leading axis of T: its steps are written for any
axes before the batch and do not know. Each trial keeps its own seed, split, order of rows, learning rates, weight
decays, noise, early stopping and best weights, and ends as if it had been trained alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from oneof.augment.views import make_views
from oneof.train.batch import Batch, Data
from oneof.train.checkpoint import Checkpoint
from oneof.train.loop import Judge, TrainingRun, Trial, evaluate, scored
from oneof.train.parallel.stacked_layers import StackedBatch, StackedSGD, repeated, stacked_method, take_rows
from oneof.train.rows import Array
from oneof.train.runtime import rng_state, set_rng_state

# Those that the optimiser of a stack has as vectors.
VECTOR_FIELDS = ("lr", "weight_decay", "lr_g", "weight_decay_g")
# Once such a block was freed, glibc keeps as much for later use; otherwise it returns memory to the system and
# takes it again at every step.
_LARGE_BLOCK = 2**25 - 2**14  # bytes: it learns from no larger ones


class StartedTrial(NamedTuple):
    """A trial alone at its beginning, or where its checkpoint left it, and the state of its noise."""

    trial: Trial
    course: TrainingRun
    noise: Tensor


class Stack(TrainingRun):
    """Trials that are alike, under way together."""

    def __init__(self, courses: Sequence[StartedTrial]) -> None:
        torch.empty(_LARGE_BLOCK, dtype=torch.uint8)  # and freed at once
        company = _company(courses)
        self._company = {id(begun.trial): number for begun, number in zip(courses, company, strict=True)}
        courses = sorted(courses, key=lambda begun: self._company[id(begun.trial)])  # those of one adjoin
        self._courses = {id(begun.trial): begun.course for begun in courses}
        self.trials = [begun.trial for begun in courses]
        self._noise = [begun.noise for begun in courses]
        self._assemble()

    def _assemble(self) -> None:
        """Put the trials that are left side by side."""
        courses = [self._courses[id(trial)] for trial in self.trials]
        first = self.trials[0]
        datas = [trial.data for trial in self.trials]
        self._kept, kept = _distinct([(data.x, data.candidates) for data in datas if isinstance(data.x, Tensor)])
        self._x, self._candidates = (torch.stack(tables) for tables in zip(*kept, strict=True))
        self.data = Data(
            _each_its_own(self._x, self._kept),
            _each_its_own(self._candidates, self._kept),
            torch.stack([data.weight for data in datas]),
            first.data.scaler,  # tables are kept standardised: no other is asked for
        )
        # Where the rows of each trial begin (T, 1), when all tables stand below each other.
        tables = torch.arange(len(self.trials), device=self._kept.device), self._kept
        self._own_place, self._kept_place = (len(self.data) * table.unsqueeze(1) for table in tables)
        self._readers = list(Counter(self._company[id(trial)] for trial in self.trials).values())
        first_of_company = [0, *accumulate(self._readers[:-1])]
        self._first = torch.tensor(first_of_company, device=self._kept.device)
        self.method = stacked_method([trial.method for trial in self.trials], self._readers)
        groups = self.method.parameter_groups()
        like = self.data.weight
        for i, group in enumerate(groups):
            own = [course.optimizer.param_groups[i] for course in courses]
            group["lr"] = torch.tensor(
                [course.rates[i] for course in courses], dtype=like.dtype, device=like.device
            )
            group["weight_decay"] = torch.tensor(
                [g["weight_decay"] for g in own], dtype=like.dtype, device=like.device
            )
        self.rates = [group["lr"] for group in groups]
        self.optimizer = StackedSGD(groups, first.method.momentum)
        self._load_momentum(courses)
        self._watched = None
        if first.watched is not None:
            which, rows = _distinct([(trial.watched,) for trial in self.trials if trial.watched is not None])
            self._watched = _each_its_own(torch.stack([table for (table,) in rows]), which[self._first])
        sets = [trial.sets for trial in self.trials if trial.sets is not None]
        self._sets = np.stack(sets) if sets else None
        self._judges: dict[Judge, list[int]] = {}  # and which trials each has to judge
        for i, trial in enumerate(self.trials):
            if trial.judge is not None:
                self._judges.setdefault(trial.judge, []).append(i)
        self._weights = self.method.weights()

    def _load_momentum(self, courses: list[TrainingRun]) -> None:
        for parameter, *own in zip(self.optimizer.parameters(), *map(_parameters, courses), strict=True):
            buffers = [c.optimizer.state[p].get("momentum_buffer") for c, p in zip(courses, own, strict=True)]
            if buffers[0] is not None:
                self.optimizer.buffers[parameter] = torch.stack(buffers)

    def shuffled(self) -> Tensor:
        """Return the numbers of the rows (T, N), each trial's in its own order; one of a company draws it."""
        drawn = [self._courses[id(self.trials[i])].shuffled() for i in self._first.tolist()]
        return repeated(torch.stack(drawn), self._readers)

    def batch(self, index: Tensor) -> Batch:
        """Return the rows ``index`` (T, B) with their views; each trial draws its own noise."""
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
        """Apply a function that draws random numbers to the part of every trial, with its own stream."""
        results = []
        for i, part in enumerate(tensor.unbind()):
            set_rng_state(self._noise[i], tensor.device)
            results.append(function(part))
            self._noise[i] = rng_state(tensor.device)
        return results

    def weights(self, trial: Trial) -> dict[str, Tensor]:
        """Return the weights of one trial, by name."""
        i = self.trials.index(trial)
        return {name: tensor[i] for name, tensor in self._weights.items()}

    def watch(self) -> list[dict[str, float]]:
        """Return what the watched rows say, for each trial."""
        said: list[dict[str, float]] = [{} for _ in self.trials]
        if self._watched is None:
            return said
        probabilities: Array = evaluate(self.method, self.data, self._watched).cpu().numpy()
        judged: list[tuple[Iterable[int], Mapping[str, Any]]] = [
            (range(len(said)), scored(probabilities, self._sets))
        ]
        judged += [(members, judge(probabilities[members])) for judge, members in self._judges.items()]
        for members, numbers in judged:
            for name, values in numbers.items():
                for i, value in zip(members, values.tolist(), strict=True):
                    said[i][name] = value
        return said

    def save(self, trial: Trial, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a trial, the same file as if it were alone."""
        self._give_back(trial)
        set_rng_state(self._noise[self.trials.index(trial)], trial.data.weight.device)
        self._courses[id(trial)].save(trial, checkpoint)

    def leave(self, finished: list[Trial]) -> None:
        """Give finished trials their weights and tables back, and go on with the others."""
        if not finished:
            return
        for trial in self.trials:
            self._give_back(trial)
        keep = [i for i, trial in enumerate(self.trials) if trial not in finished]
        self._noise = [self._noise[i] for i in keep]
        self.trials = [self.trials[i] for i in keep]
        if self.trials:
            self._assemble()

    @torch.no_grad()
    def _give_back(self, trial: Trial) -> None:
        """Copy the trial's part of all tensors and buffers into its own method and optimiser."""
        i, course = self.trials.index(trial), self._courses[id(trial)]
        leader = next(other for other in self.trials if self._company[id(other)] == self._company[id(trial)])
        course.order.set_state(self._courses[id(leader)].order.get_state())
        own = trial.method.learned()
        for name, tensor in self.method.learned().items():
            own[name].copy_(tensor[i])
        for parameter, single in zip(self.optimizer.parameters(), _parameters(course), strict=True):
            if parameter in self.optimizer.buffers:
                course.optimizer.state[single]["momentum_buffer"] = self.optimizer.buffers[parameter][i].clone()


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


def _company(courses: Sequence[StartedTrial]) -> list[int]:
    """Return for each trial which of the companies it is of that read the same rows in the same order.

    These are the trials of one seed in a grid: their generators have the same state, and draw equally often.
    """
    reading = [
        tuple(
            part
            for part in (trial.data.x, trial.data.candidates, trial.watched, course.order.get_state())
            if isinstance(part, Tensor)
        )
        for trial, course, _ in courses
    ]
    company: list[int] = _distinct(reading)[0].tolist()
    return company


def _each_its_own(tables: Tensor, which: Tensor) -> Tensor:
    """Return the table of each trial (T, N, C) from those that differ (D, N, C); a single one is not copied."""
    return tables.expand(len(which), -1, -1) if len(tables) == 1 else tables.index_select(0, which)


def _parameters(course: TrainingRun) -> Iterable[Tensor]:
    return [parameter for group in course.optimizer.param_groups for parameter in group["params"]]
