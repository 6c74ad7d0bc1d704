"""The short version of all results: ``python benchmarks/summary.py`` writes it into the page that shows it.

Everything comes from the ledgers in benchmarks/results; nothing is trained.
"""

from pathlib import Path
from typing import NamedTuple

from marks import END, between

from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.report.results import Report, collect
from oneof.bench.report.statistics import Verdict, count

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "results" / "index.md", ROOT / "README.md"
BEGIN = "<!-- written by benchmarks/summary.py -->"
PUBLISHED = ("plcr", "pico", "valen", "cavl", "lws", "rc", "cc", "proden")


METHODS = ["IDGP", "best other", "Membership", "Competition", "annotator known", "true labels"]


class Part(NamedTuple):
    """A plan and what is special about it."""

    plan: str
    words: str


PARTS = [
    Part("table2-splits", "real sets, linear, 20 random splits"),
    Part("table1-fashion", "as near to the paper as known, LeNet, 40 epochs, 5 trials, searched rates"),
    Part("table1-fashion-realistic", "hard look-alikes, LeNet, 40 epochs, 5 trials, searched rates"),
    Part("table1-8", "hard look-alikes, LeNet, 8 epochs, 3 trials"),
    Part("table1-mlp", "hard look-alikes, one hidden layer, 20 epochs, 5 trials"),
    Part("table1-cifar10", "as near to the paper as known, ResNet-32, 60 epochs, searched rates, so far"),
    Part("table1-cifar10-realistic", "hard look-alikes, ResNet-32, 60 epochs, the same rates, so far"),
    Part("table1-cifar", "hard look-alikes, ResNet-32, 12 epochs, 1 trial"),
    Part("table4-8", "IDGP's own model, LeNet, 8 epochs, 3 trials"),
    Part("table4-mlp", "IDGP's own model, one hidden layer, 20 epochs, 3 trials"),
]


SHORT = ("table1-fashion", "table1-fashion-realistic", "table1-cifar10", "table1-cifar10-realistic")  # README's


class Line(NamedTuple):
    """A data set of a plan: what the columns say, and IDGP's verdicts against each rival."""

    text: str
    verdicts: list[Verdict]


def rows_of(part: Part, folder: str) -> list[Line]:
    """Return the lines of one plan; links start in a folder."""
    plan = read_plan(ROOT / "benchmarks" / f"{part.plan}.toml")
    report = collect(plan, read([ROOT / "benchmarks" / "results" / f"{part.plan}.jsonl"]))
    link = f"[{part.words}]({folder}{part.plan}/report.md)"
    return [line for name in plan.datasets if (line := _row(report, name, link))]


def _row(report: Report, dataset: str, link: str) -> Line | None:
    """IDGP, the best of the published methods, and how IDGP compares with each of them."""
    idgp = report.plan.reference
    found = {label: row[dataset] for label, row in report.results.rows.items() if dataset in row}
    if idgp not in found:
        return None
    # A mean over other trials than IDGP's would compare splits, and one over other candidate sets these.
    trials = found[idgp].cell.trials
    rivals = [label for label in PUBLISHED if label in found and found[label].cell.trials == trials]
    if not rivals or dataset in report.results.mixed:
        return None
    best = max(rivals, key=lambda label: found[label].cell.mean)

    def mean(label: str) -> str:
        if label not in found:
            return "–"
        cell = found[label].cell
        usual = report.plan.trials if label == idgp else trials  # a word where it is another number
        return f"{cell.mean:.2f}" + (
            f" ({cell.trials} trial{'s' * (cell.trials > 1)})" if cell.trials != usual else ""
        )

    means = [
        mean(idgp),
        f"{mean(best)} ({best})",
        mean("membership"),
        mean("competition"),
        mean("oracle"),
        mean("supervised"),
    ]
    # A single trial decides nothing.
    verdicts = [found[label].comparison.verdict for label in rivals] if trials > 1 else []
    return Line(f"| {dataset} | {link} | {' | '.join(means)} |", verdicts)


def _counted(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return " – |"
    counts = count(verdicts)
    return f" {counts.win} / {counts.tie} / {counts.loss} / {counts.undecided} of {len(verdicts)} |"


def table(folder: str) -> str:
    """Return the whole table."""
    columns = ["data set", "setting", *METHODS, "IDGP against the others"]
    lines = [line for part in PARTS for line in rows_of(part, folder)]
    rows = [line.text + _counted(line.verdicts) for line in lines]
    total = (
        "| in all" + " |" * (len(columns) - 1) + _counted([verdict for line in lines for verdict in line.verdicts])
    )
    return "\n".join([f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|", *rows, total])


def short_table(folder: str) -> str:
    """Return the lines of the longest trainings alone, without verdicts."""
    lines = [line.text for part in PARTS if part.plan in SHORT for line in rows_of(part, folder)]
    columns = ["data set", "setting", *METHODS]
    return "\n".join([f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|", *lines])


def pages() -> dict[Path, str]:
    """Return the texts of the pages with the table between its marks."""
    made = {PAGE: table(""), README: short_table("docs/results/")}
    return {page: between(page.read_text(encoding="utf-8"), BEGIN, END, text) for page, text in made.items()}


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
