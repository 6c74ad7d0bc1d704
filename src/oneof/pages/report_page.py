"""The page of a report: one HTML file that needs nothing else. Its script only sorts tables."""

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from oneof.pages.charts import STYLE, inline
from oneof.pages.content import MISSING, Entry, Figure, Grid, Section
from oneof.pages.frame import POLICY, document, safe

__all__ = ["render"]

_LONG = 60  # rows from which on a table scrolls on its own
_STYLE = """
body { padding-bottom: 4rem; max-width: 70rem; overflow-wrap: anywhere }
h1 { font-size: clamp(1.7rem, 5vw, 2.4rem) } h2 { margin-bottom: .6rem; font-size: 1.35rem }
p, h1, .lead { max-width: 50rem } a { color: var(--accent) }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem }
pre { margin: 1rem 0; padding: .6rem .9rem; overflow-x: auto; background: var(--card);
  border: 1px solid var(--rule); border-radius: 6px; font: .875rem/1.5 ui-monospace, Consolas, monospace }
.scroll { overflow: auto; border: 1px solid var(--rule); border-radius: 6px; background-color: var(--card) }
.long { max-height: 36rem } .note { margin-top: .5rem; color: var(--soft); font-size: .875rem; line-height: 1.45 }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px }
table { min-width: 100%; border-collapse: separate; border-spacing: 0; font-size: .9rem; line-height: 1.35 }
th, td { padding: .4rem .8rem; text-align: left; vertical-align: baseline; overflow-wrap: normal }
thead th { position: sticky; top: 0; z-index: 1; padding: 0; background: var(--card); vertical-align: bottom;
  border-bottom: 1px solid var(--soft) }
thead th:first-child { left: 0; z-index: 2 } tbody th { position: sticky; left: 0; background: var(--card) }
button { width: 100%; padding: .5rem .8rem; border: 0; background: none; color: var(--soft); font: inherit;
  font-weight: 600; text-align: inherit; cursor: pointer } button:hover { color: var(--ink) }
[aria-sort] button { color: var(--ink) } [aria-sort=ascending] button::after { content: " ▲" }
[aria-sort=descending] button::after { content: " ▼" }
.number { text-align: right } td.number { white-space: nowrap } .missing, small { color: var(--soft) }
.mark { display: inline-block; width: 1em; text-align: right; color: var(--accent) }
small { display: block; font-size: .8rem }
table:not([data-sorted]) .first > * { border-top: 1px solid var(--rule) }
table:not([data-sorted]) .again { color: var(--soft); font-weight: 400 }
.panels { display: flex; flex-wrap: wrap; gap: 1.2rem 2rem } .panels svg { max-width: 100%; height: auto }
@media (max-width: 46rem) { th, td { padding: .35rem .55rem } button { padding: .45rem .55rem } }
@media print { .scroll { max-height: none; overflow: visible } nav { display: none } }
"""
_SCRIPT = """
for (const table of document.querySelectorAll("table")) table.tHead.addEventListener("click", event => {
  const head = event.target.closest("th"), body = table.tBodies[0], at = head.cellIndex;
  const upwards = head.getAttribute("aria-sort") !== "ascending";
  const missing = row => row.cells[at].classList.contains("missing");
  const compare = (a, b) => "sort" in a.dataset ? a.dataset.sort - b.dataset.sort
    : a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  const rows = [...body.rows].sort((a, b) => missing(a) - missing(b)
    || (missing(a) ? 0 : (upwards ? 1 : -1) * compare(a.cells[at], b.cells[at])));
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", upwards ? "ascending" : "descending");
  table.dataset.sorted = "";
  body.append(...rows);
});
"""
_NUMBER = re.compile(r"[+−]?\d+(\.\d+)?(?![\w.])")
_MARK = re.compile(r"[•◦?]")


