"""Which runs are executed at once, and in which order: a trial of every method comes before the next trial."""

import json
import math
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from oneof.bench.plan import Run, run_class
from oneof.data.catalogue import Dataset
from oneof.em import EMClassifier
from oneof.train.parallel.grouping import can_stack

__all__ = ["execution_order", "in_time", "together"]

_MOST_STACKED = 32  # runs that are trained as one stack: linear and mlp networks on tables
_STACK_BYTES = 2**30
_MOST_SIDE_BY_SIDE = 12  # other runs, on a GPU
_MOST_DEEP = 5  # of networks that fill a GPU by few: more would gain little and end late
_DEEP = ("resnet18", "resnet32", "wideresnet", "resnext29")


class _Kind(NamedTuple):
    """What the runs of a group have in common, how many may be in it, and whether they are one stack."""

    common: str
    most: int
    stacked: bool


def execution_order(
    runs: Sequence[Run], pending: Collection[str], failed: Collection[str], begun: Collection[str], on_gpu: bool
) -> list[list[Run]]:
    """Return the groups to execute: what was begun, a trial of every method before the next trial, what failed.

    The last bits of a run depend on the others in its stack. So stacks are the plan's own: on a CPU one that was
    interrupted is executed again as a whole, and its numbers are those of an undisturbed run. Other runs are
    grouped by what is left. Those that failed are tried again alone.

    Parameters
    ----------
    runs : sequence of Run
        All runs of the plan, trial by trial.
    pending, failed, begun : collections of str
        Keys: of the runs to execute, of those that failed before, and of those that have a checkpoint.
    on_gpu : bool
        Whether runs can be trained side by side.
    """
    keys = {id(run): run.key for run in runs}
    waiting = [run for run in runs if keys[id(run)] in pending]
    stacked = {id(run) for run in runs if _kind_of(run, on_gpu).stacked}
    groups, again = [], [run for run in waiting if id(run) not in stacked and keys[id(run)] in failed]
    for stack in together([run for run in runs if id(run) in stacked], on_gpu):
        left = [run for run in stack if keys[id(run)] in pending]
        if all(keys[id(run)] in failed for run in left):
            again += left
        else:
            groups.append(left if on_gpu else stack)
    others = [run for run in waiting if id(run) not in stacked and keys[id(run)] not in failed]
    first = together([run for run in others if keys[id(run)] in begun], on_gpu)
    groups += together([run for run in others if keys[id(run)] not in begun], on_gpu)
    return [*first, *_in_order(groups, runs), *([run] for run in again)]


def together(runs: Sequence[Run], on_gpu: bool = False) -> list[list[Run]]:
    """Group runs that can be trained at once; groups stand in the order of their first runs."""
    groups: dict[_Kind, list[Run]] = {}
    for run in runs:
        groups.setdefault(_kind_of(run, on_gpu), []).append(run)
    return _in_order([part for kind, group in groups.items() for part in _equal_parts(group, kind.most)], runs)


def in_time(group: list[Run], seconds: Callable[[Run], float | None], left: float) -> int:
    """Return how many of the first runs of a group are begun when so many seconds are left.

    Trials side by side all end late: no more are begun together than will end in time, so that a budget is spent
    on results. A stack stays whole, and so does a group of which nothing is known or no run would end.
    """
    each = [seconds(run) for run in group]
    if len(group) == 1 or None in each or _kind_of(group[0], on_gpu=True).stacked:
        return len(group)
    ending = sum(total <= left for total in accumulate(value or 0.0 for value in each))
    return ending or len(group)


def _in_order(groups: list[list[Run]], runs: Sequence[Run]) -> list[list[Run]]:
    place = {id(run): i for i, run in enumerate(runs)}
    return sorted(groups, key=lambda group: place[id(group[0])])


def _kind_of(run: Run, on_gpu: bool) -> _Kind:
    cls = run_class(run.spec)
    if issubclass(cls, EMClassifier):
        return _Kind(json.dumps([run.dataset, run.spec["method"], run.spec["settings"]]), 1, stacked=False)
    method = cls(**run.spec["settings"])
    if can_stack(method.network, run.facts.shape):
        alike = json.dumps([run.dataset, run.spec["method"], method.stack_settings()])
        return _Kind(alike, _stack_size(run.facts), stacked=True)
    # Trials side by side take as many steps and about as much memory; they may be of different methods.
    common = json.dumps([run.dataset, method.network, method.batch_size, method.deterministic])
    most = _MOST_DEEP if method.network in _DEEP else _MOST_SIDE_BY_SIDE
    return _Kind(common, most if on_gpu else 1, stacked=False)


def _equal_parts(group: list[Run], most: int) -> list[list[Run]]:
    """Split a group into parts of about the same size, so that workers end together."""
    size = math.ceil(len(group) / math.ceil(len(group) / most))
    return [group[i : i + size] for i in range(0, len(group), size)]


def _stack_size(facts: Dataset) -> int:
    """Return how many trials on a table fit a stack: rows and about ten tables of labels for each, in floats."""
    bytes_a_trial = 4 * facts.rows[0] * (facts.shape[0] + 10 * len(facts.classes))
    return max(1, min(_MOST_STACKED, _STACK_BYTES // bytes_a_trial))
