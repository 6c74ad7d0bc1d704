"""Results: what ledgers say about a plan, method by method and data set by data set. Accuracies are in percent."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from oneof.bench.ledger import Records
from oneof.bench.plan import BOUNDS, Plan
from oneof.bench.record import check_record, reason_of
from oneof.bench.report.grids import Result, Results
from oneof.bench.report.paper import Paper
from oneof.bench.report.run_results import MethodResult, Search, keep_usual_sets, run_result
from oneof.bench.report.same_sets import against, differing
from oneof.bench.report.statistics import Cell, cell, compare

__all__ = ["Closed", "Report", "Surface", "collect", "describe"]


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
    set_aside: Mapping[str, int]  # "method on data set" -> runs with other sets than the rest of the grid

    @property
    def bounds(self) -> list[str]:
        """The methods that know more than candidate sets, those with true labels first."""
        of = {label: method["method"] for label, method in self.plan.methods.items()}
        return [label for bound in BOUNDS for label, method in of.items() if method == bound]

    @cached_property
    def results(self) -> Results:
        """Cells, and how the reference compares with each; trials that both have, on the same sets, are paired."""
        reference = self.outcomes.get(self.plan.reference, {})
        scores = {name: outcome.scores() for name, outcome in reference.items()}

        def result(label: str, name: str, found: Mapping[int, float]) -> Result:
            alone = label in (self.plan.reference, *self.bounds) or not scores.get(name)
            paired = self._with_sets_of_reference(label, name)
            if alone or (found.keys() & scores[name] and not paired.keys() & scores[name]):
                return Result(cell(found, self.plan.trials))
            resplits = self.resplits(name)
            plain = None if resplits is None else compare(scores[name], paired)
            return Result(cell(found, self.plan.trials), compare(scores[name], paired, resplits), plain)

        rows = {
            label: {
                name: result(label, name, found) for name, outcome in row.items() if (found := outcome.scores())
            }
            for label, row in self.outcomes.items()
        }
        contest = [label for label in self.outcomes if label not in self.bounds]
        mixed = [name for name in self.plan.datasets if self.different_sets(name, contest)]
        return Results("Test accuracy (%)", self.plan.datasets, rows, self.plan.reference, self.bounds, mixed)

    def different_sets(self, dataset: str, labels: Iterable[str]) -> dict[str, int]:
        """Say which of these methods saw different candidate sets on a data set, and in how many trials."""
        return against({label: self.outcomes[label][dataset].sets for label in labels})

    def resplits(self, dataset: str) -> tuple[int, int] | None:
        """Return the numbers of training and test rows where trials are random splits of the same rows."""
        rows, split = self.plan.facts(dataset).rows, self.plan.split
        if len(rows) > 1 or split.fixed:
            return None
        validation, test = round(split.validation * rows[0]), round(split.test * rows[0])
        return rows[0] - validation - test, test

    def gap(self, label: str, dataset: str) -> float:
        """Return bound minus method, over the trials that both have on the same sets; NaN if there are none."""
        bound, other = self._common(dataset, self.bounds[0], label)
        return bound - other

    def closed(self, dataset: str) -> Closed | None:
        """Return how much of the room above the best baseline the reference takes, over trials that all have."""
        if self.plan.reference not in self.outcomes:
            return None
        scores = {label: self._with_sets_of_reference(label, dataset) for label in self.results.rivals}
        means = {label: cell(found, self.plan.trials).mean for label, found in scores.items() if found}
        if not means:
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

    def _with_sets_of_reference(self, label: str, dataset: str) -> dict[int, float]:
        """Return the test accuracy of each trial but those in which the reference saw other candidate sets."""
        reference, outcome = self.outcomes.get(self.plan.reference), self.outcomes[label][dataset]
        other = set() if reference is None else differing(reference[dataset].sets, outcome.sets)
        return {i: score for i, score in outcome.scores().items() if i not in other}

    def _common(self, dataset: str, *labels: str) -> list[float]:
        """Return the mean test accuracy of each method over the trials that all have, on the same sets."""
        outcomes = [self.outcomes[label][dataset] for label in labels]
        scores = [outcome.scores() for outcome in outcomes]
        other = differing(*(outcome.sets for outcome in outcomes))
        trials = sorted(set.intersection(*map(set, scores)) - other)
        return [fmean(row[i] for i in trials) if trials else math.nan for row in scores]


def collect(plan: Plan, records: Records, paper: Paper | None = None) -> Report:
    """Gather what ledgers hold of a plan, and the paper's numbers to set beside it."""
    searches: dict[str, dict[str, Search]] = {}  # by method and data set
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
            trials[run.trial] = run_result(record, run.spec)
        else:
            failures[run.name] = reason_of(record)
    set_aside = {
        f"{label} on {name}": count
        for label, row in searches.items()
        for name, search in row.items()
        if (count := keep_usual_sets(search, [other[name] for other in searches.values()]))
    }
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
        set_aside=set_aside,
    )


def describe(point: Mapping[str, Any]) -> str:
    """Write a point of a grid."""
    return ", ".join(f"{name} {value}" for name, value in point.items())
