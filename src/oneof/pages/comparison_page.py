"""The page of a comparison of methods: one HTML file that needs nothing else, neither network nor script."""

from collections.abc import Sequence
from dataclasses import dataclass

from oneof.pages.charts import STYLE, Axis, ticks
from oneof.pages.frame import document, one_line, safe, shorten

__all__ = ["ComparedMethod", "ComparisonContent", "render"]

_STYLE = """
body { overflow-wrap: anywhere }
figcaption, thead th, .note { color: var(--soft); font-size: .875rem; font-weight: 400; line-height: 1.45 }
.note { max-width: 50rem; margin-top: .5rem } svg { display: block }
table { width: 100%; border-collapse: collapse } th { text-align: left; font-weight: 600 }
tbody th, td { padding: .6rem 0; border-top: 1px solid var(--rule) } thead th { vertical-align: bottom }
.picture th { width: 9rem; padding-right: 1rem } .picture .strip { width: auto; padding-inline: 1.6rem }
.strip svg { width: 100%; overflow: visible } .picture .number { width: 10rem }
.number { text-align: right; white-space: nowrap; padding-left: 1.2rem } thead .number { white-space: normal }
.reach { stroke: var(--hue); stroke-width: 2.5 } .taken { --hue: var(--accent) } .other { --hue: var(--soft) }
.picture th.number { padding-right: 0 } .taken th, .taken .number { color: var(--accent) }
.scroll { overflow-x: auto; overflow-wrap: normal }
@media (max-width: 46rem) {
  .picture tr { display: grid; grid-template-columns: 1fr auto; align-items: end;
    border-top: 1px solid var(--rule) }
  .picture thead tr { border: 0 } .picture tbody th, .picture td { border: 0; padding: .5rem 0 0 }
  .picture th, .picture .number { width: auto }
  .picture .strip { order: 1; grid-column: 1 / -1; padding: .2rem 1.2rem .5rem } }
"""


@dataclass(frozen=True)
class ComparedMethod:
    """A method: its mean set log-likelihood with a 95 % interval, and whether it is the one to take."""

    name: str
    mean: float
    low: float
    high: float
    taken: bool


@dataclass(frozen=True)
class ComparisonContent:
    """What the page shows."""

    title: str  # such as the name of a table
    advice: str
    methods: Sequence[ComparedMethod]  # the best first
    table: Sequence[Sequence[str]]  # its header first
    notes: Sequence[str]


def render(content: ComparisonContent) -> str:
    """Return the page."""
    heading = shorten(one_line(content.title), 80)
    notes = "\n".join(f'<p class="note">{safe(note)}</p>' for note in content.notes)
    body = f"""<header>
<h1>Which method for <bdi>{safe(heading)}</bdi>?</h1>
<p class="lead">{safe(content.advice)}</p>
</header>
<main>
{_picture(content.methods)}
<section>
<h2>All numbers</h2>
<div class="scroll" role="region" tabindex="0" aria-label="all numbers">
{_table(content.table)}
</div>
{notes}
</section>
</main>"""
    return document(f"{heading}: comparison of methods", STYLE + _STYLE, body)


def _picture(methods: Sequence[ComparedMethod]) -> str:
    """Draw a dot with its interval for every method, all on the same scale."""
    low, high = min(each.low for each in methods), max(each.high for each in methods)
    margin = max(0.04 * (high - low), 1e-4)
    low, high = low - margin, high + margin
    axis = Axis(low, high, ticks(low, high, most=5, smallest=1e-4))
    numbers = "".join(f'<text x="{_along(axis, m)}" y="13" text-anchor="middle">{m:g}</text>' for m in axis.ticks)
    rows = "\n".join(_row(each, axis) for each in methods)
    return f"""<section>
<h2>How likely each method finds the candidate sets of rows it has not seen</h2>
<figure>
<table class="picture">
<thead><tr><th scope="col">method</th>
<th scope="col" class="strip">mean and 95% interval<svg height="16" aria-hidden="true">{numbers}</svg></th>
<th scope="col" class="number">set log-likelihood</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<figcaption>Further to the right is better. All methods see the same rows, so that a difference may be significant
where intervals overlap: the table below has differences with intervals of their own.</figcaption>
</figure>
</section>"""


def _row(method: ComparedMethod, axis: Axis) -> str:
    places = [_along(axis, tick) for tick in axis.ticks]
    grid = "".join(f'<line class="grid" x1="{place}" x2="{place}" y2="30"/>' for place in places)
    low, mean, high = (_along(axis, value) for value in (method.low, method.mean, method.high))
    words = f"{method.mean:.4f}, from {method.low:.4f} to {method.high:.4f}"
    return f"""<tr data-method="{safe(method.name)}" class="{"taken" if method.taken else "other"}">
<th scope="row">{safe(shorten(one_line(method.name), 40))}</th>
<td class="strip"><svg height="30" role="img" aria-label="{words}">{grid}
<line class="reach" x1="{low}" x2="{high}" y1="15" y2="15"/>
<circle class="end" cx="{mean}" cy="15" r="6"/></svg></td>
<td class="number">{method.mean:.4f}</td></tr>"""


def _along(axis: Axis, value: float) -> str:
    return f"{100 * axis.share(value):.2f}%"


def _table(lines: Sequence[Sequence[str]]) -> str:
    header, *rows = lines
    head = "".join(
        f'<th scope="col"{" class=number" * (k > 0)}>{safe(name)}</th>' for k, name in enumerate(header)
    )
    body = "\n".join(
        f'<tr><th scope="row">{safe(shorten(one_line(row[0]), 40))}</th>'
        + "".join(f'<td class="number">{safe(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
