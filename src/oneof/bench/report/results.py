"""Results: what ledgers say about a plan, method by method and data set by data set. Accuracies are in percent."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from oneof.bench.ledger import Records
from oneof.bench.plan import SUPERVISED, Plan
from oneof.bench.record import WAYS, Criterion, DoneRecord, Spec, Way, check_record, reason_of
from oneof.bench.report.grids import Result, Results
from oneof.bench.report.paper import Paper
from oneof.bench.report.statistics import Cell, cell, compare, select
from oneof.bench.schema import is_number
from oneof.data.catalogue import DATASETS

__all__ = [
    "CRITERION",
    "WAYS",
    "Curves",
    "Environment",
    "MethodResult",
    "Report",
    "RunResult",
    "Surface",
    "collect",
    "describe",
    "mean_curves",
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
    epoch: int  # chosen by CRITERION, the first is 1
    test: Mapping[Way, float]
    score: Mapping[Way, float]
    transductive: float
    seconds: float
    curves: Curves
    candidates: Mapping[str, float]  # facts about the candidate sets
    patience: int | None
    environment: Environment


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
    def done(self) -> list[RunResult]:
        """Return all trials of all points."""
        return [trial for trials in self.search.values() for trial in trials.values()]


@dataclass(frozen=True)
class Surface:
    """Test accuracy over two axes of a grid; the rest of the grid is searched at each place."""

    x: Sequence[Any]
    y: Sequence[Any]
    cells: Mapping[tuple[int, int], Cell]  # places along x and y
    chosen: tuple[int, int] | None


@dataclass(frozen=True)
class Closed:
    """How far the reference (gain) and the bound (room) are above the best baseline, in points."""

    baseline: str
    gain: float
    room: float

    @property
    def share(self) -> float:
        """The part of the room that is taken, NaN where there is none."""
        return self.gain / self.room if self.room > 0 else math.nan


@dataclass(frozen=True)
class Report:
    """A plan and what its ledgers hold."""

    plan: Plan
    outcomes: Mapping[str, Mapping[str, MethodResult]]  # label -> data set
    paper: Paper | None
    failures: Mapping[str, str]  # run -> what went wrong
    total: int  # runs that the plan has
    done: int
    unrelated: int  # records of other plans
    skipped: int  # lines of the ledgers that could not be read

    @property
    def bounds(self) -> list[str]:
        """The methods that learn from true labels."""
        return [label for label, method in self.plan.methods.items() if method["method"] == SUPERVISED]

    @cached_property
    def results(self) -> Results:
        """Cells, and how the reference compares with each; trials that both have are paired."""
        reference = self.outcomes.get(self.plan.reference, {})
        scores = {name: outcome.scores() for name, outcome in reference.items()}

        def result(label: str, name: str, found: Mapping[int, float]) -> Result:
            alone = label in (self.plan.reference, *self.bounds) or not scores.get(name)
            verdict = None if alone else compare(scores[name], found, self.resplits(name))
            return Result(cell(found, self.plan.trials), verdict)

        rows = {
            label: {
                name: result(label, name, found) for name, outcome in row.items() if (found := outcome.scores())
            }
            for label, row in self.outcomes.items()
        }
        return Results("Test accuracy (%)", self.plan.datasets, rows, self.plan.reference, apart=self.bounds)

    def resplits(self, dataset: str) -> tuple[int, int] | None:
        """Return the numbers of training and test rows where trials are random splits of the same rows."""
        rows, split = DATASETS[dataset].rows, self.plan.split
        if len(rows) > 1 or split.fixed:
            return None
        validation, test = round(split.validation * rows[0]), round(split.test * rows[0])
        return rows[0] - validation - test, test

    def gap(self, label: str, dataset: str) -> float:
        """Return bound minus method, over the trials that both have; NaN if there are none."""
        bound, other = self._common(dataset, self.bounds[0], label)
        return bound - other

    def closed(self, dataset: str) -> Closed | None:
        """Return how much of the room above the best baseline the reference takes, over trials that all have."""
        rows = {label: self.results.rows[label].get(dataset) for label in self.results.rivals}
        means = {label: result.cell.mean for label, result in rows.items() if result is not None}
        if not means or self.plan.reference not in self.outcomes:
            return None
        best = max(means, key=means.__getitem__)
        bound, reference, baseline = self._common(dataset, self.bounds[0], self.plan.reference, best)
        return Closed(best, reference - baseline, bound - baseline)

    def surface(self, label: str, dataset: str) -> Surface | None:
        """Return the results over the axes of the plan's heat map, None for a method without them."""
        points = self.plan.points(label, dataset)
        axes = self.plan.heatmap
        if axes is None or not points or not set(axes) <= set(points[0]):
            return None
        x, y = (self.plan.grid[axis] for axis in axes)
        outcome = self.outcomes[label][dataset]
        place = {describe(point): (x.index(point[axes[0]]), y.index(point[axes[1]])) for point in points}
        parts = {
            spot: MethodResult({p: t for p, t in outcome.search.items() if place[p] == spot}, outcome.planned)
            for spot in dict.fromkeys(place.values())
        }
        choice = outcome.choose()
        cells = {spot: cell(part.scores(), part.planned) for spot, part in parts.items()}
        return Surface(x, y, cells, None if choice is None else place[choice.point])

    def _common(self, dataset: str, *labels: str) -> list[float]:
        """Return the mean test accuracy of each method over the trials that all have."""
        scores = [self.outcomes[label][dataset].scores() for label in labels]
        trials = sorted(set.intersection(*map(set, scores)))
        return [fmean(row[i] for i in trials) if trials else math.nan for row in scores]


