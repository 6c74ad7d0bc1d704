"""One run: fit, measure after every epoch, and record the results. True labels judge; they never train."""

import os
import platform
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import SubprocessError
from subprocess import run as run_command
from typing import Any

if sys.platform != "win32":
    import resource

import numpy as np
import torch
from numpy.typing import NDArray

import oneof
from oneof.bench.keys import run_key
from oneof.bench.plan import run_class
from oneof.bench.record import (
    CRITERIA,
    Circumstances,
    Criterion,
    CurvePoints,
    DoneRecord,
    EpochResult,
    FailedRecord,
    Record,
    ResultsByWay,
    Spec,
)
from oneof.bench.running.deadline import Deadline
from oneof.bench.running.problem import Problem
from oneof.em import EMClassifier
from oneof.estimator import PartialLabelClassifier
from oneof.labels import WeightedSets
from oneof.train import Paused, TrainingDiverged, Trial
from oneof.train.parallel.grouping import train_together
from oneof.train.runtime import resolve_device

_PACKAGES = ("torch", "numpy", "scikit-learn")  # whose versions are recorded
_POINTS = 20  # of a curve: thousands of runs must fit a repository
_DIGITS = 4
_OUT_OF_MEMORY = "out of memory: use fewer workers, a smaller batch_size or network, or another device"


@dataclass(frozen=True)
class Job:
    """A run to execute: its spec, its problem, and where to keep its checkpoint."""

    spec: Spec
    problem: Problem
    checkpoint: Path | None


def execute(jobs: Sequence[Job], device: str, deadline: Deadline | None) -> list[Record | None]:
    """Train and measure runs, alike ones at once; return their records, None for runs that the deadline paused."""
    started = time.monotonic()
    try:
        if any(issubclass(run_class(job.spec), EMClassifier) for job in jobs):
            return [_fit_at_once(job) for job in jobs]
        trials = [prepare_trial(job, device, deadline) for job in jobs]
        with suppress(Paused):
            train_together(trials)
        return [_record(job, trial, device) for job, trial in zip(jobs, trials, strict=True)]
    except Exception as error:
        if len(jobs) > 1:  # one by one, to find the run that fails
            return [record for job in jobs for record in execute([job], device, deadline)]
        failed = failure(jobs[0].spec, error, device)
        failed["seconds"] = time.monotonic() - started
        return [failed]


def lacks_memory(error: BaseException | None) -> bool:
    """Tell whether memory was short, for this error or one that was being handled when it was raised."""
    while error is not None:
        # torch has an error of its own for the memory of GPUs alone
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error):
            return True
        error = error.__context__
    return False


def _record(job: Job, trial: Trial, device: str) -> Record | None:
    """Return the record of a run that has ended, None of one that was paused.

    A run that diverged has failed, also where the weights of an earlier epoch could be used: its last epoch is not
    the one that was asked for.
    """
    if not trial.finished:
        return None
    try:
        if trial.diverged is not None:
            raise trial.diverged
        return _done(job, trial, device)
    except TrainingDiverged as error:
        failed = _failed(job.spec, str(error), device)
        failed["reason"], failed["seconds"] = "diverged", round(trial.state.seconds, 3)
        return failed


def died(spec: Spec, reason: str, device: str) -> FailedRecord:
    """Return the record of a run whose process was lost."""
    return _failed(spec, f"{reason}; if it was killed, the machine was probably {_OUT_OF_MEMORY}", device)


def failure(spec: Spec, error: Exception, device: str) -> FailedRecord:
    """Return the record of a run that raised an error."""
    if lacks_memory(error):
        return _failed(spec, f"{_OUT_OF_MEMORY} ({error})", device)
    return _failed(spec, "".join(traceback.format_exception(error)), device)


def _failed(spec: Spec, error: str, device: str) -> FailedRecord:
    where = circumstances(device)
    return {
        "key": run_key(spec),
        "status": "failed",
        "error": error,
        "spec": spec,
        "device": where["device"],
        "versions": where["versions"],
        "commit": where["commit"],
    }


def prepare_trial(job: Job, device: str, deadline: Deadline | None) -> Trial:
    """Make the estimator of a run and all that its training needs, without training it."""
    spec, problem = job.spec, job.problem
    cls = run_class(spec)
    assert issubclass(cls, PartialLabelClassifier)
    model = cls(**spec["settings"], random_state=spec["seed"], device=device, checkpoint=job.checkpoint)
    one_hot = np.eye(len(problem.train.classes), dtype=bool)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    return model.prepare(
        problem.train.x,
        _labels(spec, problem),
        X_val=problem.validation.x,
        y_val=one_hot[problem.validation.y],
        X_watched=problem.test.x,
        metrics=problem.measure,
        pause=None if deadline is None else deadline.has_passed,
    )


def _labels(spec: Spec, problem: Problem) -> Any:
    """Return what a run learns from."""
    if spec["labels"] == "true":
        return np.eye(len(problem.train.classes), dtype=bool)[problem.train.y]
    return WeightedSets(problem.likelihoods) if spec["labels"] == "likelihoods" else problem.train.candidates


