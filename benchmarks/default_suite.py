"""The default suite: a fair search for every method on many problems, and what rules for defaults cost beside it.

    PYTHONPATH=src python benchmarks/default_suite.py --workers 16 --budget 1150

carries out what the ledger does not hold yet: for every method and problem the defaults of today, eighteen
random points, and every rule of `rules`, two seeds or more each. Problems whose files are not in $ONEOF_DATA
are left out with a word. On a GPU, where there is one, ``--gpu-workers`` processes more train LeNet, PiCO and
90 classes; without one LeNet and the largest table are left out. What is finished is on the disk: the command
may be killed and given again. Rounds go over all methods and problems, so that a search that was cut off is
fair; ``--rounds 1`` measures the defaults of today alone, ``--rounds 2`` also those with SGD.

Settings that a point does not name have their values in the baseline of `oneof.bench.keys`: points keep their
meaning when a default changes.
"""

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from default_suite_points import (
    ADAMW_POINTS,
    NOW,
    POINTS,
    SEARCHED,
    Settings,
    current,
    random_points,
    rules,
    with_sgd,
)
from default_suite_problems import PROBLEMS, Problem, Rows

from oneof.bench.keys import baseline, run_key
from oneof.bench.ledger import Ledger
from oneof.bench.plan import plan_fields
from oneof.bench.running.execute import circumstances
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.methods import METHODS
from oneof.train import TrainingDiverged, Trial
from oneof.train.parallel.grouping import train_together

LEDGER = Path(__file__).parent / "results" / "default-suite.jsonl"
SUITE = 1  # goes into every key; raise it when problems or points change
_AT_ONCE = 24  # trials


