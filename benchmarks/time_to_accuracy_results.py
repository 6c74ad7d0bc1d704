"""What the ledger of benchmarks/time_to_accuracy.py says: tables, and a figure with the runs of table 1."""

from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from marks import END, between
from time_to_accuracy import LEDGER, PLANS

from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.report.paper import read_paper
from oneof.io.files import replacing
from oneof.pages.charts import Axis, Plot, Series, chart, standalone, ticks
from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "time-to-accuracy.md"
FIGURE = ROOT / "docs" / "results" / "time-to-accuracy.svg"
BEGIN = "<!-- written by benchmarks/time_to_accuracy.py -->"
NAMES = {"cifar-10": "CIFAR-10, ResNet-32", "fashion-mnist": "Fashion-MNIST, LeNet"}
AIMS = {"cifar-10": 0.87, "fashion-mnist": 0.903}
AUTHORS = {"cifar-10": 24.1, "fashion-mnist": 13.8}  # seconds an epoch of their code, on an H200: performance.md
AUTHORS_EPOCHS = 500
BELOW = (0.03, 0.02, 0.01, 0.0)  # how far below the aim seconds are told, too
COLOURED = ("idgp", "competition", "competition-first", "membership", "proden", "cc", "oracle", "supervised")
HUE_OF = dict(zip(COLOURED, HUES, strict=False))  # all others are grey

Records = Sequence[Mapping[str, Any]]


