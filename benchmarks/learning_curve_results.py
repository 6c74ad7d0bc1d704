"""What the ledger of benchmarks/learning_curve.py says, as a table and a figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from marks import END, between

from oneof.bench.ledger import read
from oneof.io.files import replacing
from oneof.pages.charts import Axis, Plot, Series, chart, standalone, ticks
from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES

ROOT = Path(__file__).parents[1]
LEDGER = ROOT / "benchmarks" / "results" / "learning-curve.jsonl"
FIGURE = ROOT / "docs" / "results" / "learning-curve.svg"
PAGE = ROOT / "docs" / "theory.md"
BEGIN = "<!-- written by benchmarks/learning_curve.py -->"
NETWORKS = ("linear", "lenet")
SIZES = (540, 1080, 2700, 5400, 10800, 27000, 54000)  # 1, 2, 5, 10, 20, 50 and 100 % of the training rows
SEEDS = (0, 1, 2)


class Run(NamedTuple):
    """One training."""

    network: str
    labels: str  # "candidates", or "true" for the reference
    rows: int
    seed: int


@dataclass(frozen=True)
class Curve:
    """What the ledger holds of one network: records by number of rows, and those of the reference."""

    network: str
    records: Mapping[int, Sequence[Mapping[str, Any]]]
    reference: Sequence[Mapping[str, Any]]

    def values(self, rows: int, name: str) -> list[float]:
        """Return what was measured, seed by seed; the excess is that over the mean risk of the reference."""
        if name != "excess":
            return [record[name] for record in self.records[rows]]
        if not self.reference:
            return []
        floor = fmean(record["test_risk"] for record in self.reference)
        return [record["test_risk"] - floor for record in self.records[rows]]

    def means(self, name: str) -> dict[int, float]:
        """Return the mean over seeds for every number of rows."""
        found = {rows: self.values(rows, name) for rows in self.records}
        return {rows: fmean(values) for rows, values in found.items() if values}


def read_curves(path: Path = LEDGER) -> list[Curve]:
    """Read the ledger; of two records of a run the last counts, whatever the version of the method."""
    found = {Run(*(r["spec"][name] for name in Run._fields)): r for r in read([path]).records.values()}

    def seeds(*kind: Any) -> list[Mapping[str, Any]]:
        return [found[run] for seed in SEEDS if (run := Run(*kind, seed)) in found]

    curves = []
    for network in NETWORKS:
        records = {rows: group for rows in SIZES if (group := seeds(network, "candidates", rows))}
        if records:
            curves.append(Curve(network, records, seeds(network, "true", SIZES[-1])))
    return curves


def slope(values: Mapping[int, float]) -> float | None:
    """Return p of the line ``log value = p log rows + constant`` of least squares, over positive values."""
    points = [(log(rows), log(value)) for rows, value in values.items() if value > 0]
    return float(np.polyfit(*zip(*points, strict=True), 1)[0]) if len(points) > 1 else None


# --- Table ------------------------------------------------------------------------------------------------


def table(curves: Sequence[Curve]) -> str:
    """Return the numbers as Markdown."""
    head, lines = ["rows"], {rows: [f"{rows:,}"] for rows in SIZES}
    reference, slopes = ["all, true labels"], ["slope"]

    def add(title: str, cells: Mapping[int, str], below: str = "", last: str = "") -> None:
        head.append(title)
        for rows, line in lines.items():
            line.append(cells.get(rows, "–"))
        reference.append(below)
        slopes.append(last)

    for curve in curves:
        accuracy = {n: _spread(curve.values(n, "test_accuracy"), 100, 2) for n in curve.records}
        excess = {n: _spread(values, 1, 4) for n in curve.records if (values := curve.values(n, "excess"))}
        upper = _spread([record["test_accuracy"] for record in curve.reference], 100, 2)
        add(f"{curve.network}: accuracy, %", accuracy, below=upper)
        add("excess risk", excess, last=_number(slope(curve.means("excess"))))
        add("loss on new sets", {n: f"{value:.2f}" for n, value in curve.means("candidate_risk").items()})
        if curve.network == "linear":
            bound = curve.means("bound")
            add("bound", {n: f"{value:,.0f}" for n, value in bound.items()}, last=_number(slope(bound)))
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines.values(), reference, slopes))


def _spread(values: Sequence[float], factor: float, digits: int) -> str:
    """Write mean and standard deviation, with a star when seeds are missing."""
    if not values:
        return "–"
    deviation = f" ± {factor * stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{factor * fmean(values):.{digits}f}{deviation}" + "*" * (len(values) < len(SEEDS))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def with_table(page: str, curves: Sequence[Curve]) -> str:
    """Return the page with the table in its place."""
    return between(page, BEGIN, END, table(curves))


# --- Figure -----------------------------------------------------------------------------------------------


def figure(curves: Sequence[Curve]) -> Figure:
    """Draw accuracy, and excess risk beside the bound, against the number of training rows."""
    accuracies, risks = [], []
    for curve, hue in zip(curves, (HUES[6], HUES[1]), strict=False):
        accuracies.append(_measured(curve, hue, "test_accuracy", 100))
        if curve.reference:
            level = 100 * fmean(record["test_accuracy"] for record in curve.reference)
            points = [(rows, level) for rows in SIZES]
            accuracies.append(Series(f"{curve.network}, true", hue, points, dashed=True))
        excess = _measured(curve, hue, "excess")
        if excess.points:
            risks.append(excess)
        if curve.network == "linear":
            risks.append(Series("bound", HUES[3], list(curve.means("bound").items())))
    if risks:
        first, value = min(risks[0].points)
        points = [(rows, value * (first / rows) ** 0.5) for rows in SIZES]
        risks.append(Series("like 1/√n", GREY, points, dashed=True))
    charts = (
        ("test accuracy, %", accuracies, _percents),
        ("excess risk, and the bound of Theorem 1", risks, _powers),
    )
    panels = [_panel(title, series, axis) for title, series, axis in charts if series]
    return Figure("learning-curve", "IDGP on Fashion-MNIST with instance-dependent candidate sets", panels)


def _measured(curve: Curve, hue: str, name: str, factor: float = 1) -> Series:
    """Return the line of a measure, where it is positive, with a dot for each seed."""
    dots = [(n, factor * value) for n in curve.records for value in curve.values(n, name) if value > 0]
    means = [(n, factor * value) for n, value in curve.means(name).items() if value > 0]
    return Series(curve.network, hue, means, dots=dots)


def _percents(low: float, high: float) -> Axis:
    return Axis(low - 1, high + 1, ticks(low - 1, high + 1))


def _powers(low: float, high: float) -> Axis:
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    return Axis(10.0**first, 10.0**last, [10.0**power for power in range(first, last + 1)], scale=log)


def _panel(title: str, series: Sequence[Series], axis: Callable[[float, float], Axis]) -> Panel:
    everything = [value for each in series for _, value in (*each.points, *each.dots)]
    x_axis = Axis(SIZES[0], SIZES[-1], SIZES, "training rows", log)
    y_axis = axis(min(everything), max(everything))
    plot = Plot(x_axis, y_axis, width=290, height=230, left=44)
    return chart(title, plot, series, f"{title} against the number of training rows", number=".3g")


def draw() -> None:
    """Write figure and table from the ledger."""
    curves = read_curves()
    for path, text in (
        (FIGURE, standalone(figure(curves))),
        (PAGE, with_table(PAGE.read_text(encoding="utf-8"), curves)),
    ):
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
