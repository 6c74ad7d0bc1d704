"""The settings of benchmarks/annotators.py, and what its ledger says about them, as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any, NamedTuple

from marks import END, between

from oneof.bench.ledger import read
from oneof.bench.plan import SUPERVISED, Candidates, Plan, Run
from oneof.bench.plan_file import read_plan
from oneof.bench.report.results import Report, collect, describe
from oneof.bench.report.run_results import CRITERION, RunResult
from oneof.bench.report.statistics import cell
from oneof.data.annotator import Annotator

ROOT = Path(__file__).parents[1]
PLAN = ROOT / "benchmarks" / "table1-mlp.toml"
LEDGER = ROOT / "benchmarks" / "results" / "annotators.jsonl"
FIGURE = ROOT / "docs" / "results" / "annotators.svg"
PAGE = ROOT / "docs" / "candidates.md"
BEGIN = "<!-- written by benchmarks/annotators.py -->"
DATASET = "fashion-mnist"
NAMES = {"proden": "PRODEN", "cc": "CC", "idgp": "IDGP", "membership": "Membership"}


class Setting(NamedTuple):
    """How candidate sets are made: the annotator's epochs, temperature and rate of the draws."""

    epochs: int = 20
    temperature: float = 1.0
    rate: float = 0.4

    def candidates(self, annotator: Annotator) -> Candidates:
        """Return them for a plan, which names only what is unusual: runs that it has already keep their keys."""
        parameters = {
            name: value
            for name, value in self._asdict().items()
            if name != "epochs" and value != self._field_defaults[name]
        }
        return Candidates("instance", parameters, replace(annotator, epochs=self.epochs))


VALUES: Mapping[str, Sequence[Any]] = {
    "epochs": (2, 5, 10, 20, 50, 100),
    "temperature": (0.5, 1.0, 2.0, 4.0),
    "rate": (0.2, 0.4, 0.6, 0.8),
}
LINES = {name: [Setting(**{name: value}) for value in values] for name, values in VALUES.items()}
SETTINGS = tuple(dict.fromkeys(chain(*LINES.values())))
WITH_TRUTH = Setting(epochs=5)  # the one of the plan, whose runs on true labels stand for all


@dataclass(frozen=True)
class Chart(Plan):
    """A plan with several ways to make candidate sets, each a point of its grid."""

    sets: Sequence[Setting] = SETTINGS

    def runs(self) -> list[Run]:
        """Return every run, setting by setting; true labels are learnt once, whatever the sets."""
        return [
            replace(run, point=setting._asdict())
            for setting in self.sets
            for run in Plan.runs(replace(self, candidates=setting.candidates(self.candidates.annotator)))
            if run.label != SUPERVISED or setting == WITH_TRUTH
        ]


def chart() -> Chart:
    """Return the plan of table 1 on one data set, with some of its methods."""
    plan = read_plan(PLAN)
    changed = {
        "title": "The annotator decides",
        "datasets": [DATASET],
        "trials": 2,
        "methods": {label: plan.methods[label] for label in (*NAMES, SUPERVISED)},
    }
    return Chart(**{**vars(plan), **changed})


def read_chart(path: Path = LEDGER) -> Report:
    """Read what a ledger holds of the chart."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no ledger {str(path)!r} yet; run python benchmarks/annotators.py first")
    report = collect(chart(), read([path]))
    if not report.done:
        raise ValueError(f"the ledger {str(path)!r} has no run of this chart; run python benchmarks/annotators.py")
    return report


def trials(report: Report, label: str, setting: Setting) -> Mapping[int, RunResult]:
    """Return the trials of a method that are done."""
    return report.outcomes[label][DATASET].search.get(describe(setting._asdict()), {})


def accuracies(report: Report, label: str, setting: Setting) -> dict[int, float]:
    """Return the test accuracy of each trial, in percent, at the epoch that validation rows choose."""
    return {i: trial.test[CRITERION] for i, trial in trials(report, label, setting).items()}


def fact(report: Report, setting: Setting, name: str) -> float | None:
    """Return what the candidate sets are like, the mean over the trials that some method has done."""
    found = {
        i: trial.candidates[name]
        for label in report.outcomes
        for i, trial in trials(report, label, setting).items()
    }
    return fmean(found.values()) if found else None


# --- Table ------------------------------------------------------------------------------------------------


def table(report: Report) -> str:
    """Return the numbers as Markdown."""
    head = [
        "annotator epochs",
        "temperature",
        "rate",
        "its accuracy: training rows, test rows",
        "labels a set",
        "rows with a certain distractor",
        *NAMES.values(),
    ]
    lines = [_table_line(report, setting) for setting in SETTINGS]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def _table_line(report: Report, setting: Setting) -> list[str]:
    def written(name: str, style: str, factor: float = 1) -> str:
        value = fact(report, setting, name)
        return "–" if value is None else format(factor * value, style)

    annotator = [written(f"annotator_{rows}_accuracy", ".1f", 100) for rows in ("train", "test")]
    return [
        *(f"{value:g}" for value in setting),
        ", ".join(annotator),
        written("mean_size", ".2f"),
        written("certain_distractor", ".0%").replace("%", " %"),
        *(_spread(report, label, setting) for label in NAMES),
    ]


def _spread(report: Report, label: str, setting: Setting) -> str:
    """Write mean and standard deviation, with a star when trials are missing."""
    found = cell(accuracies(report, label, setting), report.plan.trials)
    if not found.trials:
        return "–"
    deviation = f" ± {found.std:.2f}" if found.trials > 1 else ""
    return f"{found.mean:.2f}{deviation}" + "*" * (found.trials < found.planned)


def notes(report: Report) -> str:
    """Return what the table is about, and what true labels give."""
    text = f"""Test accuracies are percents at the epoch that validation rows choose, mean ± sample standard
        deviation of {report.plan.trials} trials (one split, one annotator for each number of epochs, new draws), a
        star where trials are missing; the same network on true labels has
        {_spread(report, SUPERVISED, WITH_TRUTH)}. {_contrast(report)} Learners have the settings of
        [table1-mlp](results/table1-mlp/report.md). Every run is a line of
        [`annotators.jsonl`](../benchmarks/results/annotators.jsonl), with settings, commit and device;
        `python benchmarks/annotators.py` carries out and draws."""
    return fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def _contrast(report: Report) -> str:
    """Say how little the annotators differ, and how much what is learnt from them."""
    both = [
        (fact(report, setting, "annotator_test_accuracy"), fmean(found.values()))
        for setting in LINES["epochs"]
        if (found := accuracies(report, "proden", setting))
    ]
    if len(both) < 2:
        return ""
    annotators, learners = zip(*both, strict=True)
    return (
        f"At temperature 1 and rate 0.4 the annotators are at most {100 * width(annotators):.1f} points apart on "
        f"test rows, what PRODEN learns from them {width(learners):.1f}."
    )


def width(values: Sequence[float]) -> float:
    """Return how far values lie apart."""
    return max(values) - min(values)


def with_table(page: str, report: Report) -> str:
    """Return the page with table, notes and figure in their place."""
    picture = "![Test accuracy, set size and the annotator's accuracy by epochs, temperature and rate]"
    text = f"{table(report)}\n\n{picture}(results/{FIGURE.name})\n\n{notes(report)}"
    return between(page, BEGIN, END, text)
