"""One run: fit, judge after every epoch, and write down what came out. True labels judge; they never train."""

import os
import platform
import resource
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from subprocess import SubprocessError
from subprocess import run as run_command
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oneof import __version__
from oneof.bench.ledger import run_key
from oneof.bench.running.problem import Problem
from oneof.methods import METHODS
from oneof.train import Paused, Trial
from oneof.train.parallel.grouping import train_together
from oneof.train.runtime import resolve_device

_POINTS = 20  # of a curve: thousands of runs must fit a repository
_DIGITS = 4
# Curves on the validation rows by which an epoch can be chosen, and whether they need true labels.
CRITERIA = {"validation_accuracy": True, "approximated_accuracy": False, "covering_rate": False}
_OUT_OF_MEMORY = "out of memory: use fewer workers, a smaller batch_size or network, or another device"


@dataclass(frozen=True)
class Job:
    """A run to execute: its spec, its problem, and where to keep its checkpoint."""

    spec: Mapping[str, Any]
    problem: Problem
    checkpoint: Path | None


def execute(jobs: Sequence[Job], device: str, deadline: float | None) -> list[dict[str, Any] | None]:
    """Train and judge runs, alike ones at once; return their records, None for those that the deadline paused."""
    started = time.monotonic()
    try:
        trials = [_prepare(job, device, deadline) for job in jobs]
        with suppress(Paused):
            train_together(trials)
        return [
            _record(job, trial, device) if trial.finished else None
            for job, trial in zip(jobs, trials, strict=True)
        ]
    except Exception as error:
        if len(jobs) > 1:  # one by one, to find the guilty
            return [record for job in jobs for record in execute([job], device, deadline)]
        lack = isinstance(error, MemoryError | torch.OutOfMemoryError)
        text = f"{_OUT_OF_MEMORY} ({error})" if lack else traceback.format_exc()
        return [_failed(jobs[0].spec, text, device) | {"seconds": time.monotonic() - started}]


def died(spec: Mapping[str, Any], reason: str, device: str) -> dict[str, Any]:
    """Return the record of a run whose process was lost."""
    return _failed(spec, f"{reason}; if it was killed, the machine was probably {_OUT_OF_MEMORY}", device)


def _failed(spec: Mapping[str, Any], error: str, device: str) -> dict[str, Any]:
    return {
        "key": run_key(dict(spec)),
        "status": "failed",
        "error": error,
        "spec": dict(spec),
        **circumstances(device),
    }


def _prepare(job: Job, device: str, deadline: float | None) -> Trial:
    spec, problem = job.spec, job.problem
    cls = METHODS[spec["method"].lower()]
    model = cls(**spec["settings"], random_state=spec["seed"], device=device, checkpoint=job.checkpoint)
    one_hot = np.eye(len(problem.train.classes), dtype=bool)
    labels = one_hot[problem.train.y] if spec["labels"] == "true" else problem.train.candidates
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    return model.prepare(
        problem.train.x,
        labels,
        X_val=problem.validation.x,
        y_val=one_hot[problem.validation.y],
        X_watched=problem.test.x,
        metrics=problem.judge,
        pause=None if deadline is None else lambda: time.time() >= deadline,
    )


def _record(job: Job, trial: Trial, device: str) -> dict[str, Any]:
    """Write down a run that is done."""
    model: Any = trial.method
    model.finish(trial)
    history = {name: np.array(values) for name, values in model.history_.items()}
    transductive = float((model.transduction_ == job.problem.train.y).mean())
    stopped_by_truth = job.spec["settings"]["patience"] is not None
    return {
        "key": run_key(dict(job.spec)),
        "status": "done",
        "spec": dict(job.spec),
        **circumstances(device),
        "seconds": round(trial.state.seconds, 3),
        "memory": _peak_memory(),
        "candidates": job.problem.facts,
        "epochs": len(history["loss"]),
        "results": _results(history, stopped_by_truth)
        | {"transductive": {"accuracy": round(transductive, 6), "true_labels": True}},
        "curves": _curves(history),
    }


def _results(history: Mapping[str, NDArray[Any]], stopped_by_truth: bool) -> dict[str, Any]:
    """Return the test accuracy at the epoch that each criterion chooses; the best test epoch is never a result.

    Where clean validation rows stop the training, no result is free of true labels.
    """
    chosen = {name: (int(history[name].argmax()), uses_truth) for name, uses_truth in CRITERIA.items()}
    chosen["last_epoch"] = (len(history["loss"]) - 1, False)
    return {
        name: {
            "epoch": epoch,
            "validation": {score: round(float(history[score][epoch]), 6) for score in CRITERIA},
            "test_accuracy": round(float(history["test_accuracy"][epoch]), 6),
            "true_labels": uses_truth or stopped_by_truth,
        }
        for name, (epoch, uses_truth) in chosen.items()
    }


def _curves(history: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    """Return at most 20 points of every curve, the first and the last among them."""
    length = len(history["loss"])
    points = np.unique(np.linspace(0, length - 1, min(length, _POINTS)).round().astype(int))
    curves = {name: [float(f"{v:.{_DIGITS}g}") for v in values[points]] for name, values in history.items()}
    return {"epoch": points.tolist(), **{n: c for n, c in curves.items() if n != "validation_score"}}


def circumstances(device: str) -> dict[str, Any]:
    """Say where and with what a run was made."""
    where = resolve_device(device)
    name = torch.cuda.get_device_name(where) if where.type == "cuda" else f"{platform.machine()} CPU"
    versions = {"oneof": __version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in ("torch", "numpy", "scikit-learn")}
    return {"device": name, "versions": versions, "commit": commit()}


@cache
def commit() -> str | None:
    """Return the commit of this code, with a plus sign when files have changed since.

    ``$ONEOF_COMMIT`` has the first word, for copies of the code on other machines; outside git there is none.
    """
    if "ONEOF_COMMIT" in os.environ:
        return os.environ["ONEOF_COMMIT"]
    folder = Path(__file__).parents[1]
    try:
        head, changes = (
            run_command(
                ["git", "-C", str(folder), *command], capture_output=True, text=True, check=True
            ).stdout.strip()
            for command in (
                ["rev-parse", "HEAD"],
                ["status", "--porcelain", "--", str(folder)],
            )
        )
    except (OSError, SubprocessError):
        return None
    return head[:12] + ("+" if changes else "")


def _peak_memory() -> dict[str, float]:
    """Return peak megabytes of the process, and of the GPU during the run."""
    unit = 1024**2 if sys.platform == "darwin" else 1024
    memory = {"process_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)}
    if torch.cuda.is_available():
        memory["gpu_mb"] = round(torch.cuda.max_memory_allocated() / 1024**2, 1)
    return memory
