"""Line charts as SVG: axes, lines, and names at the ends of lines; figures in a page or as files of their own."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sklearn.isotonic import isotonic_regression

from oneof.pages.content import Figure, Panel
from oneof.pages.frame import PALETTE, one_line, safe

__all__ = [
    "STYLE",
    "Axis",
    "Plot",
    "Series",
    "axes",
    "chart",
    "drawing",
    "inline",
    "learning_curves",
    "lines",
    "lowest_settled",
    "room_for",
    "standalone",
    "ticks",
]

STYLE = """
svg { font: 12px system-ui, "Segoe UI", Roboto, sans-serif; font-variant-numeric: tabular-nums }
svg text { fill: var(--soft) } svg .title { fill: var(--ink); font-weight: 600 }
svg .name { fill: var(--hue); font-weight: 600 }
.grid { stroke: var(--rule) } .thread { stroke: var(--hue); stroke-opacity: .45 }
.line, .faint { fill: none; stroke: var(--hue); stroke-linejoin: round }
.line { stroke-width: 1.6 } .bold .line { stroke-width: 2.8 } .dashed .line { stroke-dasharray: 3 3 }
.faint { stroke-opacity: .22 } .end { fill: var(--hue) } .dot { fill: var(--hue); fill-opacity: .5 }
.empty { fill: none; stroke: var(--rule) } .chosen { fill: none; stroke: var(--chosen); stroke-width: 3 }
svg .on-light { fill: var(--on-light) } svg .on-dark { fill: var(--on-dark) }
.ground { fill: var(--card); stroke: var(--rule) } .self { fill: var(--rule) } .cell { fill: var(--accent) }
.always { fill: var(--wrong) } .zero { stroke: var(--soft) } .reach { stroke: var(--hue); stroke-width: 2.5 }
.above { --hue: var(--accent) } .below { --hue: var(--wrong) } .open { --hue: var(--soft) }
svg .number { fill: var(--ink); pointer-events: none } svg .strong { fill: var(--card) }
"""
_LETTERS = 22  # of a name beside a line
_STEP = 14.0  # from one name to the next
_EDGE = 3  # around a plot, so that a dot on its edge is whole
_SETTLED = 0.2  # share of the epochs whose steep rise may be cut off
_GAP = 18  # between panels
_PER_ROW = 2

_Point = tuple[float, float]


# --- panels and figures -----------------------------------------------------------------------------------


def inline(panel: Panel, attributes: str = "") -> str:
    """Return a panel as an element of a page."""
    box = f'viewBox="0 0 {panel.width} {panel.height}" role="img" aria-label="{safe(panel.words)}"'
    return f"<svg {attributes} {box}>{panel.body}</svg>"


def standalone(figure: Figure) -> str:
    """Return a figure as the content of an SVG file, its title above."""
    width, height, parts = 0, 34, []
    for start in range(0, len(figure.panels), _PER_ROW):
        row, x = figure.panels[start : start + _PER_ROW], _GAP
        for panel in row:
            parts.append(inline(panel, f'x="{x}" y="{height}" width="{panel.width}" height="{panel.height}"'))
            x += panel.width + _GAP
        width, height = max(width, x), height + max(panel.height for panel in row) + _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n<style>{PALETTE}{STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" fill="var(--page)"/>\n'
        f'<text class="title" x="{_GAP}" y="24">{safe(figure.title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


# --- axes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high``; distances are proportional to ``scale``, such as a logarithm."""

    low: float
    high: float
    ticks: Sequence[float]
    title: str = ""
    scale: Callable[[float], float] = float

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies: 0 at its low end, 1 at its high end."""
        low, high = self.scale(self.low), self.scale(self.high)
        return (self.scale(value) - low) / (high - low)


@dataclass(frozen=True)
class Plot:
    """The rectangle between two axes, in pixels."""

    x_axis: Axis
    y_axis: Axis
    width: int
    height: int
    left: int = 34
    top: int = 26

    @property
    def right(self) -> int:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The lower edge."""
        return self.top + self.height

    def x(self, value: float) -> float:
        """Return the horizontal place of a value."""
        return self.left + self.width * self.x_axis.share(value)

    def y(self, value: float) -> float:
        """Return the vertical place of a value; SVG counts downwards."""
        return self.top + self.height * (1 - self.y_axis.share(value))


def ticks(low: float, high: float, most: int = 6, smallest: float = 0.1, below: bool = False) -> list[float]:
    """Return round numbers from ``low`` to ``high``, evenly spaced.

    Parameters
    ----------
    low, high : float
        The ends of an axis.
    most : int, default=6
        How many numbers there are at most.
    smallest : float, default=0.1
        The smallest step: 1, 2 or 5 times a power of ten.
    below : bool, default=False
        Begin at the round number at ``low`` or just below it, rather than at or above it.
    """
    begin = math.floor if below else math.ceil
    step, factors = smallest, (2.0, 2.5, 2.0)  # 1, 2, 5, 10
    for i in range(60):
        if math.floor(high / step) - begin(low / step) < most:
            break
        step *= factors[i % 3]
    return [round(k * step, 6) for k in range(begin(low / step), math.floor(high / step) + 1)]