def draw(records: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the tables into the page, and the figure."""
    page = between(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables(list(records.values())))
    for path, text in ((PAGE, page), (FIGURE, standalone(figure(list(records.values()))))):
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")


# --- tables -----------------------------------------------------------------------------------------------


def tables(records: Records) -> str:
    """Return all tables; a word where nothing is measured yet."""
    if not any(record["spec"]["part"] == "run" for record in records):
        return "Nothing is measured on a GPU yet."
    parts = [
        part for dataset in PLANS for part in (_measured(records, dataset), _search(records, dataset)) if part
    ]
    where = sorted({f"{record['device']}, commit {record['commit']}" for record in records})
    return "\n\n".join([*parts, f"Measured on: {'; '.join(where)}."])


def _measured(records: Records, dataset: str) -> str:
    """Return what the trainings of a data set reached, and when."""
    groups = list(_groups(records, dataset))
    if not groups:
        return ""
    levels = [AIMS[dataset] - less for less in BELOW]
    paper = read_paper(ROOT / "benchmarks" / "paper.toml", "table1").numbers[dataset]
    header = [
        "method",
        "recipe",
        "seeds",
        "test accuracy at the end, %",
        "the paper, %",
        "s of fit",
        "s before fit",
    ]
    header += [f"s to {100 * level:.1f} %" for level in levels]
    header += [f"conventional way, s to {100 * levels[-1]:.1f} %", "s an epoch there"]
    rows = []
    for label, group in groups:
        reference = _reference(records, dataset, label)
        printed = paper.get(label)
        row = [label, f"`{group[0]['spec']['recipe']}`", str(len(group))]
        row += [_spread([100 * record["test_accuracy"] for record in group], 2)]
        row += [
            "–" if printed is None else f"{printed[0]:.2f}",
            _spread([record["seconds"] for record in group], 1),
        ]
        row += [_spread([record["start"] for record in group], 1)]
        row += [_reached(group, level) for level in levels]
        epochs = [len([a for a in r["curve"]["seconds"] if a <= s]) for r in group if (s := reach(r, levels[-1]))]
        scaled = [reference * n for n in epochs] if reference else []
        rows.append([*row, _spread(scaled, 0), "–" if reference is None else f"{reference:.1f}"])
    authors = AUTHORS[dataset]
    note = (
        f"The authors' code takes {authors} s an epoch and {AUTHORS_EPOCHS} epochs: "
        f"{authors * AUTHORS_EPOCHS / 3600:.1f} hours."
    )
    return f"### {NAMES[dataset]}\n\n{_table(header, rows)}\n\n{note}"


def _search(records: Records, dataset: str) -> str:
    """Return what the search saw: validation rows alone."""
    found = [r for r in records if r["spec"]["part"] == "search" and r["spec"]["dataset"] == dataset]
    header = ["method", "recipe", "validation accuracy at the end, %", "s of fit"]
    rows = [
        [
            r["spec"]["method"],
            f"`{r['spec']['recipe']}`",
            f"{100 * r['validation_accuracy']:.2f}",
            f"{r['seconds']:.1f}",
        ]
        for r in sorted(found, key=lambda r: (r["spec"]["method"], -r["validation_accuracy"]))
    ]
    return f"Searched, one seed each:\n\n{_table(header, rows)}" if rows else ""


def _groups(records: Records, dataset: str) -> Iterator[tuple[str, Records]]:
    """Give the trainings that count, by method; of several recipes the one that was measured last."""
    runs = [r for r in records if r["spec"]["part"] == "run" and r["spec"]["dataset"] == dataset]
    for method in dict.fromkeys(r["spec"]["method"] for r in runs):
        own = [r for r in runs if r["spec"]["method"] == method]
        last = own[-1]["spec"]["recipe"]
        yield method.lower(), [r for r in own if r["spec"]["recipe"] == last]


def reach(record: Mapping[str, Any], level: float) -> float | None:
    """Return the seconds from the call of fit until a test accuracy is first reached; None if it never is."""
    pairs = zip(record["curve"]["seconds"], record["curve"]["test_accuracy"], strict=True)
    return next((seconds for seconds, accuracy in pairs if accuracy >= level), None)


def _reached(group: Records, level: float) -> str:
    """Write the mean seconds of the seeds that reach a level from fit and from process start, and how many do."""
    found = [(s, s + record["start"]) for record in group if (s := reach(record, level)) is not None]
    if not found:
        return "not reached"
    means = [fmean(values) for values in zip(*found, strict=True)]
    missing = "" if len(found) == len(group) else f" ({len(found)} of {len(group)})"
    return f"{means[0]:.1f}; {means[1]:.1f}{missing}"


def _reference(records: Records, dataset: str, label: str) -> float | None:
    own = [r for r in records if r["spec"]["part"] == "reference" and r["spec"]["dataset"] == dataset]
    found = [r["seconds_per_epoch"] for r in own if r["spec"]["reference"] == label and "seconds_per_epoch" in r]
    return found[-1] if found else None


def _spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return "–"
    return f"{fmean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *rows))


# --- figure -----------------------------------------------------------------------------------------------


def figure(records: Records) -> Figure:
    """Draw test accuracy against seconds of training: short trainings, and all methods of table 1."""
    panels = [panel for dataset in PLANS if (panel := _panel(records, dataset)) is not None]
    return Figure("time-to-accuracy", "Test accuracy against seconds of training", panels)


def _panel(records: Records, dataset: str) -> Panel | None:
    series = [
        Series(f"{label}, short", HUE_OF.get(label, GREY), _means([_curve(r) for r in group]), bold=True)
        for label, group in _groups(records, dataset)
    ]
    series += _of_tables(dataset)
    if not series:
        return None
    everything = [point for each in series for point in each.points]
    first, last = min(x for x, _ in everything), max(x for x, _ in everything)
    high = max(y for _, y in everything)
    x_axis = Axis(
        first, last, [s for s in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if first <= s <= last], "seconds", log
    )
    low = high - 25
    y_axis = Axis(low, high + 1, ticks(low, high + 1))
    plot = Plot(x_axis, y_axis, width=340, height=280)
    about = f"{NAMES[dataset]}: test accuracy in percent against seconds of training"
    return chart(f"{NAMES[dataset]}, test accuracy, %", plot, series, about)


def _of_tables(dataset: str) -> list[Series]:
    """Return a line for each method of table 1 as in the paper, the mean over its trials; some have colours."""
    plan = read_plan(ROOT / "benchmarks" / f"{PLANS[dataset]}.toml")
    ledger, found = read(plan.ledgers(), missing_ok=True).records, {}
    for run in plan.runs():
        record = ledger.get(run.key)
        if record is not None and record["status"] == "done":
            found.setdefault(run.label, []).append(_table_curve(record))
    series = [Series(label, HUE_OF.get(label, GREY), _means(curves)) for label, curves in found.items()]
    return sorted(series, key=lambda each: each.hue != GREY)  # what has a colour lies on top


def _table_curve(record: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return the curve of a run: its seconds are shared out evenly among its epochs."""
    curves = record["curves"]
    an_epoch = record["seconds"] / record["epochs"]
    pairs = zip(curves["epoch"], curves["test_accuracy"], strict=True)
    return [(an_epoch * (epoch + 1), 100 * accuracy) for epoch, accuracy in pairs]


def _curve(record: Mapping[str, Any]) -> list[tuple[float, float]]:
    curve = record["curve"]
    return [(s, 100 * a) for s, a in zip(curve["seconds"], curve["test_accuracy"], strict=True)]


def _means(curves: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Return the mean point of curves, epoch by epoch, as far as the shortest goes."""
    return [(fmean(x for x, _ in points), fmean(y for _, y in points)) for points in zip(*curves, strict=False)]


if __name__ == "__main__":
    draw(read([LEDGER], missing_ok=True).records)
