"""Figures as SVG: learning curves and heat maps, a few panels each, inside a page or as files of their own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sklearn.isotonic import isotonic_regression

from oneof.bench.report.grids import MISSING, Grid, one_line
from oneof.bench.report.results import Curves, Surface

__all__ = ["STYLE", "Figure", "Panel", "curves", "heat_maps", "inline", "safe", "standalone"]

_HUES = {  # in light and in dark surroundings; the first is that of the reference
    "bound": ("#6f6b66", "#a8a4a0"),
    "m0": ("#1d4fd8", "#82aaff"),
    "m1": ("#b35c00", "#f5a54a"),
    "m2": ("#00796b", "#43cdb9"),
    "m3": ("#9333c7", "#cf94f5"),
    "m4": ("#c2255c", "#ff86ae"),
    "m5": ("#4d7c0f", "#a8d65c"),
    "m6": ("#0b7fab", "#5cc8f2"),
    "m7": ("#8a5a2b", "#d9a878"),
    "m8": ("#b3261e", "#ff8a80"),
    "m9": ("#55608f", "#b3bce6"),
}
_RIVALS = len(_HUES) - 2
_LIGHT, _DARK = (" ".join(f".{name} {{ --hue: {hues[i]} }}" for name, hues in _HUES.items()) for i in (0, 1))
STYLE = f"""
:root {{ color-scheme: light dark; --page: #fbfaf8; --card: #fff; --ink: #1c1b1a; --soft: #65615c;
  --rule: #dedad4; --link: #1d4fd8 }}
{_LIGHT}
@media (prefers-color-scheme: dark) {{ :root {{ --page: #161618; --card: #202023; --ink: #eceae6; --soft: #a5a19b;
  --rule: #3a3a3e; --link: #82aaff }}
{_DARK} }}
svg text {{ fill: var(--soft); font: 12px system-ui, "Segoe UI", Roboto, sans-serif;
  font-variant-numeric: tabular-nums }}
svg .title {{ fill: var(--ink); font-weight: 600 }} svg .name {{ fill: var(--hue); font-weight: 600 }}
.grid {{ stroke: var(--rule) }} .thread {{ stroke: var(--hue); stroke-opacity: .45 }}
.line {{ fill: none; stroke: var(--hue); stroke-width: 1.6; stroke-linejoin: round }} .end {{ fill: var(--hue) }}
.m0 .line {{ stroke-width: 2.8 }} .bound .line {{ stroke-dasharray: 3 3 }}
.empty {{ fill: none; stroke: var(--rule) }} .chosen {{ fill: none; stroke: #ff8c1a; stroke-width: 3 }}
svg .dark-on-light {{ fill: #111 }} svg .light-on-dark {{ fill: #fff }}
"""
_LETTERS, _DIGITS = 22, 7  # room for a name beside a line, and for a value beside a heat map
_SETTLED = 0.2  # share of the epochs whose steep rise may be cut off
_GAP = 18  # between panels
_PER_ROW = 2
# A hue of its own in any surroundings, since the numbers lie on it: from the lowest to the highest.
_LOWEST, _HIGHEST = (240, 244, 252), (16, 52, 140)


@dataclass(frozen=True)
class Panel:
    """One chart; ``words`` say what is in it to those who cannot see."""

    width: int
    height: int
    body: str
    words: str


@dataclass(frozen=True)
class Figure:
    """Panels that belong together, and tables with the same numbers."""

    name: str  # of the file, without its ending
    title: str
    panels: Sequence[Panel]
    tables: Sequence[Grid] = ()


def inline(panel: Panel, attributes: str = "") -> str:
    """Return a panel as an element."""
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
        f'viewBox="0 0 {width} {height}">\n<style>{STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" fill="var(--page)"/>\n'
        f'<text class="title" x="{_GAP}" y="24">{safe(figure.title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def safe(text: str) -> str:
    """Escape a text for HTML and SVG."""
    return escape(one_line(text))


# --- learning curves --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Where epochs and percents lie in a panel."""

    low: float
    high: float
    last: float
    left: int = 34
    top: int = 26
    width: int = 272
    height: int = 190

    def x(self, epoch: float) -> float:
        return self.left + self.width * epoch / self.last

    def y(self, percent: float) -> float:
        return self.top + self.height * (self.high - percent) / (self.high - self.low)


def curves(dataset: str, lines: Mapping[str, Curves], reference: str, bounds: Sequence[str]) -> Figure:
    """Draw validation and test accuracy of methods against epochs, both on the same scale."""
    both = [(c.epochs, values) for c in lines.values() for values in (c.validation, c.test)]
    settled = [
        v for epochs, values in both for e, v in zip(epochs, values, strict=True) if e > _SETTLED * epochs[-1]
    ]
    low, high = min(settled), max(max(values) for _, values in both)
    margin = max(0.04 * (high - low), 0.1)
    frame = _Frame(low - margin, high + margin, max(epochs[-1] for epochs, _ in both))
    rivals = [label for label in lines if label != reference and label not in bounds]
    hues = {label: "m0" if label == reference else "bound" for label in lines}
    hues |= {label: f"m{1 + i % _RIVALS}" for i, label in enumerate(rivals)}
    panels = [
        _curve_panel(frame, title, {label: (c.epochs, getattr(c, part)) for label, c in lines.items()}, hues)
        for title, part in (("validation accuracy, %", "validation"), ("test accuracy, %", "test"))
    ]
    return Figure(f"curves-{dataset}", dataset, panels)


_Line = tuple[Sequence[float], Sequence[float]]


def _curve_panel(frame: _Frame, title: str, lines: Mapping[str, _Line], hues: Mapping[str, str]) -> Panel:
    drawn, ends = [], []
    for label in sorted(lines, key=lambda label: hues[label] == "m0"):  # the reference above the others
        points = [(frame.x(epoch), frame.y(percent)) for epoch, percent in zip(*lines[label], strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        drawn.append(f'<g class="{hues[label]}"><path class="line" d="M{path}"/></g>')
        ends.append((label, hues[label], *points[-1]))
    # The inner svg cuts off what lies below the frame.
    box = f'x="{frame.left}" y="{frame.top}" width="{frame.width}" height="{frame.height}"'
    area = f'<svg {box} viewBox="{frame.left} {frame.top} {frame.width} {frame.height}">{"".join(drawn)}</svg>'
    last = ", ".join(f"{label} {values[-1]:.1f}" for label, (_, values) in lines.items())
    body = f'<text class="title" x="0" y="14">{title}</text>{_axes(frame)}{area}{_names(frame, ends)}'
    width = frame.left + frame.width + _room_for(lines)
    return Panel(width, frame.top + frame.height + 38, body, f"{title}; at the end: {last}")


def _axes(frame: _Frame) -> str:
    right, bottom = frame.left + frame.width, frame.top + frame.height
    parts = [f'<text x="{right}" y="{bottom + 32}" text-anchor="end">epochs</text>']
    for percent in _ticks(frame.low, frame.high):
        y = frame.y(percent)
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent:g}</text>')
    for epoch in _ticks(0, frame.last, smallest=1):
        parts.append(f'<text x="{frame.x(epoch):.1f}" y="{bottom + 16}" text-anchor="middle">{epoch:g}</text>')
    return "".join(parts)


def _names(frame: _Frame, ends: Sequence[tuple[str, str, float, float]]) -> str:
    """Name every line at its end, the names moved apart no further than they must be."""
    ends = sorted(ends, key=lambda end: end[3])
    step = min(14.0, frame.height / max(1, len(ends) - 1))
    lowest = frame.top + frame.height - step * (len(ends) - 1)
    free = isotonic_regression([y - step * i for i, (*_, y) in enumerate(ends)], y_min=frame.top, y_max=lowest)
    heights = [height + step * i for i, height in enumerate(free.tolist())]
    edge = frame.left + frame.width
    return "".join(
        f'<g class="{hue}"><circle class="end" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
        f'<line class="thread" x1="{x + 2:.1f}" x2="{edge + 10}" y1="{y:.1f}" y2="{height:.1f}"/>'
        f'<text class="name" x="{edge + 13}" y="{height + 4:.1f}">{_short(label, _LETTERS)}</text></g>'
        for (label, hue, x, y), height in zip(ends, heights, strict=True)
    )


def _room_for(names: Iterable[str]) -> int:
    """Return the pixels that names beside lines need."""
    return max([94, *(20 + 8 * min(len(name), _LETTERS) for name in names)])


def _short(name: object, letters: int) -> str:
    text = one_line(str(name))
    return escape(text if len(text) <= letters else text[: letters - 1] + "…")


def _ticks(low: float, high: float, most: int = 6, smallest: float = 0.1) -> list[float]:
    """Return at most so many round numbers from ``low`` to ``high``, evenly spaced."""
    step, factors = smallest, (2.0, 2.5, 2.0)  # 1, 2, 5, 10
    for i in range(60):
        if math.floor(high / step) - math.ceil(low / step) < most:
            break
        step *= factors[i % 3]
    return [round(k * step, 6) for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


# --- heat maps --------------------------------------------------------------------------------------------


def heat_maps(
    dataset: str, surfaces: Mapping[str, Surface], axes: tuple[str, str], tables: Sequence[Grid]
) -> Figure:
    """Draw test accuracy over two settings, one panel a method, with the numbers in the fields."""
    panels = [_heat_map(label, surface, axes) for label, surface in surfaces.items()]
    return Figure(f"heatmap-{dataset}", dataset, panels, tables)


def _heat_map(label: str, surface: Surface, axes: tuple[str, str]) -> Panel:
    left, top, wide, high = 52, 44, 48, 32
    means = [cell.mean for cell in surface.cells.values() if cell.trials]
    lowest, highest = (min(means), max(means)) if means else (0.0, 0.0)
    rows = len(surface.y)
    right, bottom = left + wide * len(surface.x), top + high * rows
    parts = [
        f'<text class="title" x="0" y="14">{safe(label)}</text>',
        f'<text x="0" y="{top - 9}">{safe(axes[1])}</text>',
        f'<text x="{right}" y="{bottom + 34}" text-anchor="end">{safe(axes[0])}</text>',
    ]
    for i, value in enumerate(surface.x):
        x = left + wide * (i + 0.5)
        parts.append(f'<text x="{x}" y="{bottom + 17}" text-anchor="middle">{_short(value, _DIGITS)}</text>')
    for j, value in enumerate(surface.y):  # upwards
        y = top + high * (rows - j - 0.5) + 4
        parts.append(f'<text x="{left - 6}" y="{y}" text-anchor="end">{_short(value, _DIGITS)}</text>')
    for (i, j), cell in surface.cells.items():
        x, y = left + wide * i, top + high * (rows - 1 - j)
        share = (cell.mean - lowest) / (highest - lowest) if highest > lowest else 0.5
        number = f"{cell.mean:.1f}" + "*" * (cell.trials < cell.planned) if cell.trials else MISSING
        parts.append(_field(x, y, wide, high, number, share))
    if surface.chosen is not None:
        x, y = left + wide * surface.chosen[0], top + high * (rows - 1 - surface.chosen[1])
        parts.append(f'<rect class="chosen" x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}"/>')
    span = f"mean test accuracy from {lowest:.1f} to {highest:.1f} percent" if means else "nothing is done yet"
    words = f"{label}: {span}"
    return Panel(right + 8, bottom + 42, "".join(parts), words)


def _field(x: int, y: int, wide: int, high: int, number: str, share: float) -> str:
    box = f'x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}"'
    spot = f'x="{x + wide // 2 - 1}" y="{y + high // 2 + 3}" text-anchor="middle"'
    if number == MISSING:
        return f'<rect class="empty" {box}/><text {spot}>{MISSING}</text>'
    fill = "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(_LOWEST, _HIGHEST, strict=True))
    kind = "dark-on-light" if share < 0.55 else "light-on-dark"
    return f'<rect fill="#{fill}" {box}/><text class="{kind}" {spot}>{number}</text>'
