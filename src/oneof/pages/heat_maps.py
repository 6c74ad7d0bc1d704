"""Heat maps as SVG: a measure over two settings, and shares of labels that come together."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oneof.pages.content import MISSING, Panel
from oneof.pages.frame import SHADES, one_line, percent, safe, shorten

__all__ = ["HeatMap", "ShareMap", "heat_map", "share_legend", "share_map"]

_WIDE, _HIGH = 48, 32  # a field of a measure
_DIGITS = 7  # of a setting
_ROOMY = 24  # width from which on a cell has room for its number
_SINGLE_CELLS = 50  # labels up to which every cell is an element of its own
_MOST_LABELS = 200  # of more labels, only the closest are drawn
_CLOSEST = 50
_AXIS = 16  # letters of a name beside the map
_TITLE = 60  # letters of a name in a description


# --- a measure over two settings --------------------------------------------------------------------------


@dataclass(frozen=True)
class HeatMap:
    """Mean test accuracies in percent at places (i, j): column i counts to the right, row j upwards."""

    title: str
    axes: tuple[str, str]  # the names of the settings, along columns and along rows
    columns: Sequence[str]
    rows: Sequence[str]
    values: Mapping[tuple[int, int], float]  # NaN where nothing is known yet
    incomplete: Collection[tuple[int, int]] = ()  # places whose values get a star
    chosen: tuple[int, int] | None = None  # a place with a frame around it


def heat_map(data: HeatMap) -> Panel:
    """Draw a map with its numbers in the fields."""
    left, top = 52, 44
    right, bottom = left + _WIDE * len(data.columns), top + _HIGH * len(data.rows)

    def corner(i: int, j: int) -> tuple[int, int]:
        return left + _WIDE * i, bottom - _HIGH * (j + 1)

    parts = [
        f'<text class="title" x="0" y="14">{safe(data.title)}</text>',
        f'<text x="0" y="{top - 9}">{safe(data.axes[1])}</text>',
        f'<text x="{right}" y="{bottom + 34}" text-anchor="end">{safe(data.axes[0])}</text>',
    ]
    for i, name in enumerate(data.columns):
        x = left + _WIDE * (i + 0.5)
        parts.append(f'<text x="{x}" y="{bottom + 17}" text-anchor="middle">{_setting(name)}</text>')
    for j, name in enumerate(data.rows):
        y = bottom - _HIGH * (j + 0.5) + 4
        parts.append(f'<text x="{left - 6}" y="{y}" text-anchor="end">{_setting(name)}</text>')
    known = [value for value in data.values.values() if not math.isnan(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    for place, value in data.values.items():
        share = (value - low) / (high - low) if high > low else 0.5
        parts.append(_field(*corner(*place), value, share, "*" * (place in data.incomplete)))
    if data.chosen is not None:
        x, y = corner(*data.chosen)
        parts.append(f'<rect class="chosen" x="{x}" y="{y}" width="{_WIDE - 2}" height="{_HIGH - 2}"/>')
    span = f"mean test accuracy from {low:.1f} to {high:.1f} percent" if known else "nothing is done yet"
    return Panel(right + 8, bottom + 42, "".join(parts), f"{data.title}: {span}")


def _setting(value: str) -> str:
    text = one_line(value)
    return safe(text if len(text) <= _DIGITS else text[: _DIGITS - 1] + "…")


def _field(x: int, y: int, value: float, share: float, star: str) -> str:
    box = f'x="{x}" y="{y}" width="{_WIDE - 2}" height="{_HIGH - 2}"'
    middle = f'x="{x + _WIDE // 2 - 1}" y="{y + _HIGH // 2 + 3}" text-anchor="middle"'
    if math.isnan(value):
        return f'<rect class="empty" {box}/><text {middle}>{MISSING}</text>'
    fill = "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*SHADES, strict=True))
    kind = "on-light" if share < 0.55 else "on-dark"
    return f'<rect fill="#{fill}" {box}/><text class="{kind}" {middle}>{value:.1f}{star}</text>'


# --- shares of labels that come together ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ShareMap:
    """How often the label of a column is in the sets that were counted for the label of a row."""

    names: Sequence[str]
    counts: Sequence[int]  # how many sets were counted for each row
    shares: NDArray[np.float64]  # square; 0 on the diagonal and in rows with fewer sets than ``enough``
    among: str  # which sets were counted, such as "sets that hold"
    enough: int

    @property
    def cell(self) -> int:
        """The width of a cell: what fits on a page, not less than can be seen, and more where labels are few."""
        labels = len(self.names)
        return max(9, min(800 // labels, max(34, min(90, 420 // labels))))

    def counted(self, i: int) -> str:
        """Say what was counted for a row."""
        return f"{self.counts[i]} {self.among} {_title(self.names[i])}"

    def closest(self) -> "ShareMap":
        """Return a map that is not too large: the labels of the closest pairs, or all labels if they are few."""
        if len(self.names) <= _MOST_LABELS:
            return self
        found: list[int] = []
        for pair in np.argsort(-self.shares, axis=None, kind="stable"):
            found += [label for label in divmod(int(pair), len(self.names)) if label not in found]
            if len(found) >= _CLOSEST:
                break
        kept = sorted(found[:_CLOSEST])
        names, counts = [self.names[k] for k in kept], [self.counts[k] for k in kept]
        return ShareMap(names, counts, self.shares[np.ix_(kept, kept)], self.among, self.enough)


def share_map(data: ShareMap) -> str:
    """Return a figure with its caption."""
    drawn = data.closest()
    labels = len(drawn.names)
    caption = f"Row by row: of the {data.among} the label on the left, the share that also hold the label above."
    if labels < len(data.names):
        caption += f" Of {len(data.names)} labels, the {labels} with the closest companions are drawn."
    if min(drawn.counts) < data.enough:
        caption += f" Where there are fewer than {data.enough}, the row is left empty."
    font, side = min(drawn.cell, 12 if drawn.cell <= 34 else 15), drawn.cell * labels
    edge = 12 + round(0.65 * font * max(len(shorten(name, _AXIS)) for name in drawn.names))
    row = _row_of_cells if labels <= _SINGLE_CELLS else _shaded_row
    rows = "\n".join(row(drawn, i) for i in range(labels))
    return f"""<figure>