def axes(plot: Plot, numbers: bool = True) -> str:
    """Draw a line for every tick of the vertical axis, and the numbers and title of both axes.

    Without ``numbers`` the vertical axis has lines alone.
    """
    parts = []
    for tick in plot.y_axis.ticks:
        y = plot.y(tick)
        parts.append(f'<line class="grid" x1="{plot.left}" x2="{plot.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        if numbers:
            parts.append(f'<text x="{plot.left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in plot.x_axis.ticks:
        place = f'x="{plot.x(tick):.1f}" y="{plot.bottom + 16}"'
        parts.append(f'<text {place} text-anchor="middle">{tick:g}</text>')
    title = safe(plot.x_axis.title)
    parts.append(f'<text x="{plot.right}" y="{plot.bottom + 32}" text-anchor="end">{title}</text>')
    return "".join(parts)


# --- lines ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """A named line through points (x, y), with faint lines or dots of single runs about it."""

    name: str
    hue: str  # one of the palette
    points: Sequence[_Point]
    faint: Sequence[Sequence[_Point]] = ()
    dots: Sequence[_Point] = ()
    bold: bool = False
    dashed: bool = False

    @property
    def style(self) -> str:
        """The classes of what is drawn."""
        return self.hue + " bold" * self.bold + " dashed" * self.dashed


def drawing(plot: Plot, series: Sequence[Series]) -> str:
    """Draw axes, lines and the names of lines."""
    return axes(plot) + lines(plot, series) + _end_names(plot, series)


def lines(plot: Plot, series: Sequence[Series]) -> str:
    """Draw lines, the bold ones above the others, and cut off what lies outside the plot."""
    drawn = []
    for each in sorted(series, key=lambda each: each.bold):
        paths = [_path(plot, points, "faint") for points in each.faint]
        paths += [_path(plot, each.points, "line")]
        paths += [f'<circle class="dot" cx="{plot.x(x):.1f}" cy="{plot.y(y):.1f}" r="2.2"/>' for x, y in each.dots]
        drawn.append(f'<g class="{each.style}">{"".join(paths)}</g>')
    box = (plot.left - _EDGE, plot.top - _EDGE, plot.width + 2 * _EDGE, plot.height + 2 * _EDGE)
    place = 'x="{}" y="{}" width="{}" height="{}"'.format(*box)
    return f'<svg {place} viewBox="{" ".join(map(str, box))}">{"".join(drawn)}</svg>'


def _path(plot: Plot, points: Iterable[_Point], kind: str) -> str:
    return f'<path class="{kind}" d="M{" ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y in points)}"/>'


def _end_names(plot: Plot, series: Sequence[Series]) -> str:
    """Name every line at its end, the names moved apart no further than they must be."""
    ends = [(each, plot.x(each.points[-1][0]), plot.y(each.points[-1][1])) for each in series]
    ends.sort(key=lambda end: end[2])
    step = min(_STEP, plot.height / max(1, len(ends) - 1))
    lowest = plot.bottom - step * (len(ends) - 1)
    free = isotonic_regression([y - step * i for i, (*_, y) in enumerate(ends)], y_min=plot.top, y_max=lowest)
    heights = [height + step * i for i, height in enumerate(free.tolist())]
    return "".join(
        f'<g class="{each.hue}"><circle class="end" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
        f'<line class="thread" x1="{x + 2:.1f}" x2="{plot.right + 10}" y1="{y:.1f}" y2="{height:.1f}"/>'
        f'<text class="name" x="{plot.right + 13}" y="{height + 4:.1f}">{safe(_short(each.name))}</text></g>'
        for (each, x, y), height in zip(ends, heights, strict=True)
    )


def room_for(series: Sequence[Series]) -> int:
    """Return the pixels that the names beside lines need."""
    return max([94, *(20 + 8 * len(_short(each.name)) for each in series)])


def _short(name: str) -> str:
    text = one_line(name)
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


# --- charts -----------------------------------------------------------------------------------------------


def chart(title: str, plot: Plot, series: Sequence[Series], about: str = "", number: str = ".1f") -> Panel:
    """Draw a panel with a title.

    Its description says what it is ``about``, which is the title by default, and the last value of each line in
    the format ``number``.
    """
    last = ", ".join(f"{each.name} {each.points[-1][1]:{number}}" for each in series)
    body = f'<text class="title" x="0" y="14">{safe(title)}</text>{drawing(plot, series)}'
    return Panel(plot.right + room_for(series), plot.bottom + 38, body, f"{about or title}; at the end: {last}")


def learning_curves(name: str, title: str, panels: Mapping[str, Sequence[Series]]) -> Figure:
    """Draw accuracies in percent against epochs, one panel for each title, all on the same scale."""
    series = [each for panel in panels.values() for each in panel]
    low = lowest_settled(series, _SETTLED)
    high = max(y for each in series for _, y in each.points)
    last = max(each.points[-1][0] for each in series)
    margin = max(0.04 * (high - low), 0.1)
    low, high = low - margin, high + margin
    x_axis = Axis(0, last, ticks(0, last, smallest=1), "epochs")
    plot = Plot(x_axis, Axis(low, high, ticks(low, high)), width=272, height=190)
    return Figure(name, title, [chart(heading, plot, panel) for heading, panel in panels.items()])


def lowest_settled(series: Iterable[Series], share: float) -> float:
    """Return the lowest value after a share of each line: the steep rise before would squeeze what follows."""
    drawn = [points for each in series for points in (each.points, *each.faint)]
    return min(y for points in drawn for x, y in points if x > share * points[-1][0])
