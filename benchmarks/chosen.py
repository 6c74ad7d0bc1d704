"""Print what the search of a plan chose by validation: ``python benchmarks/chosen.py PLAN``.

A value is at an edge when the grid ends there: a better one may be beyond, and the grid should be widened.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from oneof.bench.ledger import read
from oneof.bench.plan import Plan
from oneof.bench.plan_file import read_plan
from oneof.bench.report.results import collect, describe

ROOT = Path(__file__).parents[1]


def lines_of(plan: Plan, ledgers: Sequence[Path]) -> Iterator[str]:
    """Give a line for each method on each data set."""
    for label, row in collect(plan, read(ledgers, missing_ok=True)).outcomes.items():
        for dataset, outcome in row.items():
            choice = outcome.choose()
            if choice is None:
                yield f"{dataset} {label}: nothing is done"
                continue
            (point,) = (point for point in plan.points(label, dataset) if describe(point) == choice.point)
            missing = outcome.planned * len(outcome.search) - len(outcome.done)
            notes = [f"{missing} runs are missing"] if missing else []
            notes += [f"{axis} is at the edge" for axis in edges(plan, point)]
            yield f"{dataset} {label}: {choice.point}" + (f" ({', '.join(notes)})" if notes else "")


def edges(plan: Plan, point: dict[str, float]) -> list[str]:
    """Return the axes of the grid on whose first or last value a point is."""
    return [axis for axis, value in point.items() if value in (min(plan.grid[axis]), max(plan.grid[axis]))]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="its name, as table1-search")
    parser.add_argument("ledgers", nargs="*", type=Path, help="by default those of the plan")
    given = parser.parse_args()
    plan = read_plan(ROOT / "benchmarks" / f"{given.plan}.toml")
    print("\n".join(lines_of(plan, given.ledgers or plan.ledgers())))


if __name__ == "__main__":
    main()
