"""The demo: one small network trained in six ways on real digits with ambiguous labels."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.utils.parallel import Parallel, delayed

from oneof.cli.demo_report import Contender, ContenderResult, DemoReport, DemoRun, DigitsProblem, content
from oneof.comparison.summary import ADVICE
from oneof.data.corrupt import instance_dependent
from oneof.io.files import replacing
from oneof.methods.cc import CC
from oneof.methods.competition import Competition
from oneof.methods.idgp import IDGP
from oneof.methods.membership import Membership
from oneof.methods.proden import PRODEN
from oneof.pages.demo_page import render
from oneof.pages.frame import GREY, HUES
from oneof.train import train

_T = TypeVar("_T")
_CURVE_POINTS = 50
_MOST_PROCESSES = 8  # each loads torch, which takes seconds and memory
_PLAIN_LINES = 5
# For networks this small one thread of the CPU is fastest, and the numbers do not depend on what else runs.
_COMPUTE: dict[str, Any] = {"device": "cpu", "threads": 1}


CONTENDERS = (
    Contender("true_labels", "True labels", CC, "knows every true label: the upper bound", GREY, sees_truth=True),
    Contender("cc", "CC", CC, "raises the candidates’ total probability", HUES[1]),
    Contender("proden", "PRODEN", PRODEN, "reweighs the candidates as it learns", HUES[2]),
    Contender("idgp", "IDGP", IDGP, "also models how wrong candidates arise", HUES[0]),
    Contender("membership", "Membership", Membership, "also learns which candidates are usual", HUES[3]),
    Contender("competition", "Competition", Competition, "lets wrong labels compete for a place", HUES[4]),
)


def run_demo(
    out: Path,
    json_out: Path | None,
    echo: Callable[[str], None],
    seeds: Sequence[int] = range(5),
    epochs: int | None = None,
    visible: bool = True,
) -> DemoReport:
    """Run the demo, print its table and write its page, and its numbers when ``json_out`` is given.

    Each seed makes a split, its candidate sets and initial weights. ``epochs`` None leaves each method its
    default.
    """
    # Around all the work: a folder that does not exist is an error before the work begins, not after it.
    with replacing(out) as page, replacing(json_out) if json_out else nullcontext() as numbers:
        report = experiment([int(seed) for seed in seeds], epochs, _processes(), echo, visible)
        page.write_text(render(content(report)), encoding="utf-8")
        if numbers:
            numbers.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    echo(report.as_text())
    echo(ADVICE)
    echo(f"page: {out.resolve()}" + (f"\nnumbers: {json_out.resolve()}" if json_out else ""))
    return report


def experiment(
    seeds: list[int], epochs: int | None, processes: int, echo: Callable[[str], None], visible: bool = True
) -> DemoReport:
    """Train every contender on the problem of every seed."""
    begun = time.perf_counter()
    with _progress(len(seeds) * (1 + len(CONTENDERS)), echo, visible) as watched:
        problems = list(watched(in_order(make_problem, [(seed,) for seed in seeds], processes)))
        tasks = [
            (contender, problem, seed, epochs)
            for contender in CONTENDERS
            for seed, problem in zip(seeds, problems, strict=True)
        ]
        runs = list(watched(in_order(train_contender, tasks, processes)))
    results = [
        ContenderResult(contender, runs[k * len(seeds) : (k + 1) * len(seeds)])
        for k, contender in enumerate(CONTENDERS)
    ]
    return DemoReport(seeds, problems, results, processes, time.perf_counter() - begun)


def make_problem(seed: int) -> DigitsProblem:
    """Split the digits, and hide the training labels among those that a classifier finds plausible."""
    digits = load_digits()
    X, y = digits.data.astype(np.float32), digits.target
    train, rest = train_test_split(np.arange(len(y)), test_size=0.4, stratify=y, random_state=seed)
    validation, test = train_test_split(rest, test_size=0.5, stratify=y[rest], random_state=seed)
    # Spelled out, so that the problem stays the same when defaults change.
    annotator = CC(
        network="mlp",
        epochs=60,
        lr=0.05,
        schedule="constant",
        weight_decay=1e-4,
        batch_size=100,
        random_state=1000 + seed,
        **_COMPUTE,
    ).fit(X[train], y[train])
    candidates = instance_dependent(y[train], annotator.predict_log_proba(X[train]), rate=0.4, seed=seed)
    return DigitsProblem(X[train], y[train], candidates, X[validation], y[validation], X[test], y[test])


def train_contender(contender: Contender, problem: DigitsProblem, seed: int, epochs: int | None) -> DemoRun:
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
    estimator.finish(train(estimator.prepare(problem.x_train, labels, on_epoch=on_epoch)))
    resolved = float((estimator.transduction_ == problem.y_train).mean())
    return DemoRun(curve, None if contender.sees_truth else resolved, estimator.label_distributions_)


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
def _progress(
    total: int, echo: Callable[[str], None], visible: bool
) -> Iterator[Callable[[Iterator[Any]], Iterator[Any]]]:
    """Give a function that passes results on and shows how many have come."""
    # Not rich's own guess: it takes a pipe for a terminal when FORCE_COLOR is set.
    bar = None
    if visible and sys.stderr.isatty():
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
            elif visible and finished % max(1, total // _PLAIN_LINES) == 0:
                echo(f"{finished} of {total} trainings done")
            yield result

    with bar or nullcontext():
        yield watched


def _processes() -> int:
    return min(os.cpu_count() or 1, _MOST_PROCESSES)
