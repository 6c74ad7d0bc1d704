"""The page of an inspection: one HTML file that needs nothing else, neither network nor script."""

import os
from dataclasses import dataclass
from html import escape
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from oneof.data.inspection import (
    ENOUGH,
    Companions,
    Inspection,
    findings,
    head_numbers,
    one_line,
    percent,
    shorten,
    size_bins,
)
from oneof.io.files import replacing
from oneof.pages.frame import COLOURS, POLICY, document

_BARS = 20  # labels whose bars are shown at once
_ROOMY = 24  # width from which on a cell has room for its number
_SINGLE_CELLS = 50  # labels up to which every cell is an element of its own
_MOST_LABELS = 200  # in a heat map; of more, the closest are drawn
_CLOSEST = 50
_AXIS = 16  # letters of a name beside a heat map

_STYLE = """
:root { --hue: #1d4fd8; --wrong: #b3261e }
@media (prefers-color-scheme: dark) { :root { --hue: #82aaff; --wrong: #ff8a80 } }
body { overflow-wrap: anywhere }
figcaption, dt, summary, .legend { color: var(--soft); font-size: .875rem; line-height: 1.45 }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.6rem, 1fr)); gap: .75rem;
  margin-top: 1.6rem }
.numbers div { display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: .8rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: 6px }
dd { font-size: 1.35rem; font-weight: 600; line-height: 1.4 }
.findings { list-style: none; max-width: 50rem } .findings li { padding: .5rem 0 .5rem .9rem; margin-bottom: .5rem;
  border-left: 3px solid var(--hue) }
table { width: 100%; table-layout: fixed; border-collapse: collapse; line-height: 1.3 }
th { width: min(14rem, .6em * var(--letters) + 1.2rem); padding: .2rem .8rem .2rem 0; text-align: right;
  font-weight: 400 }
td:last-child { width: 6.5rem; text-align: right; color: var(--soft) }
.bar { display: block; height: .9rem; border-radius: 2px; background: var(--hue) }
summary { padding: .6rem 0; cursor: pointer }
figure + figure { margin-top: 2.5rem } .scroll { overflow-x: auto }
svg { display: block } svg text { fill: var(--soft) }
.ground { fill: var(--card); stroke: var(--rule) } .self { fill: var(--rule) } .cell { fill: var(--hue) }
.always { fill: var(--wrong) }
svg .number { fill: var(--ink); pointer-events: none } svg .strong { fill: var(--card) }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .8rem 0 }
.legend svg { display: inline; vertical-align: -2px }
@media (max-width: 46rem) { th { width: min(7rem, .6em * var(--letters) + 1.2rem) } }
"""


def write_page(inspection: Inspection, path: str | os.PathLike[str], title: str) -> None:
    """Write the page of an inspection, under a title such as the name of its file."""
    with replacing(path) as part:
        part.write_text(render(inspection, title), encoding="utf-8")


def render(inspection: Inspection, title: str) -> str:
    """Return the page as a string."""
    heading = shorten(one_line(title), 80)
    body = f"""<header>
<h1><bdi>{escape(heading)}</bdi></h1>
<p class="lead">Every row has a set of candidate labels, one of which should be true. This is what the sets can
teach, and what they cannot.</p>
{_numbers(inspection)}
</header>
<main>
{_findings(inspection)}
{_sizes(inspection)}
{_labels(inspection)}
{_together(inspection)}
</main>"""
    return document(f"{heading}: candidate labels", COLOURS + _STYLE, body, POLICY)


def _name(name: str) -> str:
    return f"<bdi>{escape(shorten(name, 60))}</bdi>"


def _numbers(inspection: Inspection) -> str:
    pairs = "\n".join(
        f"<div><dt>{escape(words)}</dt><dd>{escape(number)}</dd></div>"
        for words, number in head_numbers(inspection).items()
    )
    return f'<dl class="numbers">\n{pairs}\n</dl>'


