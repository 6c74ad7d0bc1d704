"""Print what the search of a plan chose by validation: ``python benchmarks/chosen.py PLAN [LEDGER]... [--toml]``.

A value is at an edge when the grid ends there: a better one may be beyond, and the grid should be widened. With
``--toml`` the choices are printed as overrides, for the plan that takes them over.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oneof.bench.ledger import read
from oneof.bench.plan import Plan
from oneof.bench.plan_file import read_plan
from oneof.bench.report.results import collect, describe
from oneof.bench.report.run_results import MethodResult

ROOT = Path(__file__).parents[1]


def choices(plan: Plan, ledgers: Sequence[Path]) -> Iterator[tuple[str, str, MethodResult, dict[str, Any] | None]]:
    """Give each data set and method with its results and the chosen point; None where nothing is done."""
    outcomes = collect(plan, read(ledgers, missing_ok=True)).outcomes
    for dataset in plan.datasets:
        for label, row in outcomes.items():
            choice = row[dataset].choose()
            points = {describe(point): point for point in plan.points(label, dataset)}
            yield dataset, label, row[dataset], None if choice is None else points[choice.point]


def lines_of(plan: Plan, ledgers: Sequence[Path]) -> Iterator[str]:
    """Give a line for each method on each data set."""
    for dataset, label, outcome, point in choices(plan, ledgers):
        missing = outcome.planned * len(outcome.search) - len(outcome.done)
        notes = [f"{missing} runs are missing"] if missing else []
        notes += [f"{axis} is at the edge" for axis in edges(plan, point or {})]
        chosen = "nothing is done" if point is None else describe(point)
        yield f"{dataset} {label}: {chosen}" + (f" ({', '.join(notes)})" if notes and point else "")


def edges(plan: Plan, point: dict[str, Any]) -> list[str]:
    """Return the axes of the grid on whose first or last value a point is."""
    return [axis for axis, value in point.items() if value in (min(plan.grid[axis]), max(plan.grid[axis]))]


def overrides(plan: Plan, ledgers: Sequence[Path]) -> Iterator[str]:
    """Give overrides; methods that share a value on a data set share an override."""
    groups: dict[tuple[str, str], list[str]] = {}
    for dataset, label, _, point in choices(plan, ledgers):
        for axis, value in (point or {}).items():
            groups.setdefault((dataset, f"{axis} = {value}"), []).append(f'"{label}"')
    for (dataset, setting), labels in groups.items():
        yield f'[[override]]\ndatasets = ["{dataset}"]\nmethods = [{", ".join(labels)}]\n{setting}\n'


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="its name, as table1-search")
    parser.add_argument("ledgers", nargs="*", type=Path, help="by default those of the plan")
    parser.add_argument("--toml", action="store_true", help="as overrides")
    given = parser.parse_args()
    plan = read_plan(ROOT / "benchmarks" / f"{given.plan}.toml")
    print("\n".join((overrides if given.toml else lines_of)(plan, given.ledgers or plan.ledgers())))


if __name__ == "__main__":
    main()
