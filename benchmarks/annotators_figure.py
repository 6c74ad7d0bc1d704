"""The figure of benchmarks/annotators.py: accuracy, set size and the annotator, by how the sets are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log
from statistics import fmean
from typing import NamedTuple

from annotators_results import (
    LINES,
    NAMES,
    SETTINGS,
    VALUES,
    WITH_TRUTH,
    Setting,
    accuracies,
    fact,
    width,
)

from oneof.bench.plan import SUPERVISED
from oneof.bench.report.results import Report
from oneof.pages.charts import Axis, Plot, Series, axes, lines, ticks
from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES

WIDTH, LEFT, GAP = 864, 45, 38  # of the figure, of the numbers beside it, and between plots
PLOT = (WIDTH - LEFT) // 3 - GAP
X_AXES: Mapping[str, Axis] = {
    name: Axis(values[0], values[-1], values, title, scale)
    for (name, values), (title, scale) in zip(
        VALUES.items(),
        [("the annotator's epochs", log), ("temperature, 20 epochs", log), ("rate, 20 epochs", float)],
        strict=True,
    )
}


class Curve(NamedTuple):
    """A named line through the means of each setting, with a dot for each value; the bound has no dots."""

    name: str
    hue: str
    values: Callable[[Setting], Sequence[float]]

    @property
    def look(self) -> Series:
        """The line without its points: IDGP is bold, the bound dashed."""
        return Series(self.name, self.hue, [], bold=self.hue == HUES[0], dashed=self.hue == GREY)

    def series(self, parameter: str) -> Series | None:
        """Return the line along the settings that differ in one parameter; None where nothing is known."""
        found = {
            float(getattr(setting, parameter)): values
            for setting in LINES[parameter]
            if (values := self.values(setting))
        }
        if not found:
            return None
        means = [(x, fmean(values)) for x, values in found.items()]
        dots = [(x, value) for x, values in found.items() for value in values if self.hue != GREY]
        return replace(self.look, points=means, dots=dots)


class Row(NamedTuple):
    """Plots side by side with the same vertical axis."""

    title: str
    height: int
    curves: Sequence[Curve]


def rows(report: Report) -> list[Row]:
    """Return what is drawn."""

    def learner(label: str) -> Callable[[Setting], Sequence[float]]:
        return lambda setting: list(accuracies(report, label, setting).values())

    def of_sets(name: str, factor: float) -> Callable[[Setting], Sequence[float]]:
        return lambda setting: [] if (value := fact(report, setting, name)) is None else [factor * value]

    truth = accuracies(report, SUPERVISED, WITH_TRUTH).values()
    hues = {"proden": HUES[1], "cc": HUES[2], "idgp": HUES[0], "membership": HUES[4]}
    learners = [Curve(name, hues[label], learner(label)) for label, name in NAMES.items()]
    size = Curve("labels a set", HUES[6], of_sets("mean_size", 1))
    annotator = Curve("annotator", HUES[9], of_sets("annotator_test_accuracy", 100))
    return [
        Row("test accuracy, %", 210, [*learners, Curve("true labels", GREY, lambda _: list(truth))]),
        Row("labels a set", 84, [size]),
        Row("the annotator's own test accuracy, %", 84, [annotator]),
    ]


def figure(report: Report) -> Figure:
    """Draw accuracy, set size and the annotator's accuracy against epochs, temperature and rate."""
    drawn, top, parts, words = rows(report), 50, [], []
    parts.append(_legend(drawn[0].curves))
    for row in drawn:
        parts.append(_row(row, top))
        words.append(_words(row))
        top += row.height + 70
    panel = Panel(WIDTH, top - 30, "".join(parts), "; ".join(words))
    return Figure("annotators", "What is learnt on Fashion-MNIST, by how the candidate sets are made", [panel])


def _legend(curves: Sequence[Curve]) -> str:
    parts, x = [], 0
    for curve in curves:
        parts.append(
            f'<g class="{curve.look.style}"><path class="line" d="M{x},10 {x + 24},10"/>'
            f'<text class="name" x="{x + 30}" y="14">{curve.name}</text></g>'
        )
        x += 54 + 8 * len(curve.name)
    return "".join(parts)


def _row(row: Row, top: int) -> str:
    everything = [value for curve in row.curves for setting in SETTINGS for value in curve.values(setting)]
    margin = max(0.06 * width(everything), 0.1)
    low, high = min(everything) - margin, max(everything) + margin
    y_axis = Axis(low, high, ticks(low, high, most=row.height // 28))
    parts = [f'<text class="title" x="0" y="{top - 12}">{row.title}</text>']
    for i, (name, x_axis) in enumerate(X_AXES.items()):
        plot = Plot(x_axis, y_axis, PLOT, row.height, left=LEFT + i * (PLOT + GAP), top=top)
        series = [found for curve in row.curves if (found := curve.series(name))]
        parts += [axes(plot, numbers=i == 0), lines(plot, series)]
    return "".join(parts)


def _words(row: Row) -> str:
    ranges = []
    for curve in row.curves:
        means = [fmean(values) for setting in SETTINGS if (values := curve.values(setting))]
        if means:
            ranges.append(f"{curve.name} from {min(means):.1f} to {max(means):.1f}")
    return f"{row.title}: {', '.join(ranges)}"