def _findings(inspection: Inspection) -> str:
    sentences = findings(inspection, quote=lambda name: f"“{_name(name)}”")
    items = "\n".join(f"<li>{sentence}</li>" for sentence in sentences)  # plain words around escaped names
    return f'<section>\n<h2>What stands out</h2>\n<ul class="findings">\n{items}\n</ul>\n</section>'


# --- bars ------------------------------------------------------------------------------------------------


def _sizes(inspection: Inspection) -> str:
    bars = [(size, count / inspection.rows) for size, count in size_bins(inspection)]
    return f"""<section>
<h2>How many labels a set holds</h2>
<figure>
{_bars(bars, max(share for _, share in bars))}
<figcaption>The share of rows for each number of candidates.</figcaption>
</figure>
</section>"""


def _labels(inspection: Inspection) -> str:
    order = np.argsort(-inspection.by_set.rows, kind="stable").tolist()
    bars = [(inspection.names[k], float(inspection.frequency[k])) for k in order]
    longest, rest = bars[0][1], ""
    if len(bars) > _BARS:
        table = _bars(bars[_BARS:], longest)
        rest = f"<details><summary>The other {len(bars) - _BARS} labels</summary>{table}</details>"
    return f"""<section>
<h2>How often each label is a candidate</h2>
<figure>
{_bars(bars[:_BARS], longest)}
{rest}
<figcaption>The share of rows whose set holds the label, the most frequent first.</figcaption>
</figure>
</section>"""


def _bars(shares: list[tuple[str, float]], longest: float) -> str:
    """Draw bars in proportion to the longest; the numbers beside them are the shares."""
    letters = max(len(name) for name, _ in shares)
    rows = "\n".join(
        f'<tr><th scope="row">{_name(name)}</th>'
        f'<td><span class="bar" style="width: {100 * share / longest:.2f}%"></span></td>'
        f"<td>{percent(share)}</td></tr>"
        for name, share in shares
    )
    return f'<table style="--letters: {letters}">\n{rows}\n</table>'