def collect(plan: Plan, records: Records, paper: Paper | None = None) -> Report:
    """Gather what ledgers hold of a plan, and the paper's numbers to set beside it."""
    searches: dict[str, dict[str, dict[str, dict[int, RunResult]]]] = {}
    failures: dict[str, str] = {}
    keys: set[str] = set()
    for run in plan.runs():
        keys.add(key := run.key)
        found = records.records.get(key)
        points = searches.setdefault(run.label, {}).setdefault(run.dataset, {})
        trials = points.setdefault(describe(run.point), {})
        if found is None:
            continue
        record = check_record(found)
        if record["status"] == "done":
            trials[run.trial] = _run_result(record, run.spec)
        else:
            failures[run.name] = reason_of(record)
    mine = [records.records[key]["status"] for key in keys & records.records.keys()]
    return Report(
        plan=plan,
        outcomes={
            label: {name: MethodResult(search, plan.trials) for name, search in row.items()}
            for label, row in searches.items()
        },
        paper=paper,
        failures=failures,
        total=len(keys),
        done=mine.count("done"),
        unrelated=len(records.records) - len(mine),
        skipped=records.skipped,
    )


def describe(point: Mapping[str, Any]) -> str:
    """Write a point of a grid."""
    return ", ".join(f"{name} {value}" for name, value in point.items())


def mean_curves(trials: Sequence[RunResult]) -> Curves:
    """Average curves up to the last epoch that all trials have reached."""
    last = min(trial.curves.epochs[-1] for trial in trials)
    epochs = np.linspace(1, last, min(math.ceil(last), _CURVE_POINTS))

    def mean(name: str) -> list[float]:
        rows = [np.interp(epochs, t.curves.epochs, getattr(t.curves, name)).tolist() for t in trials]
        return [fmean(column) for column in zip(*rows, strict=True)]

    return Curves(epochs.tolist(), mean("validation"), mean("test"))


def _run_result(record: DoneRecord, spec: Spec) -> RunResult:
    """Read a record that is done; a score that is NaN, of a model that diverged, counts as 0.

    The spec is that of the plan: one in a ledger need not name what has its value in the baseline.
    """
    results, curves, facts = record["results"], record["curves"], record["candidates"]
    return RunResult(
        key=record["key"],
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
        patience=spec["settings"]["patience"],
        environment=Environment(
            record["commit"] or "unknown",
            record["device"],
            ", ".join(f"{name} {number}" for name, number in record["versions"].items()),
        ),
    )
