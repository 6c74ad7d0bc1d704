"""The demo: one small network trained in five ways on real digits with ambiguous labels."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.utils.parallel import Parallel, delayed

from oneof import train as training
from oneof.data.corrupt import instance_dependent
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.io.files import replacing
from oneof.methods.cc import CC
from oneof.methods.idgp import IDGP
from oneof.methods.membership import Membership
from oneof.methods.proden import PRODEN
from oneof.pages.demo_page import render

_T = TypeVar("_T")
_CURVE_POINTS = 50
_MOST_PROCESSES = 8  # each loads torch, which takes seconds and memory
_PLAIN_LINES = 5
# For networks this small one thread of the CPU is fastest, and the numbers do not depend on what else runs.
_COMPUTE: dict[str, Any] = {"device": "cpu", "threads": 1}


@dataclass(frozen=True)
class Contender:
    """A way to train, always with its defaults."""

    key: str
    name: str
    make: Callable[..., PartialLabelClassifier]
    sees_truth: bool = False


CONTENDERS = (
    Contender("true_labels", "True labels", CC, sees_truth=True),
    Contender("cc", "CC", CC),
    Contender("proden", "PRODEN", PRODEN),
    Contender("idgp", "IDGP", IDGP),
    Contender("membership", "Membership", Membership),
)


@dataclass(frozen=True)
class Problem:
    """Digits whose training labels are hidden in candidate sets."""

    x_train: NDArray[np.float32]  # (n, 64)
    y_train: NDArray[np.int64]  # (n,): the truth, seen by the upper bound alone
    candidates: NDArray[np.bool_]  # (n, 10)
    x_validation: NDArray[np.float32]  # these served to choose defaults, on other seeds; the demo leaves them
    y_validation: NDArray[np.int64]
    x_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """What one training on one problem came to."""

    curve: list[tuple[int, float]]  # epochs done, test accuracy; the last pair is the result
    disambiguation: float | None  # share of training rows resolved to the truth; None where it was given
    posterior: NDArray[np.floating[Any]]  # (n, 10): how likely each candidate of a training row is


@dataclass(frozen=True)
class Measure:
    """One share for each seed; written as percent, mean ± sample standard deviation."""

    values: list[float]

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.values)

    @property
    def std(self) -> float | None:
        """The sample standard deviation over seeds; a single seed has none."""
        return stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f}" + ("" if self.std is None else f" ± {100 * self.std:.1f}")

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {"per_seed": self.values, "mean": self.mean, "std": self.std}


@dataclass(frozen=True)
class Outcome:
    """A contender's runs, one for each seed."""

    contender: Contender
    runs: list[Run]

    @property
    def accuracy(self) -> Measure:
        """Test accuracy after the last epoch: nothing is selected."""
        return Measure([run.curve[-1][1] for run in self.runs])

    @property
    def disambiguation(self) -> Measure | None:
        """Share of training rows whose most likely candidate is the truth."""
        shares = [run.disambiguation for run in self.runs if run.disambiguation is not None]
        return Measure(shares) if shares else None

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {
            "name": self.contender.name,
            "test_accuracy": self.accuracy.as_json(),
            "disambiguation": self.disambiguation.as_json() if self.disambiguation else None,
            "curve": {
                "epochs": [epoch for epoch, _ in self.runs[0].curve],
                "test_accuracy_per_seed": [[accuracy for _, accuracy in run.curve] for run in self.runs],
            },
        }