# --- heat maps -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _HeatMap:
    """Labels, and how often that of a column is in the sets of that of a row."""

    names: list[str]
    rows: list[int]  # how many sets were counted for each row
    shares: NDArray[np.float64]
    among: str  # what they were counted among, such as "sets that hold"

    @property
    def cell(self) -> int:
        """The width of a cell: what fits on a page, and not less than can be seen."""
        return max(9, min(34, 800 // len(self.names)))

    def counted(self, i: int) -> str:
        """Say what was counted for a row."""
        return f"{self.rows[i]} {self.among} {_title(self.names[i])}"


def _together(inspection: Inspection) -> str:
    maps = [_figure(inspection.by_set, inspection.names, "sets that hold")]
    if inspection.by_truth:
        maps.append(_figure(inspection.by_truth, inspection.names, "rows whose truth is"))
    swatches = [(_look(share), percent(share)) for share in (0.05, 0.25, 0.5, 0.9)]
    swatches += [(_look(1), "100%: in every one"), (_look(0, itself=True), "the label itself")]
    legend = "".join(
        f'<span><svg width="14" height="14" aria-hidden="true"><rect class="ground" width="14" height="14"/>'
        f'<rect {look} width="14" height="14"/></svg> {words}</span>\n'
        for look, words in swatches
    )
    figures = "\n".join(maps)
    return f"""<section>
<h2>Which labels come together</h2>
<p class="legend">{legend}</p>
{figures}
</section>"""


def _figure(companions: Companions, names: tuple[str, ...], among: str) -> str:
    chosen = _chosen(companions)
    shares = companions.others[np.ix_(chosen, chosen)]
    heat = _HeatMap([names[k] for k in chosen], companions.rows[chosen].tolist(), shares, among)
    caption = f"Row by row: of the {among} the label on the left, the share that also hold the label above."
    if len(chosen) < len(names):
        caption += f" Of {len(names)} labels, the {len(chosen)} with the closest companions are drawn."
    if min(heat.rows) < ENOUGH:
        caption += f" Where there are fewer than {ENOUGH}, the row is left empty."
    font, side = min(heat.cell, 12), heat.cell * len(chosen)
    edge = 12 + round(0.65 * font * max(len(shorten(name, _AXIS)) for name in heat.names))
    draw = _row_of_cells if len(chosen) <= _SINGLE_CELLS else _shaded_row
    rows = "\n".join(draw(heat, i) for i in range(len(chosen)))
    return f"""<figure>
<figcaption>{caption}</figcaption>
<div class="scroll" tabindex="0" role="region" aria-label="Heat map of the {among} each label">
<svg class="map" width="{edge + side + 1}" height="{edge + side + 1}" font-size="{font}" role="img"
 aria-label="Heat map of {len(chosen)} by {len(chosen)} labels. {caption}">
<g transform="translate({edge} {edge})">
<rect class="ground" width="{side}" height="{side}"/>
{rows}
{_axes(heat)}
</g></svg>
</div>
</figure>"""


def _chosen(companions: Companions) -> list[int]:
    """Return the labels to draw: all of them, or those of the closest pairs."""
    others = companions.others
    if len(others) <= _MOST_LABELS:
        return list(range(len(others)))
    closest: list[int] = []
    for pair in np.argsort(-others, axis=None, kind="stable"):
        closest += [label for label in divmod(int(pair), len(others)) if label not in closest]
        if len(closest) >= _CLOSEST:
            break
    return sorted(closest[:_CLOSEST])


def _axes(heat: _HeatMap) -> str:
    """Write the names beside the rows and above the columns."""
    parts = []
    for i, name in enumerate(heat.names):
        middle, text = heat.cell * (i + 0.5), f"{escape(shorten(name, _AXIS))}<title>{_title(name)}</title>"
        parts.append(f'<text x="-6" y="{middle}" text-anchor="end" dominant-baseline="central">{text}</text>')
        parts.append(
            f'<text transform="translate({middle} -6) rotate(-90)" dominant-baseline="central">{text}</text>'
        )
    return "\n".join(parts)


def _row_of_cells(heat: _HeatMap, i: int) -> str:
    """Draw a row of a small map: cells that tell their share, with numbers where there is room."""
    parts, size, counted = [], heat.cell, heat.counted(i)
    for j, share in enumerate(heat.shares[i].tolist()):
        told = i != j and heat.rows[i] >= ENOUGH
        words = f"{_title(heat.names[j])}: in {percent(share)} of {counted}" if told else counted
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


def _shaded_row(heat: _HeatMap, i: int) -> str:
    """Draw a row of a large map: one path for each shade, and words for the whole row."""
    paths: dict[str, str] = {}
    for j, share in enumerate(heat.shares[i].tolist()):
        if share or i == j:
            look = _look(share, i == j)
            paths[look] = paths.get(look, "") + f"M{j} {i}h1v1h-1z"
    closest = [j for j in np.argsort(-heat.shares[i], kind="stable")[:3].tolist() if heat.shares[i, j]]
    words = [f"{_title(heat.names[j])} in {percent(heat.shares[i, j])}" for j in closest]
    title = "; ".join([heat.counted(i), *words])
    drawn = "".join(f'<path {look} d="{path}"/>' for look, path in paths.items())
    return f'<g transform="scale({heat.cell})"><title>{title}</title>{drawn}</g>'


def _look(share: float, itself: bool = False) -> str:
    """Return the attributes of a cell; the root lets small shares be seen."""
    if itself:
        return 'class="self"'
    return 'class="always"' if share == 1 else f'class="cell" fill-opacity="{ceil(20 * sqrt(share)) / 20}"'


def _title(name: str) -> str:
    return f"“{escape(shorten(name, 60))}”"