@dataclass(frozen=True)
class Task:
    """Settings of a method on a problem that are carried out together, each with all seeds."""

    problem: str
    method: str
    points: dict[str, Settings]

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU is many times faster."""
        problem = PROBLEMS[self.problem]
        return problem.needs_gpu or problem.fast_on_gpu or self.method == "pico"


def tasks() -> list[Task]:
    """Return all tasks, round by round: a round is one random point or one stack of rules everywhere."""
    names = [f"adamw {i}" for i in range(ADAMW_POINTS)] + [f"random {i}" for i in range(POINTS)]
    rounds = [{name: {point: random_points(name)[point]} for name in PROBLEMS} for point in names]
    for i, stack in enumerate(("adamw", "before", "batch 100", "batch by n")):
        rounds.insert((ADAMW_POINTS + 1) * i, {name: rules(PROBLEMS[name].train)[stack] for name in PROBLEMS})
    pairs = list(product(PROBLEMS, SEARCHED))
    return [
        *(Task(problem, method, {NOW: current(method, problem)}) for problem, method in pairs),
        *(Task(problem, method, {NOW: with_sgd(method)}) for problem, method in pairs),
        *(Task(problem, method, stacks[problem]) for stacks in rounds for problem, method in pairs),
    ]


def estimator(problem: Problem, method: str, point: Settings, **others: Any) -> PartialLabelClassifier:
    """Return a method with the settings of a point that it knows, else those of the baseline."""
    cls = METHODS[method]
    known = plan_fields(cls)
    before = {**baseline(cls.__name__)["settings"]}
    if before.get("mixup", 0.0) is None:
        before["mixup"] = 1.0  # as it was without views when points that do not name it were made
    given = {**before, **point, "network": problem.network, "threads": 1}
    if cls.needs_views:
        given["views"] = problem.views
    return cls(**{name: value for name, value in given.items() if name in known}, **others)


def spec_of(problem: str, method: str, name: str, point: Settings) -> dict[str, Any]:
    """Return what tells a record from others."""
    cls = METHODS[method]
    used = {field: value for field, value in point.items() if field in plan_fields(cls)}
    return {"suite": SUITE, "problem": problem, "method": cls.__name__, "point": name, "settings": used}


# --- carrying out -------------------------------------------------------------------------------------------


def carry_out(task: Task, folder: str, device: str, deadline: float) -> list[dict[str, Any]]:
    """Train and judge; after the deadline nothing is begun."""
    if time.time() > deadline:
        return []
    warnings.simplefilter("ignore")
    begun, problem = time.monotonic(), PROBLEMS[task.problem]
    rows = [load(folder, task.problem, seed) for seed in range(problem.seeds)]
    models = [
        estimator(problem, task.method, point, random_state=seed, device=device)
        for point, seed in product(task.points.values(), range(problem.seeds))
    ]
    scores = fit_and_score(models, rows * len(task.points))
    seconds = round((time.monotonic() - begun) / len(models), 3)
    records = []
    for i, (name, point) in enumerate(task.points.items()):
        own = scores[i * problem.seeds : (i + 1) * problem.seeds]
        spec = spec_of(task.problem, task.method, name, point)
        measured = {"validation": [v for v, _ in own], "test": [t for _, t in own]}
        made = {"seconds": seconds, "version": METHODS[task.method].version, **circumstances(device)}
        records.append({"key": run_key(spec), "status": "done", "spec": spec, **measured, **made})
    return records


Score = tuple[float | None, float | None]


def fit_and_score(models: Sequence[PartialLabelClassifier], rows: Sequence[Rows]) -> list[Score]:
    """Return the accuracies on validation and test rows after the last epoch; None where training diverged."""
    scores: list[Score] = []
    for begin in range(0, len(models), _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        trials = [
            model.prepare(own.x, own.candidates) for model, own in zip(models[some], rows[some], strict=True)
        ]
        train_together(trials)
        scores += [_score(*each) for each in zip(models[some], trials, rows[some], strict=True)]
    return scores


def _score(model: PartialLabelClassifier, trial: Trial, rows: Rows) -> Score:
    try:
        model.finish(trial)
    except TrainingDiverged:
        return None, None
    parts = (rows.x_validation, rows.y_validation), (rows.x_test, rows.y_test)
    validation, test = (round(float((model.predict(x) == y).mean()), 5) for x, y in parts)
    return validation, test


def prepare(folder: str, name: str, seed: int) -> str | None:
    """Write the rows of a problem; return what is wrong where its files are missing."""
    try:
        rows = PROBLEMS[name].make(seed)
    except (OSError, ImportError) as error:
        return str(error)
    np.savez(_file(folder, name, seed), **rows._asdict())
    return None


@cache
def load(folder: str, name: str, seed: int) -> Rows:
    """Read the rows of a problem."""
    with np.load(_file(folder, name, seed)) as arrays:
        return Rows(**arrays)


def _file(folder: str, name: str, seed: int) -> Path:
    return Path(folder) / f"{name}-{seed}.npz"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes on the CPU")
    parser.add_argument("--gpu-workers", type=int, default=4, help="processes on the GPU, where there is one")
    parser.add_argument("--budget", type=float, default=float("inf"), help="begin nothing after so many seconds")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=SEARCHED, default=list(SEARCHED))
    parser.add_argument("--rounds", type=int, default=POINTS + ADAMW_POINTS + 6, help="only the first rounds")
    given = parser.parse_args()
    search(given, time.time() + given.budget)


def search(given: argparse.Namespace, deadline: float) -> None:
    """Carry out what is missing, with a pool for the CPU and one for the GPU; this process alone writes."""
    gpu = torch.cuda.is_available()
    wanted = [
        task
        for task in tasks()[: given.rounds * len(PROBLEMS) * len(SEARCHED)]
        if task.problem in given.problems and task.method in given.methods
    ]
    context = get_context("spawn")
    with (
        Ledger(given.ledger) as ledger,
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(given.workers, context) as cpu_pool,
        ProcessPoolExecutor(given.gpu_workers if gpu else 1, context) as gpu_pool,
    ):
        left = [task for task in wanted if not _done(task, ledger)]
        available = prepared(
            cpu_pool, folder, [name for name in PROBLEMS if any(t.problem == name for t in left)], gpu
        )
        left = [task for task in left if task.problem in available]
        print(f"{len(left)} of {len(wanted)} tasks to do", flush=True)
        pending: set[Future[Any]] = set()
        for task in left:
            pool, device = (gpu_pool, "cuda") if gpu and task.on_gpu else (cpu_pool, "cpu")
            pending.add(pool.submit(carry_out, task, folder, device, deadline))
        write(pending, ledger, time.time())


def prepared(pool: ProcessPoolExecutor, folder: str, names: Sequence[str], gpu: bool) -> set[str]:
    """Make the problems and return those that can be had."""
    available = set()
    made = {}
    for name in names:
        if PROBLEMS[name].needs_gpu and not gpu and len(names) > 1:
            print(f"left out: {name}: it needs a GPU, or --problems '{name}' and time", flush=True)
        else:
            made[name] = [pool.submit(prepare, folder, name, seed) for seed in range(PROBLEMS[name].seeds)]
    for name, parts in made.items():
        wrong = next((part.result() for part in parts if part.result() is not None), None)
        if wrong is None:
            available.add(name)
        else:
            print(f"left out: {name}: {wrong}", flush=True)
    return available


def write(pending: set[Future[Any]], ledger: Ledger, begun: float) -> None:
    """Write records as they come, and say every minute how far it is; what failed is said and tried next time."""
    done, total, told = 0, len(pending), begun
    while pending:
        finished, pending = wait(pending, return_when=FIRST_COMPLETED)
        for future in finished:
            done += 1
            try:
                for record in future.result():
                    ledger.append(record)
            except Exception as error:
                print(f"failed: {error!r}", flush=True)
        if time.time() - told > 60 or not pending:
            told = time.time()
            print(f"{done} of {total} tasks after {told - begun:.0f} s", flush=True)


def _done(task: Task, ledger: Ledger) -> bool:
    keys = (run_key(spec_of(task.problem, task.method, name, point)) for name, point in task.points.items())
    return all(key in ledger.records for key in keys)


if __name__ == "__main__":
    main()
