"""Intervals as SVG: a dot with its interval for every name, beside a line at zero."""

from collections.abc import Sequence
from dataclasses import dataclass

from oneof.pages.charts import Axis, Plot, ticks
from oneof.pages.content import Panel
from oneof.pages.frame import one_line, safe, shorten

__all__ = ["Span", "interval_chart"]

_ROW = 20  # height of a row
_WIDE = 264
_LETTERS, _LETTER = 20, 8  # of a name, at most, and the pixels of one


@dataclass(frozen=True)
class Span:
    """A difference with its interval, by the name of what was compared."""

    name: str
    mean: float
    low: float
    high: float

    @property
    def kind(self) -> str:
        """Whether it is above zero, below, or neither for sure."""
        return "above" if self.low > 0 else "below" if self.high < 0 else "open"


def interval_chart(title: str, axis: str, intervals: Sequence[Span]) -> Panel:
    """Draw intervals below each other, on an axis that has zero on it."""
    names = [shorten(one_line(each.name), _LETTERS) for each in intervals]
    low, high = min(0.0, *(each.low for each in intervals)), max(0.0, *(each.high for each in intervals))
    margin = max(0.04 * (high - low), 0.1)
    low, high = low - margin, high + margin
    x_axis = Axis(low, high, ticks(low, high), axis)
    left = 12 + _LETTER * max(map(len, names))
    plot = Plot(x_axis, Axis(0, len(intervals), ()), _WIDE, _ROW * len(intervals), left)
    parts = [f'<text class="title" x="0" y="14">{safe(title)}</text>']
    for tick in x_axis.ticks:
        kind, x = "zero" if tick == 0 else "grid", f"{plot.x(tick):.1f}"
        parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="{plot.top}" y2="{plot.bottom}"/>')
        parts.append(f'<text x="{x}" y="{plot.bottom + 16}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{plot.right}" y="{plot.bottom + 32}" text-anchor="end">{safe(axis)}</text>')
    for i, (each, name) in enumerate(zip(intervals, names, strict=True)):
        y = plot.top + _ROW * (i + 0.5)
        ends = f'x1="{plot.x(each.low):.1f}" x2="{plot.x(each.high):.1f}"'
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{safe(name)}</text>'
            f'<g class="{each.kind}"><line class="reach" {ends} y1="{y}" y2="{y}"/>'
            f'<circle class="end" cx="{plot.x(each.mean):.1f}" cy="{y}" r="4"/></g>'
        )
    words = ", ".join(f"{one_line(each.name)} {_signed(each)}" for each in intervals)
    return Panel(
        plot.right + 14, plot.bottom + 40, "".join(parts), f"{one_line(title)}, {one_line(axis)}: {words}"
    )


def _signed(each: Span) -> str:
    numbers = (f"{value:+.2f}".replace("-", "−") for value in (each.mean, each.low, each.high))
    return "{} [{}, {}]".format(*numbers)
