"""Put the runs of a plan where published results are kept: ``python benchmarks/publish.py PLAN LEDGER...``.

Writes benchmarks/results/PLAN.jsonl: of the given ledgers what is done and belongs to the plan, in its order.
Where a search is complete, the curves of points that were not chosen keep their first and last epoch, and so do
all curves of a plan with curves = false: reports show no others, and thousands of them do not fit a repository.
Then ``oneof report`` writes docs/results/PLAN.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oneof.bench.ledger import Records, read
from oneof.bench.plan import Plan
from oneof.bench.plan_file import read_plan
from oneof.bench.report.results import collect
from oneof.io.files import replacing

ROOT = Path(__file__).parents[1]


def lines_of(plan: Plan, ledger: Records) -> list[str]:
    """Return the lines of the published ledger."""
    return [json.dumps(record, separators=(",", ":")) for record in records_of(plan, ledger)]


def records_of(plan: Plan, ledger: Records) -> Iterator[Mapping[str, Any]]:
    """Return what is done of a plan, with whole curves only where a report may show them."""
    unseen = unchosen(plan, ledger)
    for run in plan.runs():
        record = ledger.records.get(run.key)
        if record is not None and record["status"] == "done":
            yield with_ends(record) if run.key in unseen or not plan.curves else record


def unchosen(plan: Plan, ledger: Records) -> set[str]:
    """Return the keys of all runs at points that lost a search which is complete."""
    keys = set()
    for row in collect(plan, ledger).outcomes.values():
        for outcome in row.values():
            choice = outcome.choose()
            if choice is not None and all(len(trials) == outcome.planned for trials in outcome.search.values()):
                kept = {trial.key for trial in choice.trials.values()}
                keys |= {trial.key for trial in outcome.done} - kept
    return keys


def with_ends(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record whose curves are their first and last points."""
    curves = {name: [*values[:1], *values[1:][-1:]] for name, values in record["curves"].items()}
    return {**record, "curves": curves}


def publish(name: str, sources: Sequence[Path]) -> int:
    """Write the published ledger of a plan; return the number of its runs."""
    plan = read_plan(ROOT / "benchmarks" / f"{name}.toml")
    lines = lines_of(plan, read(sources))
    with replacing(ROOT / "benchmarks" / "results" / f"{name}.jsonl") as file:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="its name, as table2")
    parser.add_argument("ledgers", nargs="+", type=Path)
    given = parser.parse_args()
    print(f"{publish(given.plan, given.ledgers)} runs of {given.plan}")


if __name__ == "__main__":
    main()
