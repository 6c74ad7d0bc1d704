"""One process of time_to_accuracy.py: trainings as JSON on standard input; a record of each on standard output."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oneof.bench.keys import run_key
from oneof.bench.plan import run_class
from oneof.bench.running.execute import circumstances
from oneof.bench.running.problem import Problem, make_problem
from oneof.data import PartialLabels
from oneof.train import train

_DIGITS = 5


def problem_of(spec: Mapping[str, Any], task: Mapping[str, Any]) -> Problem:
    """Return the rows and the candidate sets, from files and from the cache."""
    if spec["dataset"] == "digits":
        return _digits(spec["trial"])
    file = task["files"].get(spec["candidates"].get("sha256"))
    return make_problem(spec, None, task["device"], None if file is None else Path(file))


def _digits(trial: int) -> Problem:
    from sklearn.datasets import load_digits  # noqa: PLC0415  a dry run alone

    digits = load_digits()
    candidates = np.random.default_rng(trial).random((1797, 10)) < 0.2
    candidates[np.arange(1797), digits.target] = True
    images = (digits.images * 15).astype(np.uint8)
    rows = PartialLabels(images, candidates, digits.target, list(range(10)), "digits")
    parts = [rows.take(slice(*ends)) for ends in ((0, 1000), (1000, 1400), (1400, 1797))]
    return Problem(*parts, {"sha256": "of the sets"})


def train_once(spec: Mapping[str, Any], problem: Problem, device: str, begun: float | None) -> dict[str, Any]:
    """Train and judge; return the record: of a training that diverged with an accuracy of 0 at the end.

    Test rows are watched by trainings that count, and by no search.
    """
    one_hot = np.eye(len(problem.train.classes), dtype=bool)
    counts = spec["part"] == "run"
    n, seconds = len(problem.validation), []

    def measure(probabilities: np.ndarray) -> dict[str, Any]:
        right = probabilities[:n].argmax(-1) == problem.validation.y
        tested = probabilities[n:].argmax(-1) == problem.test.y if counts else None
        return {"validation_accuracy": right.mean()} | ({} if tested is None else {"test_accuracy": tested.mean()})

    model = run_class(spec)(**spec["settings"], random_state=spec["seed"], device=device)
    start = None if begun is None else time.time() - begun
    called = time.perf_counter()
    trial = model.prepare(
        problem.train.x,
        problem.train.candidates,
        X_val=problem.validation.x,
        y_val=one_hot[problem.validation.y],
        X_watched=problem.test.x if counts else None,
        metrics=measure,
        on_epoch=lambda epoch: seconds.append(time.perf_counter() - called),
    )
    diverged = train(trial).diverged is not None
    if not diverged:
        model.finish(trial)
    in_all = time.perf_counter() - called
    names = ["validation_accuracy", "test_accuracy"][: 1 + counts]
    curve = {"seconds": _rounded(seconds, 3)} | {
        name: _rounded(trial.state.history.get(name, []), _DIGITS) for name in names
    }
    record = {"key": run_key(spec), "status": "done", "spec": spec, **circumstances(device)}
    record |= {"seconds": round(in_all, 3), "epochs": len(seconds), "candidates_sha256": problem.facts["sha256"]}
    record |= {} if start is None else {"start": round(start, 3)}
    at_the_end = {name: 0.0 if diverged else curve[name][-1] for name in names}
    return record | at_the_end | {"curve": curve}


def _rounded(values: list[float], digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def reference(spec: Mapping[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """Time the conventional way, where it can be; of digits on few rows."""
    from speed_cases import CIFAR, FASHION  # noqa: PLC0415  imports that no training should wait for
    from speed_measure import Shape  # noqa: PLC0415
    from speed_reference import measure_conventional  # noqa: PLC0415

    small = Shape("digits, LeNet", (8, 8), 10, "lenet", 300, 50, 50)
    shape = {"cifar-10": CIFAR, "fashion-mnist": FASHION}.get(spec["dataset"], small)
    figures = measure_conventional(shape, spec["reference"], device)
    if "error" in figures:
        print(f"the conventional way {figures['error']}")
        return
    record = {"key": run_key(spec), "status": "done", "spec": spec, **circumstances(device)}
    yield record | {"seconds_per_epoch": round(figures["seconds"], 3), "transforms": figures["transforms"]}


def prepare(task: Mapping[str, Any]) -> None:
    """Make all candidate sets, and take some steps of each method on each data set, so that both are kept."""
    problems, seen = {}, set()
    for spec in task["specs"]:
        if (place := _place(spec)) not in problems:
            problems[place] = problem_of(spec, task)
        if (kind := (spec["dataset"], spec["method"])) not in seen:
            seen.add(kind)
            _take_steps(spec, problems[place], task["device"])


def _take_steps(spec: Mapping[str, Any], problem: Problem, device: str) -> None:
    few = slice(0, 2 * (spec["settings"]["batch_size"] or 100))
    settings = {**spec["settings"], "epochs": 2} | ({"warm_up": 1} if "warm_up" in spec["settings"] else {})
    x, sets = problem.train.x[few], problem.train.candidates[few]
    run_class(spec)(**settings, random_state=0, device=device).fit(x, sets, X_val=x, y_val=sets)


def carry_out(task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Do what is asked, but begin nothing after the budget; the clock of the process counts for the first."""
    begun, problems = float(os.environ["ONEOF_BEGUN"]), {}
    for i, spec in enumerate(task["specs"]):
        if i and time.time() - begun > task["budget"]:
            return
        if spec["part"] == "reference":
            yield from reference(spec, task["device"])
            continue
        if (place := _place(spec)) not in problems:
            problems[place] = problem_of(spec, task)
        yield train_once(spec, problems[place], task["device"], None if i else begun)


def _place(spec: Mapping[str, Any]) -> str:
    """Return what trainings on the same rows and sets have in common."""
    return json.dumps({name: spec.get(name) for name in ("dataset", "trial", "candidates")})


def main() -> None:
    """Read the task."""
    task = json.load(sys.stdin)
    if task.get("prepare"):
        prepare(task)
        return
    for record in carry_out(task):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
