"""The figure of benchmarks/annotators.py: accuracy, set size and the annotator, by how the sets are made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from oneof.pages.charts import Figure, Panel, _ticks

WIDTH, LEFT, GAP = 864, 36, 38  # of the whole, of the numbers beside it, and between fields
FIELD = (WIDTH - LEFT) // 3 - GAP
AXES: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "epochs": ("the annotator's epochs", log),
    "temperature": ("temperature, 20 epochs", log),
    "rate": ("rate, 20 epochs", float),
}


@dataclass(frozen=True)
class Field:
    """Where settings of one line, and values, are drawn."""

    name: str
    left: int
    top: int
    height: int
    low: float
    high: float

    def x(self, setting: Setting) -> float:
        """Return the place of a setting."""
        scale, values = AXES[self.name][1], VALUES[self.name]
        share = (scale(getattr(setting, self.name)) - scale(values[0])) / (scale(values[-1]) - scale(values[0]))
        return self.left + FIELD * share

    def y(self, value: float) -> float:
        """Return the height of a value."""
        return self.top + self.height * (self.high - value) / (self.high - self.low)


class Curve(NamedTuple):
    """A named line through the means of what each setting has; of ``bound`` only the line is drawn."""

    name: str
    hue: str
    values: Callable[[Setting], Sequence[float]]


class Row(NamedTuple):
    """Fields side by side with the same heights."""

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
    hues = {"proden": "m1", "cc": "m2", "idgp": "m0", "membership": "m4"}
    learners = [Curve(name, hues[label], learner(label)) for label, name in NAMES.items()]
    size = Curve("labels a set", "m6", of_sets("mean_size", 1))
    annotator = Curve("annotator", "m9", of_sets("annotator_test_accuracy", 100))
    return [
        Row("test accuracy, %", 210, [*learners, Curve("true labels", "bound", lambda _: list(truth))]),
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
            f'<g class="{curve.hue}"><path class="line" d="M{x},10 {x + 24},10"/>'
            f'<text class="name" x="{x + 30}" y="14">{curve.name}</text></g>'
        )
        x += 54 + 8 * len(curve.name)
    return "".join(parts)


def _row(row: Row, top: int) -> str:
    everything = [value for curve in row.curves for setting in SETTINGS for value in curve.values(setting)]
    margin = max(0.06 * width(everything), 0.1)
    low, high = min(everything) - margin, max(everything) + margin
    parts = [f'<text class="title" x="0" y="{top - 12}">{row.title}</text>']
    for i, name in enumerate(LINES):
        field = Field(name, LEFT + GAP // 4 + i * (FIELD + GAP), top, row.height, low, high)
        parts += [_grid(field, with_numbers=i == 0), *(_curve(field, curve) for curve in row.curves)]
    return "".join(parts)


def _grid(field: Field, with_numbers: bool) -> str:
    right, bottom, parts = field.left + FIELD, field.top + field.height, []
    for tick in _ticks(field.low, field.high, most=field.height // 28):
        y = field.y(tick)
        parts.append(f'<line class="grid" x1="{field.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if with_numbers:
            parts.append(f'<text x="{field.left - 10}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for setting in LINES[field.name]:
        value = getattr(setting, field.name)
        parts.append(f'<text x="{field.x(setting):.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    title = AXES[field.name][0]
    parts.append(f'<text x="{right}" y="{bottom + 32}" text-anchor="end">{title}</text>')
    return "".join(parts)


def _curve(field: Field, curve: Curve) -> str:
    found = {setting: values for setting in LINES[field.name] if (values := curve.values(setting))}
    if not found:
        return ""
    path = " ".join(f"{field.x(s):.1f},{field.y(fmean(values)):.1f}" for s, values in found.items())
    dots = "".join(
        f'<circle class="end" cx="{field.x(s):.1f}" cy="{field.y(value):.1f}" r="2.2" fill-opacity=".5"/>'
        for s, values in found.items()
        for value in values
        if curve.hue != "bound"
    )
    return f'<g class="{curve.hue}"><path class="line" d="M{path}"/>{dots}</g>'


def _words(row: Row) -> str:
    ranges = []
    for curve in row.curves:
        means = [fmean(values) for setting in SETTINGS if (values := curve.values(setting))]
        if means:
            ranges.append(f"{curve.name} from {min(means):.1f} to {max(means):.1f}")
    return f"{row.title}: {', '.join(ranges)}"