@dataclass(frozen=True)
class Report:
    """All that the demo found."""

    seeds: list[int]
    problems: list[Problem]
    outcomes: list[Outcome]
    processes: int
    seconds: float

    @property
    def warm_up(self) -> int:
        """The epochs before IDGP's own objective; Membership has as many."""
        return IDGP.warm_up

    @property
    def set_sizes(self) -> list[float]:
        """The mean number of candidates of a training row, for each seed."""
        return [float(problem.candidates.sum(1).mean()) for problem in self.problems]

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers, and what it takes to get them again."""
        first = self.problems[0]
        return {
            "dataset": "scikit-learn digits",
            "rows": {"train": len(first.y_train), "test": len(first.y_test)},
            "seeds": self.seeds,
            "candidate_set_size": Measure(self.set_sizes).as_json(),
            "methods": {outcome.contender.key: outcome.as_json() for outcome in self.outcomes},
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "versions": {name: version(name) for name in ("oneof", "torch", "numpy", "scikit-learn")}
            | {"python": platform.python_version()},
            "platform": platform.platform(),
            "processor": _processor(),
            "processes": self.processes,
            "seconds": round(self.seconds, 1),
        }

    def as_text(self) -> str:
        """Return the table for a terminal."""
        lines = [("trained with", "test accuracy, %", "training rows resolved, %")]
        for outcome in self.outcomes:
            lines.append((outcome.contender.name, str(outcome.accuracy), str(outcome.disambiguation or "given")))
        table = "\n".join(f"{name:12}  {accuracy:>16}  {resolved:>25}" for name, accuracy, resolved in lines)
        return (
            f"{table}\nmean ± sample standard deviation over {len(self.seeds)} seeds, at the last epoch; "
            f"{fmean(self.set_sizes):.2f} candidates a row; {self.seconds:.0f} s"
        )


def run_demo(
    out: Path,
    json_out: Path | None,
    echo: Callable[[str], None],
    seeds: Sequence[int] = range(5),
    epochs: int | None = None,
) -> None:
    """Run the demo, print its table and write its page, and its numbers when ``json_out`` is given.

    Each seed makes a split, its candidate sets and initial weights. ``epochs`` None leaves each method its
    default.
    """
    # Around all the work, so that a folder that does not exist is told before it and not after.
    with replacing(out) as page, replacing(json_out) if json_out else nullcontext() as numbers:
        report = experiment([int(seed) for seed in seeds], epochs, _processes(), echo)
        page.write_text(render(report), encoding="utf-8")
        if numbers:
            numbers.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    echo(report.as_text())
    echo(f"page: {out.resolve()}" + (f"\nnumbers: {json_out.resolve()}" if json_out else ""))


def experiment(seeds: list[int], epochs: int | None, processes: int, echo: Callable[[str], None]) -> Report:
    """Train every contender on the problem of every seed."""
    begun = time.perf_counter()
    with _progress(len(seeds) * (1 + len(CONTENDERS)), echo) as watched:
        problems = list(watched(in_order(make_problem, [(seed,) for seed in seeds], processes)))
        tasks = [
            (contender, problem, seed, epochs)
            for contender in CONTENDERS
            for seed, problem in zip(seeds, problems, strict=True)
        ]
        runs = list(watched(in_order(train, tasks, processes)))
    outcomes = [
        Outcome(contender, runs[k * len(seeds) : (k + 1) * len(seeds)]) for k, contender in enumerate(CONTENDERS)
    ]
    return Report(seeds, problems, outcomes, processes, time.perf_counter() - begun)


def make_problem(seed: int) -> Problem:
    """Split the digits, and hide the training labels among those that a classifier finds plausible."""
    digits = load_digits()
    X, y = digits.data.astype(np.float32), digits.target
    train, rest = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=seed)
    validation, test = train_test_split(rest, test_size=0.5, stratify=y[rest], random_state=seed)
    # Spelled out, so that the problem stays the same when defaults change.
    annotator = CC(
        network="mlp", epochs=60, lr=0.05, weight_decay=1e-4, batch_size=100, random_state=1000 + seed, **_COMPUTE
    ).fit(X[train], y[train])
    candidates = instance_dependent(y[train], annotator.predict_log_proba(X[train]), rate=0.4, seed=seed)
    return Problem(X[train], y[train], candidates, X[validation], y[validation], X[test], y[test])


def train(contender: Contender, problem: Problem, seed: int, epochs: int | None) -> Run:
    """Train a contender on a problem, watching but not using its test accuracy."""
    estimator = contender.make(random_state=seed, **_COMPUTE)
    if epochs is not None:
        estimator.set_params(epochs=epochs)
    every = max(1, estimator.epochs // _CURVE_POINTS)
    curve: list[tuple[int, float]] = []

    def on_epoch(epoch: int) -> None:
        done = epoch + 1
        if done == 1 or done % every == 0 or done == estimator.epochs:
            curve.append((done, float((estimator.predict(problem.x_test) == problem.y_test).mean())))

    labels = problem.y_train if contender.sees_truth else problem.candidates
    estimator.finish(training.train(estimator.prepare(problem.x_train, labels, on_epoch=on_epoch)))
    resolved = float((estimator.transduction_ == problem.y_train).mean())
    return Run(curve, None if contender.sees_truth else resolved, estimator.label_distributions_)


def in_order(function: Callable[..., _T], tasks: list[tuple[Any, ...]], processes: int) -> Iterator[_T]:
    """Yield the result of each task, in their order; without processes where the machine grants none."""
    finished = 0
    if processes > 1:
        pool = Parallel(n_jobs=min(processes, len(tasks)), return_as="generator")
        try:
            for result in pool(delayed(function)(*task) for task in tasks):
                yield result
                finished += 1
        except (OSError, BrokenExecutor):
            pass  # no process can be started, or one was killed: the rest is done here
    yield from (function(*task) for task in tasks[finished:])


@contextmanager
def _progress(total: int, echo: Callable[[str], None]) -> Iterator[Callable[[Iterator[Any]], Iterator[Any]]]:
    """Give a function that passes results on and shows how many have come."""
    # Not rich's own guess: it takes a pipe for a terminal when FORCE_COLOR is set.
    bar = None
    if sys.stderr.isatty():
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        bar = Progress(*columns, console=Console(stderr=True), transient=True)
        task = bar.add_task("trainings", total=total)
    finished = 0

    def watched(results: Iterator[Any]) -> Iterator[Any]:
        nonlocal finished
        for result in results:
            finished += 1
            if bar is not None:
                bar.advance(task)
            elif finished % max(1, total // _PLAIN_LINES) == 0:
                echo(f"{finished} of {total} trainings done")
            yield result

    with bar or nullcontext():
        yield watched


def _processes() -> int:
    return min(os.cpu_count() or 1, _MOST_PROCESSES)


def _processor() -> str:
    """Name the processor; on Linux Python itself does not know it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
