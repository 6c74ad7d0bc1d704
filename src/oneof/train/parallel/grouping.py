"""Many trials at once: those that are alike in one stack, others on a GPU in one convoy, the rest one by one."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from oneof.nn.networks import Network
from oneof.train.loop import TrainingRun, Trial, run
from oneof.train.parallel.stack import VECTOR_FIELDS, Stack, StartedTrial
from oneof.train.runtime import convolutions, rng_state, seed_for, set_rng_state, threads

# What may differ within a stack: its vectors, and fields that no step reads.
_OWN = (*VECTOR_FIELDS, "random_state", "checkpoint", "verbose", "patience")
_STACKABLE = (nn.Linear, nn.ReLU, nn.Identity, nn.Sequential, Network)
_MOST_CACHE = 2**20  # bytes of a table that each trial of a stack on a CPU may pass over in every step


def train_together(trials: Sequence[Trial]) -> None:
    """Train all trials: alike ones in one stack, others on a GPU in one convoy, the rest one after the other."""
    groups: dict[Any, list[StartedTrial]] = {}
    devices = {trial.data.weight.device for trial in trials if trial.data.weight.device.type == "cuda"}
    with torch.random.fork_rng(devices=devices):
        for trial in trials:
            torch.manual_seed(seed_for(trial.setup.seed, "noise"))
            begun = StartedTrial(trial, TrainingRun(trial), rng_state(trial.data.weight.device))
            groups.setdefault(_likeness(trial) or _pace(trial) or id(trial), []).append(begun)
        for likeness, group in groups.items():
            method = group[0].trial.method
            with threads(method._thread_count()), convolutions(method.deterministic):
                run(_course(likeness, group))


def _course(likeness: Any, group: list[StartedTrial]) -> TrainingRun:
    """Return the course of a group. A stack also for one: its company can change no more than last bits."""
    if isinstance(likeness, _Pace):
        from oneof.train.parallel.graphs import ConcurrentTrials

        generators = [torch.Generator(likeness.device) for _ in group]
        for generator, begun in zip(generators, group, strict=True):
            generator.set_state(begun.noise)
        return ConcurrentTrials([begun.course for begun in group], generators)
    if isinstance(likeness, tuple):
        return Stack(group)
    set_rng_state(group[0].noise, group[0].trial.data.weight.device)
    return group[0].course


class _Pace(NamedTuple):
    """What trials of one convoy have in common."""

    device: torch.device
    steps: int
    epoch: int
    deterministic: bool


def _pace(trial: Trial) -> _Pace | None:
    """Return the pace of a trial on a GPU; None elsewhere."""
    method, data = trial.method, trial.data
    if data.weight.device.type != "cuda" or trial.finished or not isinstance(data.x, Tensor):
        return None
    steps = len(data) // min(method.batch_size, len(data))
    return _Pace(data.weight.device, steps, trial.state.epoch, method.deterministic)


def _likeness(trial: Trial) -> tuple[Any, ...] | None:
    """Return what trials of one stack have in common; None when a trial cannot be stacked."""
    method, data = trial.method, trial.data
    parts = [part for module in method.modules() for part in module.modules()]
    own_network = not isinstance(method.network, str)  # which may do what no copy shows: share layers, have hooks
    plain = isinstance(data.x, Tensor) and len(data.shape) == 1
    if trial.finished or not plain or own_network or not all(map(_stackable, parts)) or _fills_cache(trial):
        return None
    settings = tuple((f.name, getattr(method, f.name)) for f in fields(method) if f.name not in _OWN)
    watched = [None if rows is None else rows.shape for rows in (trial.watched, trial.sets)]
    where = data.x.shape, data.candidates.shape, data.dtype, data.weight.device
    # A model that was fitted before may still hold tables of other settings or other data.
    learned = tuple((name, tensor.shape) for name, tensor in method.learned().items())
    return type(method), settings, where, *watched, learned, trial.state.epoch


def _fills_cache(trial: Trial) -> bool:
    """Tell whether steps on a CPU pass over a table so large that trials had better do so one after the other.

    Tables of rows do not count, as a step reads few of them: a queue does.
    """
    tables = [value for value in vars(trial.method).values() if isinstance(value, Tensor)]
    passed = [table for table in tables if table.shape[:1] != trial.data.candidates.shape[:1]]
    return any(table.device.type == "cpu" and table.nbytes > _MOST_CACHE for table in passed)


def _stackable(part: nn.Module) -> bool:
    return type(part) in _STACKABLE and not (isinstance(part, nn.Linear) and part.bias is None)
