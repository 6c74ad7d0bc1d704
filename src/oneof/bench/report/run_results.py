"""Results of runs: what a record says, and what a method did over the points of its grid and its trials."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from oneof.bench.record import WAYS, Criterion, DoneRecord, Spec, Way, problem_of
from oneof.bench.report.same_sets import Checksums, usual
from oneof.bench.report.statistics import select
from oneof.io.schema import is_number

__all__ = [
    "CRITERION",
    "Choice",
    "Curves",
    "Environment",
    "MethodResult",
    "RunResult",
    "Search",
    "keep_usual_sets",
    "mean_curves",
    "run_result",
]

CRITERION: Criterion = "validation_accuracy"  # the paper's way: accuracy on validation rows with true labels
_CURVE_POINTS = 50


@dataclass(frozen=True, order=True)
class Environment:
    """Where and with what a run was made."""

    commit: str
    device: str
    versions: str


@dataclass(frozen=True)
class Curves:
    """Accuracy after so many epochs."""

    epochs: Sequence[float]
    validation: Sequence[float]
    test: Sequence[float]


@dataclass(frozen=True)
class RunResult:
    """A run that is done; ``test`` and ``score`` are by the way in which its epoch was chosen."""

    key: str
    problem: str  # what decides rows and candidate sets, unless an annotator differs between devices
    epoch: int  # chosen by CRITERION, the first is 1
    test: Mapping[Way, float]
    score: Mapping[Way, float]
    transductive: float
    seconds: float
    curves: Curves
    candidates: Mapping[str, float]  # facts about the candidate sets
    sets: str | None  # the checksum of these sets, where it is known
    patience: int | None
    environment: Environment


Search = dict[str, dict[int, RunResult]]  # runs by point of the grid and trial


@dataclass(frozen=True)
class Choice:
    """The chosen point of a grid, its mean validation score, and its trials."""

    point: str
    validation: float
    trials: Mapping[int, RunResult]


@dataclass(frozen=True)
class MethodResult:
    """One method on one data set: every point of its grid, and the trials there that are done."""

    search: Mapping[str, Mapping[int, RunResult]]
    planned: int

    def choose(self, way: Way = CRITERION) -> Choice | None:
        """Choose a point by its mean validation score over trials; None if nothing is done."""
        scores = {point: {i: t.score[way] for i, t in trials.items()} for point, trials in self.search.items()}
        found = select(scores, self.planned)
        return None if found is None else Choice(found.point, found.mean, self.search[found.point])

    def scores(self, way: Way = CRITERION) -> dict[int, float]:
        """Return the test accuracy of each trial at the chosen point and epoch."""
        choice = self.choose(way)
        return {} if choice is None else {i: trial.test[way] for i, trial in choice.trials.items()}

    @property
    def sets(self) -> Checksums:
        """The candidate sets of each trial at the chosen point."""
        choice = self.choose()
        return {} if choice is None else {i: trial.sets for i, trial in choice.trials.items()}

    @property
    def done(self) -> list[RunResult]:
        """Return all trials of all points."""
        return _runs(self.search)


def keep_usual_sets(search: Search, everywhere: Iterable[Search]) -> int:
    """Take the runs out of a search that saw other sets than most runs of the same problem; return how many."""
    all_runs = [run for other in everywhere for run in _runs(other)]
    taken = 0
    for problem in {run.problem: None for run in _runs(search)}:
        own, others = ([run.sets for run in runs if run.problem == problem] for runs in (_runs(search), all_runs))
        sets = usual(own, others)
        for trials in search.values():
            for trial, run in list(trials.items()):
                if run.problem == problem and run.sets not in (None, sets):
                    del trials[trial]
                    taken += 1
    return taken


def _runs(search: Mapping[str, Mapping[int, RunResult]]) -> list[RunResult]:
    return [run for trials in search.values() for run in trials.values()]


def mean_curves(trials: Sequence[RunResult]) -> Curves:
    """Average curves up to the last epoch that all trials have reached."""
    last = min(trial.curves.epochs[-1] for trial in trials)
    epochs = np.linspace(1, last, min(math.ceil(last), _CURVE_POINTS))

    def mean(name: str) -> list[float]:
        rows = [np.interp(epochs, t.curves.epochs, getattr(t.curves, name)).tolist() for t in trials]
        return [fmean(column) for column in zip(*rows, strict=True)]

    return Curves(epochs.tolist(), mean("validation"), mean("test"))


def run_result(record: DoneRecord, spec: Spec) -> RunResult:
    """Read a record that is done; a score that is NaN, of a model that diverged, counts as 0.

    The spec is that of the plan: one in a ledger need not name what has its value in the baseline.
    """
    results, curves, facts = record["results"], record["curves"], record["candidates"]
    return RunResult(
        key=record["key"],
        problem=json.dumps(problem_of(spec), sort_keys=True),
        epoch=results[CRITERION]["epoch"] + 1,
        test={way: 100.0 * results[way]["test_accuracy"] for way in WAYS},
        score={way: 100.0 * (results[way]["validation"][score] or 0.0) for way, score in WAYS.items()},
        transductive=100.0 * results["transductive"]["accuracy"],
        seconds=float(record["seconds"]),
        curves=Curves(
            [epoch + 1 for epoch in curves["epoch"]],
            [100.0 * value for value in curves["validation_accuracy"]],
            [100.0 * value for value in curves["test_accuracy"]],
        ),
        candidates={name: float(v) for name, v in facts.items() if isinstance(v, int | float) and is_number(v)},
        sets=facts.get("sha256"),
        patience=spec["settings"].get("patience"),
        environment=Environment(
            record["commit"] or "unknown",
            record["device"],
            ", ".join(f"{name} {number}" for name, number in record["versions"].items()),
        ),
    )