def _fit_at_once(job: Job) -> DoneRecord:
    """Train and measure a run without epochs: nothing is chosen by validation rows, and curves have one point."""
    problem, started = job.problem, time.monotonic()
    model = EMClassifier(**job.spec["settings"], random_state=job.spec["seed"])
    model.fit(problem.train.x, problem.train.candidates)
    seconds = time.monotonic() - started
    measured = problem.measure(model.predict_proba(np.concatenate([problem.validation.x, problem.test.x])))
    history = {"loss": np.array(model.history_["loss"][-1:] or [np.nan])}
    history |= {name: np.array([value]) for name, value in measured.items()}
    package = {"lightgbm": ("lightgbm",), "xgboost": ("xgboost",)}.get(model.estimator, ())
    return _done_record(job, model, history, circumstances("cpu", (*_PACKAGES, *package)), seconds)


def _done(job: Job, trial: Trial, device: str) -> DoneRecord:
    """Return the record of a training that is done."""
    model: Any = trial.method
    model.finish(trial)
    history = {name: np.array(values) for name, values in model.history_.items()}
    return _done_record(job, model, history, circumstances(device), trial.state.seconds)


def _done_record(
    job: Job, model: Any, history: Mapping[str, NDArray[Any]], where: Circumstances, seconds: float
) -> DoneRecord:
    transductive = float((model.transduction_ == job.problem.train.y).mean())
    stopped_by_truth = job.spec["settings"].get("patience") is not None
    return {
        "key": run_key(job.spec),
        "status": "done",
        "spec": job.spec,
        **where,
        "seconds": round(seconds, 3),
        "memory": peak_memory(),
        "candidates": job.problem.facts,
        "epochs": len(history["loss"]),
        "results": _results(history, stopped_by_truth, transductive),
        "curves": _curves(history),
    }


def _results(history: Mapping[str, NDArray[Any]], stopped_by_truth: bool, transductive: float) -> ResultsByWay:
    """Return the test accuracy at the epoch that each criterion chooses; the best test epoch is never a result.

    Where clean validation rows stop the training, no result is free of true labels.
    """

    def at(epoch: int, chosen_by_truth: bool) -> EpochResult:
        def value(curve: str) -> float:
            return round(float(history[curve][epoch]), 6)

        return {
            "epoch": epoch,
            "validation": {
                "validation_accuracy": value("validation_accuracy"),
                "approximated_accuracy": value("approximated_accuracy"),
                "covering_rate": value("covering_rate"),
            },
            "test_accuracy": value("test_accuracy"),
            "true_labels": chosen_by_truth or stopped_by_truth,
        }

    def best(criterion: Criterion) -> EpochResult:
        return at(int(history[criterion].argmax()), CRITERIA[criterion])

    return {
        "validation_accuracy": best("validation_accuracy"),
        "approximated_accuracy": best("approximated_accuracy"),
        "covering_rate": best("covering_rate"),
        "last_epoch": at(len(history["loss"]) - 1, False),
        "transductive": {"accuracy": round(transductive, 6), "true_labels": True},
    }


def _curves(history: Mapping[str, NDArray[Any]]) -> CurvePoints:
    """Return at most 20 points of every curve, the first and the last among them."""
    length = len(history["loss"])
    points = np.unique(np.linspace(0, length - 1, min(length, _POINTS)).round().astype(int))

    def curve(name: str) -> list[Any]:
        return [None if np.isnan(value) else float(f"{value:.{_DIGITS}g}") for value in history[name][points]]

    return {
        "epoch": points.tolist(),
        "loss": curve("loss"),
        "validation_accuracy": curve("validation_accuracy"),
        "approximated_accuracy": curve("approximated_accuracy"),
        "covering_rate": curve("covering_rate"),
        "test_accuracy": curve("test_accuracy"),
    }


def circumstances(device: str, packages: Sequence[str] = _PACKAGES) -> Circumstances:
    """Say where and with what a run was made."""
    where = resolve_device(device)
    name = torch.cuda.get_device_name(where) if where.type == "cuda" else f"{platform.machine()} CPU"
    versions = {"oneof": oneof.__version__, "python": platform.python_version()}
    versions |= {package: _version(package) for package in packages}
    return {"device": name, "versions": versions, "commit": commit()}


def _version(package: str) -> str:
    """Return the version of a package; that of XGBoost may be installed under two names."""
    try:
        return version(package)
    except PackageNotFoundError:
        return version(f"{package}-cpu")


@cache
def commit() -> str | None:
    """Return the commit of this code, with a plus sign when files have changed since.

    ``$ONEOF_COMMIT`` has the first word, for copies of the code on other machines; outside git there is none.
    """
    if "ONEOF_COMMIT" in os.environ:
        return os.environ["ONEOF_COMMIT"]
    folder = Path(oneof.__file__).parent
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


def peak_memory() -> dict[str, float]:
    """Return peak megabytes of the process, and of the GPU during the run."""
    memory = {}
    if sys.platform != "win32":  # which has no such numbers
        unit = 1024**2 if sys.platform == "darwin" else 1024
        memory["process_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
    if torch.cuda.is_available():
        memory["gpu_mb"] = round(torch.cuda.max_memory_allocated() / 1024**2, 1)
    return memory