<figcaption>{caption}</figcaption>
<div class="scroll" tabindex="0" role="region" aria-label="Heat map of the {data.among} each label">
<svg class="map" width="{edge + side + 1}" height="{edge + side + 1}" style="font-size: {font}px" role="img"
 aria-label="Heat map of {labels} by {labels} labels. {caption}">
<g transform="translate({edge} {edge})">
<rect class="ground" width="{side}" height="{side}"/>
{rows}
{_label_names(drawn)}
</g></svg>
</div>
</figure>"""


def share_legend() -> str:
    """Say what the looks of cells mean."""
    looks = [(_look(share), percent(share)) for share in (0.05, 0.25, 0.5, 0.9)]
    looks += [(_look(1), "100%: in every one"), (_look(0, itself=True), "the label itself")]
    swatches = "".join(
        f'<span><svg width="14" height="14" aria-hidden="true"><rect class="ground" width="14" height="14"/>'
        f'<rect {look} width="14" height="14"/></svg> {words}</span>\n'
        for look, words in looks
    )
    return f'<p class="legend">{swatches}</p>'


def _label_names(data: ShareMap) -> str:
    """Write the names beside the rows and above the columns."""
    parts = []
    for i, name in enumerate(data.names):
        middle, text = data.cell * (i + 0.5), f"{safe(shorten(name, _AXIS))}<title>{_title(name)}</title>"
        parts.append(f'<text x="-6" y="{middle}" text-anchor="end" dominant-baseline="central">{text}</text>')
        parts.append(
            f'<text transform="translate({middle} -6) rotate(-90)" dominant-baseline="central">{text}</text>'
        )
    return "\n".join(parts)


def _row_of_cells(data: ShareMap, i: int) -> str:
    """Draw a row of a small map: cells that tell their share, with numbers where there is room."""
    parts, size, counted = [], data.cell, data.counted(i)
    for j, share in enumerate(data.shares[i].tolist()):
        told = i != j and data.counts[i] >= data.enough
        words = f"{_title(data.names[j])}: in {percent(share)} of {counted}" if told else counted
        parts.append(
            f'<rect {_look(share, i == j)} x="{j * size}" y="{i * size}" width="{size}" height="{size}">'
            f"<title>{words}</title></rect>"
        )
        if share and size >= _ROOMY:
            whole = 100 if share == 1 else min(max(round(100 * share), 1), 99)
            parts.append(
                f'<text class="number{" strong" if share > 0.45 else ""}" x="{(j + 0.5) * size}" '
                f'y="{(i + 0.5) * size}" text-anchor="middle" dominant-baseline="central">{whole}</text>'
            )
    return "".join(parts)


def _shaded_row(data: ShareMap, i: int) -> str:
    """Draw a row of a large map: one path for each shade, and one description of the whole row."""
    paths: dict[str, str] = {}
    for j, share in enumerate(data.shares[i].tolist()):
        if share or i == j:
            look = _look(share, i == j)
            paths[look] = paths.get(look, "") + f"M{j} {i}h1v1h-1z"
    closest = [j for j in np.argsort(-data.shares[i], kind="stable")[:3].tolist() if data.shares[i, j]]
    words = [f"{_title(data.names[j])} in {percent(data.shares[i, j])}" for j in closest]
    title = "; ".join([data.counted(i), *words])
    drawn = "".join(f'<path {look} d="{path}"/>' for look, path in paths.items())
    return f'<g transform="scale({data.cell})"><title>{title}</title>{drawn}</g>'


def _look(share: float, itself: bool = False) -> str:
    """Return the attributes of a cell; the square root lets small shares be seen."""
    if itself:
        return 'class="self"'
    if share == 1:
        return 'class="always"'
    return f'class="cell" fill-opacity="{math.ceil(20 * math.sqrt(share)) / 20}"'


def _title(name: str) -> str:
    return f"“{safe(shorten(name, _TITLE))}”"
