"""Which trials are trained at once: alike ones as a stack, others side by side on a GPU, the rest one by one."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from oneof.nn.networks import Factory, Network, Shape
from oneof.train.loop import TrainingRun, run_epochs
from oneof.train.parallel.graphs import ConcurrentTrials
from oneof.train.parallel.stack import StackedTrials, StartedTrial
from oneof.train.runtime import cudnn_flags, rng_state, seed_for, set_rng_state, threads
from oneof.train.trial import Trial

_STACKABLE_NETWORKS = ("auto", "linear", "mlp")  # on tables
_STACKABLE_LAYERS = (nn.Linear, nn.ReLU, nn.Identity, nn.Sequential, Network)
_MOST_CACHE = 2**20  # bytes of a table that each trial of a stack on a CPU may pass over in every step


def train_together(trials: Sequence[Trial]) -> None:
    """Train all trials: alike ones as one stack, others side by side on a GPU, the rest one after the other."""
    groups: dict[Any, list[StartedTrial]] = {}
    devices = {trial.data.weight.device for trial in trials if trial.data.weight.device.type == "cuda"}
    with ExitStack() as stack, torch.random.fork_rng(devices=devices):
        for trial in trials:
            stack.enter_context(trial.checkpoint_in_use())
        for trial in trials:
            torch.manual_seed(seed_for(trial.setup.seed, "noise"))
            started = StartedTrial(trial, TrainingRun(trial), rng_state(trial.data.weight.device))
            groups.setdefault(stack_key(trial) or _pace(trial) or id(trial), []).append(started)
        for key, group in groups.items():
            method = group[0].trial.method
            with threads(method.thread_count()), cudnn_flags(method.deterministic):
                run_epochs(_joint_run(key, group))


def _joint_run(key: Any, group: list[StartedTrial]) -> TrainingRun:
    """Return the run of a group.

    A trial that can be stacked is a stack of one when alone, so that other trials change its last bits at most.
    """
    if isinstance(key, _Pace):
        generators = [torch.Generator(key.device) for _ in group]
        for generator, started in zip(generators, group, strict=True):
            generator.set_state(started.rng_state)
        return ConcurrentTrials([started.run for started in group], generators)
    if isinstance(key, tuple):
        return StackedTrials(group)
    set_rng_state(group[0].rng_state, group[0].trial.data.weight.device)
    return group[0].run


class _Pace(NamedTuple):
    """What trials that run side by side have in common."""

    device: torch.device
    steps: int
    epoch: int
    deterministic: bool


def _pace(trial: Trial) -> _Pace | None:
    """Return the pace of a trial whose steps a GPU records; None of others."""
    method, data = trial.method, trial.data
    if trial.finished or not trial.recordable:
        return None
    steps = len(data) // method.batch_size_
    return _Pace(data.weight.device, steps, trial.state.epoch, method.deterministic)


def can_stack(network: str | nn.Module | Factory, shape: Shape) -> bool:
    """Tell whether trials with a network on rows of a shape can be stacked: named networks of linear layers.

    A network of your own may do what a copy of its layers does not show, such as sharing them or having hooks.
    """
    return len(shape) == 1 and network in _STACKABLE_NETWORKS


def stack_key(trial: Trial) -> tuple[Any, ...] | None:
    """Return what trials of one stack have in common; None when a trial cannot be stacked."""
    method, data = trial.method, trial.data
    layers = [layer for module in method.modules() for layer in module.modules()]
    fits = can_stack(method.network, data.shape) and all(map(_is_stackable, layers))
    on_device = isinstance(data.x, Tensor) and isinstance(data.sets, Tensor)  # and dense
    if trial.finished or not on_device or not fits or _fills_cache(trial):
        return None
    settings = tuple(method.stack_settings().items())
    watched = [None if rows is None else (rows.shape, rows.dtype) for rows in (trial.watched, trial.sets)]
    where = data.x.shape, data.sets.shape, data.sets.dtype, data.dtype, data.weight.device
    # A model that was fitted before may still hold tables of other settings or other data.
    learned = tuple((name, tensor.shape) for name, tensor in method.learned().items())
    return type(method), settings, where, *watched, learned, trial.state.epoch


def _fills_cache(trial: Trial) -> bool:
    """Tell whether steps on a CPU pass over a table so large that trials are faster one after the other.

    A table of rows does not count, since a step reads few of them; a queue does.
    """
    tables = trial.method.tables()
    read_whole = [table for table in tables.values() if table.shape[:1] != trial.data.sets.shape[:1]]
    return any(table.device.type == "cpu" and table.nbytes > _MOST_CACHE for table in read_whole)


def _is_stackable(layer: nn.Module) -> bool:
    return type(layer) in _STACKABLE_LAYERS and not (isinstance(layer, nn.Linear) and layer.bias is None)
