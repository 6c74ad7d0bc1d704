"""Many trials at once: networks, tables and rows of alike trials on a leading axis, in one course.

A stack of T trials is an ordinary method whose tensors have a leading axis of T: its steps are written for any
axes before the batch and do not know. Each trial keeps its own seed, split, order of rows, learning rates, weight
decays, noise, early stopping and best weights, and ends as if it had been trained alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from oneof.augment import make_views
from oneof.base import PartialLabelClassifier
from oneof.batch import Batch, Data
from oneof.checkpoint import Checkpoint
from oneof.compute import noise, set_noise
from oneof.engine import Course, Judge, Trial, evaluate, scored

# Those that the optimiser of a stack has as vectors.
VECTOR_FIELDS = ("lr", "weight_decay", "lr_g", "weight_decay_g")


class StackedLinear(nn.Module):
    """T linear layers: x (T, B, inputs) -> (T, B, outputs)."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.weight = _stacked_parameter([layer.weight for layer in layers])  # (T, outputs, inputs)
        self.bias = _stacked_parameter([layer.bias for layer in layers])  # (T, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias``, trial by trial."""
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight.mT)


class StackedSGD:
    """Stochastic gradient descent with momentum; learning rates and weight decays are vectors over trials."""

    def __init__(self, groups: list[dict[str, Any]], momentum: float) -> None:
        self.param_groups, self.momentum = groups, momentum  # lr and weight_decay of each: (T,)
        self.buffers: dict[Tensor, Tensor] = {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for parameter in self.parameters():
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that the loss has reached."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                lr, decay = (_beside(group[name], parameter) for name in ("lr", "weight_decay"))
                change = parameter.grad.addcmul_(decay, parameter)  # in place: the gradient is forgotten anyway
                buffer = self.buffers.get(parameter)
                if buffer is None:
                    buffer = self.buffers[parameter] = change
                else:
                    buffer.mul_(self.momentum).add_(change)
                parameter.addcmul_(lr, buffer, value=-1)

    def parameters(self) -> Iterable[Tensor]:
        """Return all parameters, group by group."""
        return (parameter for group in self.param_groups for parameter in group["params"])


@dataclass(frozen=True)
class StackedBatch(Batch):
    """A batch (T, B) whose trials draw from streams of their own."""

    rows: Tensor  # (T * B,): where they stand when all trials stand below each other
    each: Callable[[Callable[[Tensor], Any], Tensor], list[Any]]

    def take(self, table: Tensor) -> Tensor:
        """Read these rows (T, B, C) of a table (T, N, C)."""
        return _take(table, self.rows, len(table))

    def put(self, table: Tensor, values: Tensor) -> None:
        """Write these rows of a table; values carry no gradient."""
        values = values.detach().to(table.dtype).flatten(0, 1)
        table.view(-1, table.shape[-1]).index_copy_(0, self.rows, values)

    def dirichlet(self, concentration: Tensor) -> Tensor:
        """Draw a Dirichlet sample (T, B, K), differentiable in its concentration."""
        return torch.stack(self.each(super().dirichlet, concentration))


class Begun(NamedTuple):
    """A trial alone at its beginning, or where its checkpoint left it, and the state of its noise."""

    trial: Trial
    course: Course
    noise: Tensor


class Stack(Course):
    """Trials that are alike, under way together."""

    def __init__(self, courses: "Sequence[Begun]") -> None:
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
        self.method = _stacked_method([trial.method for trial in self.trials])
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
            self._watched = _each_its_own(torch.stack([table for (table,) in rows]), which)
        sets = [trial.sets for trial in self.trials if trial.sets is not None]
        self._sets = np.stack(sets) if sets else None
        self._judges: dict[Judge, list[int]] = {}  # and which trials each has to judge
        for i, trial in enumerate(self.trials):
            if trial.judge is not None:
                self._judges.setdefault(trial.judge, []).append(i)
        self._weights = self.method.weights()

    def _load_momentum(self, courses: list[Course]) -> None:
        for parameter, *own in zip(self.optimizer.parameters(), *map(_parameters, courses), strict=True):
            buffers = [c.optimizer.state[p].get("momentum_buffer") for c, p in zip(courses, own, strict=True)]
            if buffers[0] is not None:
                self.optimizer.buffers[parameter] = torch.stack(buffers)

    def shuffled(self) -> Tensor:
        """Return the numbers of the rows (T, N), each trial's in its own order."""
        return torch.stack([self._courses[id(trial)].shuffled() for trial in self.trials])

    def batch(self, index: Tensor) -> Batch:
        """Return the rows ``index`` (T, B) with their views; each trial draws its own noise."""
        names, flips = self.method.views, self.method.flips
        rows = _below_each_other(index, torch.arange(len(index), device=index.device), len(self.data))
        kept = _below_each_other(index, self._kept, len(self.data))
        x, candidates = (_take(tables, kept, len(index)) for tables in (self._x, self._candidates))
        views = [x]
        if names is not None:
            made = self._each(lambda own: make_views(own, names, flips), x)
            views = [torch.stack(versions) for versions in zip(*made, strict=True)]
        return StackedBatch(views, candidates, index, self.epoch, rows, self._each)

    def _each(self, function: Callable[[Tensor], Any], tensor: Tensor) -> list[Any]:
        """Apply a function that draws random numbers to the part of every trial, with its own stream."""
        results = []
        for i, part in enumerate(tensor.unbind()):
            set_noise(self._noise[i], tensor.device)
            results.append(function(part))
            self._noise[i] = noise(tensor.device)
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
        probabilities = evaluate(self.method, self.data, self._watched)
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
        set_noise(self._noise[self.trials.index(trial)], trial.data.weight.device)
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
        own = trial.method.learned()
        for name, tensor in self.method.learned().items():
            own[name].copy_(tensor[i])
        for parameter, single in zip(self.optimizer.parameters(), _parameters(course), strict=True):
            if parameter in self.optimizer.buffers:
                course.optimizer.state[single]["momentum_buffer"] = self.optimizer.buffers[parameter][i].clone()


def _stacked_method(methods: Sequence[PartialLabelClassifier]) -> PartialLabelClassifier:
    """Return a method whose networks and tables are those of all, on a leading axis."""
    stacked = copy(methods[0])
    for name, value in vars(methods[0]).items():
        if isinstance(value, Tensor):
            setattr(stacked, name, torch.stack([getattr(method, name) for method in methods]))
        elif isinstance(value, nn.Module):
            setattr(stacked, name, _stacked_module([getattr(method, name) for method in methods]))
    return stacked


def _stacked_module(modules: Sequence[nn.Module]) -> nn.Module:
    """Return the first module with every linear layer in the place of all."""
    first = modules[0]
    if isinstance(first, nn.Linear):
        return StackedLinear([module for module in modules if isinstance(module, nn.Linear)])
    stacked = copy(first)
    children = [dict(module.named_children()) for module in modules]
    stacked._modules = {name: _stacked_module([each[name] for each in children]) for name in children[0]}
    return stacked


def _stacked_parameter(parameters: Sequence[Tensor]) -> nn.Parameter:
    """Return parameters on a leading axis.

    Matrices lie transposed in memory, as their gradients come: these would have to be copied otherwise.
    """
    stacked = torch.stack([p.detach().t() for p in parameters]).transpose(1, -1)
    return nn.Parameter(stacked, requires_grad=parameters[0].requires_grad)


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


def _each_its_own(tables: Tensor, which: Tensor) -> Tensor:
    """Return the table of each trial (T, N, C) from those that differ (D, N, C); a single one is not copied."""
    return tables.expand(len(which), -1, -1) if len(tables) == 1 else tables.index_select(0, which)


def _below_each_other(index: Tensor, table: Tensor, length: int) -> Tensor:
    """Return the numbers (T * B,) of rows ``index`` (T, B) of the named tables when all stand below each other."""
    return (index + length * table.unsqueeze(1)).flatten()


def _take(tables: Tensor, rows: Tensor, trials: int) -> Tensor:
    """Return rows (T, B, C) of tables (D, N, C) by their numbers (T * B,) when these stand below each other.

    Whole rows are copied, which is several times faster than to gather their elements.
    """
    return tables.flatten(0, 1).index_select(0, rows).view(trials, -1, tables.shape[-1])


def _beside(vector: Tensor, parameter: Tensor) -> Tensor:
    """Give a vector over trials as many axes as a parameter."""
    return vector.view(-1, *[1] * (parameter.dim() - 1))


def _parameters(course: Course) -> Iterable[Tensor]:
    return [parameter for group in course.optimizer.param_groups for parameter in group["params"]]
