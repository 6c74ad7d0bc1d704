"""Where the numbers of a report come from: the command, the runs behind each number, and what went wrong."""

import shlex
from collections import Counter
from collections.abc import Iterator

from oneof.bench.report.results import Report
from oneof.bench.report.run_results import CRITERION, Environment, MethodResult
from oneof.pages.content import Entry, Grid

__all__ = ["command", "provenance", "set_notes", "summary"]


def command(report: Report) -> str:
    """Return the command that carries out the plan; a path of this machine alone is left out."""
    path = report.plan.path
    if report.plan.by_name:
        return f"oneof run {path.stem}"
    return f"oneof run {shlex.quote(path.name if path.is_absolute() else path.as_posix())}"


def summary(report: Report) -> list[str]:
    """Say what the report is made of."""
    plan = report.plan
    size = f"Methods: {len(plan.methods)}, data sets: {len(plan.datasets)}, trials: {plan.trials}."
    sentences = [size, f"{report.done} of {report.total} runs are done."]
    if report.failures:
        sentences.append(f"Failed runs: {len(report.failures)}, see the end.")
    if report.unrelated:
        sentences.append(f"Records of other plans in the ledgers: {report.unrelated}.")
    if report.skipped:
        sentences.append(f"Lines of the ledgers that could not be read: {report.skipped}.")
    return sentences


def provenance(report: Report) -> list[Grid]:
    """Return the tables of environments, of runs behind the results, and of failures."""
    names = [(name, label) for name in report.plan.datasets for label in report.plan.methods]
    outcomes = {(name, label): report.outcomes[label][name] for name, label in names}
    counts = Counter(trial.environment for outcome in outcomes.values() for trial in outcome.done)
    numbers = {environment: i for i, environment in enumerate(sorted(counts), start=1)}
    places = [_row(i, e.commit, e.device, e.versions, counts[e]) for e, i in numbers.items()]
    runs = [list(_runs(name, label, outcome, numbers)) for (name, label), outcome in outcomes.items()]
    failed = [_row(run, why) for run, why in report.failures.items()]
    tables = [
        Grid(
            "Where runs were made",
            ["environment", "commit", "device", "versions", "runs"],
            [places],
            ["A + behind a commit: files had changed since."],
        ),
        Grid(
            "Runs behind the results",
            ["data set", "method", "trial", "test accuracy (%)", "epoch", "key", "environment"],
            [group for group in runs if group],
        ),
        Grid("Runs that failed", ["run", "what went wrong"], [failed]),
    ]
    return [table for table in tables if any(table.groups)]


def set_notes(report: Report) -> list[str]:
    """Say what is not compared, because the candidate sets were not the same."""
    planned = report.plan.trials
    found = [
        f"on {name}, {methods} ({count} of {planned} trials)"
        for name in report.plan.datasets
        for methods, count in report.different_sets(name, report.plan.methods).items()
    ]
    aside = [f"{count} of {name}" for name, count in report.set_aside.items()]
    notes = [f"Not compared, since their candidate sets differ: {'; '.join(found)}."] if found else []
    if aside:
        notes.append(
            "Runs left out, since most points of the grid saw other candidate sets in their trial: "
            f"{', '.join(aside)}."
        )
    return notes


def _runs(name: str, label: str, outcome: MethodResult, numbers: dict[Environment, int]) -> Iterator[list[Entry]]:
    choice = outcome.choose()
    for i, trial in sorted(choice.trials.items()) if choice is not None else ():
        accuracy = f"{trial.test[CRITERION]:.2f}"
        yield _row(name, label, i, accuracy, trial.epoch, trial.key, numbers[trial.environment])


def _row(*values: object) -> list[Entry]:
    return [Entry(str(value)) for value in values]