def render(title: str, lead: str, command: str, sections: Sequence[Section]) -> str:
    """Return the page; ``command`` makes the results again."""
    digest = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"{POLICY}; script-src 'sha256-{digest}'"
    links = "\n".join(f'<a href="#{section.name}">{safe(section.title)}</a>' for section in sections)
    body = f"""<header>
<h1>{safe(title)}</h1>
<p class="lead">{safe(lead)}</p>
<pre tabindex="0"><code>{safe(command)}</code></pre>
<nav aria-label="sections">
{links}
</nav>
</header>
<main>
{"".join(map(_section, sections))}</main>
<script>{_SCRIPT}</script>"""
    return document(title, STYLE + _STYLE, body, policy)


def _section(section: Section) -> str:
    parts = "".join(_figure(part) if isinstance(part, Figure) else _table(part) for part in section.parts)
    return f"""<section id="{section.name}">
<h2>{safe(section.title)}</h2>
<p>{safe(section.text)}</p>
{parts}</section>
"""


def _figure(figure: Figure) -> str:
    panels = "\n".join(inline(panel, f'width="{1.25 * panel.width:.0f}"') for panel in figure.panels)
    return f'<figure>\n<h3>{safe(figure.title)}</h3>\n<div class="panels">\n{panels}\n</div>\n</figure>\n'


def _table(grid: Grid) -> str:
    """Write a table whose rows are sorted by a click on a header."""
    rows = [row for group in grid.groups for row in group]
    first = {id(group[0]) for group in grid.groups[1:]}
    kinds = [_kind([row[i] for row in rows]) for i in range(len(grid.header))]
    head = "".join(
        f'<th scope="col"{_class(kind)}><button type="button">{safe(name)}</button></th>'
        for name, kind in zip(grid.header, kinds, strict=True)
    )
    body = "\n".join(
        f"<tr{_class('first' if id(row) in first else '')}>{_row_head(row, above, kinds[0])}"
        + "".join(map(_field, row[1:], kinds[1:]))
        + "</tr>"
        for row, above in zip(rows, [None, *rows], strict=False)
    )
    notes = "".join(f'<p class="note">{safe(note)}</p>\n' for note in grid.notes)
    title, long = safe(grid.title), " long" * (len(rows) > _LONG)
    return f"""<h3>{title}</h3>
<div class="scroll{long}" role="region" tabindex="0" aria-label="{title}">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
{notes}"""


def _kind(column: Sequence[Entry]) -> str:
    """Return the class of a column: numbers stand at the right, with room for marks if there are any."""
    known = [entry.value for entry in column if not _is_missing(entry)]
    if not known or not all(map(_NUMBER.match, known)):
        return ""
    return "number marked" if any(_MARK.match(entry.remark) for entry in column) else "number"


def _is_missing(entry: Entry) -> bool:
    return entry.value in ("", MISSING)


def _row_head(row: Sequence[Entry], above: Sequence[Entry] | None, kind: str) -> str:
    again = above is not None and row[0] == above[0]
    return f'<th scope="row"{_class(kind, "again" * again)}{_sort_key(row[0], kind)}>{safe(row[0].value)}</th>'


def _field(entry: Entry, kind: str) -> str:
    value = f"<strong>{safe(entry.value)}</strong>" if entry.bold else safe(entry.value)
    found = _MARK.match(entry.remark)
    mark = found.group() if found else ""
    remark = entry.remark.removeprefix(mark).strip()
    if "marked" in kind:
        value += f'<span class="mark">{mark}</span>'
    if remark:
        value += f" <small>{safe(remark)}</small>"
    return f"<td{_class(kind, 'missing' * _is_missing(entry))}{_sort_key(entry, kind)}>{value}</td>"


def _sort_key(entry: Entry, kind: str) -> str:
    """Return what the script sorts numbers by: a cell such as 12.3 ± 0.4 by its mean."""
    number = _NUMBER.match(entry.value) if kind else None
    return "" if number is None else f' data-sort="{number.group().replace("−", "-")}"'


def _class(*names: str) -> str:
    known = " ".join(filter(None, names))
    return f' class="{known}"' if known else ""
