"""The page of an inspection: one HTML file that needs nothing else, neither network nor script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from oneof.pages.charts import STYLE
from oneof.pages.frame import document, one_line, percent, safe, shorten
from oneof.pages.heat_maps import ShareMap, share_legend, share_map

__all__ = ["InspectionContent", "render"]

_BARS = 20  # labels whose bars are shown at once
_LONGEST = 60  # letters of a name

_STYLE = """
body { overflow-wrap: anywhere }
figcaption, dt, summary, .legend { color: var(--soft); font-size: .875rem; line-height: 1.45 }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.6rem, 1fr)); gap: .75rem;
  margin-top: 1.6rem }
.numbers div { display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: .8rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: 6px }
dd { font-size: 1.35rem; font-weight: 600; line-height: 1.4 }
.findings { list-style: none; max-width: 50rem } .findings li { padding: .5rem 0 .5rem .9rem; margin-bottom: .5rem;
  border-left: 3px solid var(--accent) }
table { width: 100%; table-layout: fixed; border-collapse: collapse; line-height: 1.3 }
th { width: min(14rem, .6em * var(--letters) + 1.2rem); padding: .2rem .8rem .2rem 0; text-align: right;
  font-weight: 400 }
td:last-child { width: 6.5rem; text-align: right; color: var(--soft) }
.bar { display: block; height: .9rem; border-radius: 2px; background: var(--accent) }
summary { padding: .6rem 0; cursor: pointer } svg { display: block }
figure + figure { margin-top: 2.5rem } .scroll { overflow-x: auto }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .8rem 0 }
.legend svg { display: inline; vertical-align: -2px }
.rows { table-layout: auto } .rows th, .rows td, .rows td:last-child { width: auto; padding: .35rem 1rem .35rem 0;
  border-top: 1px solid var(--rule); color: inherit; text-align: left; vertical-align: baseline }
.rows td:nth-child(2) { color: var(--soft) }
@media (max-width: 46rem) { th { width: min(7rem, .6em * var(--letters) + 1.2rem) } }
"""

_Shares = Sequence[tuple[str, float]]  # names, and shares of rows


@dataclass(frozen=True, eq=False)
class InspectionContent:
    """What the page shows."""

    title: str
    numbers: Mapping[str, str]  # by what they count
    findings: Sequence[str]  # sentences
    sizes: _Shares  # of sets
    labels: _Shares  # the most frequent first
    maps: Sequence[ShareMap]
    annotators: _Shares = ()  # and how often each is right, the best first
    pairs: _Shares = ()  # of annotators, and how often they disagree, the most first
    rows: Sequence[tuple[str, str, Sequence[str]]] = ()  # that are worth a look: number, why and candidates


def render(content: InspectionContent) -> str:
    """Return the page."""
    heading = shorten(one_line(content.title), 80)
    body = f"""<header>
<h1><bdi>{safe(heading)}</bdi></h1>
<p class="lead">Every row has a set of candidate labels, one of which should be true. This is what the sets can
teach, and what they cannot.</p>
{_numbers(content.numbers)}
</header>
<main>
{_findings(content.findings)}
{_annotators(content.annotators, content.pairs)}
{_sizes(content.sizes)}
{_labels(content.labels)}
{_together(content.maps)}
{_rows(content.rows)}
</main>"""
    return document(f"{heading}: candidate labels", STYLE + _STYLE, body)


def _numbers(numbers: Mapping[str, str]) -> str:
    pairs = "\n".join(
        f"<div><dt>{safe(words)}</dt><dd>{safe(number)}</dd></div>" for words, number in numbers.items()
    )
    return f'<dl class="numbers">\n{pairs}\n</dl>'


def _findings(sentences: Sequence[str]) -> str:
    # Escaped only: a sentence may isolate the direction of a name by characters that `safe` would drop.
    items = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<section>\n<h2>What stands out</h2>\n<ul class="findings">\n{items}\n</ul>\n</section>'


def _sizes(bars: _Shares) -> str:
    return f"""<section>
<h2>How many labels a set holds</h2>
<figure>
{_bars(bars, max(share for _, share in bars))}
<figcaption>The share of rows for each number of candidates.</figcaption>
</figure>
</section>"""


def _annotators(annotators: _Shares, pairs: _Shares) -> str:
    parts = []
    if annotators:
        caption = "How often the votes of each annotator are right, by estimate, the best first."
        parts.append(_folded("How far annotators can be trusted", annotators, "annotators", caption, 1.0))
    if pairs:
        caption = "Of the rows that both voted on, the share to which they gave different labels."
        parts.append(_folded("Who disagrees with whom", pairs, "pairs", caption, 1.0))
    return "\n".join(parts)


def _labels(bars: _Shares) -> str:
    caption = "The share of rows whose set holds the label, the most frequent first."
    return _folded("How often each label is a candidate", bars, "labels", caption, bars[0][1])


def _folded(title: str, bars: _Shares, things: str, caption: str, longest: float) -> str:
    """Return a section of bars; all but the first are folded away."""
    rest = ""
    if len(bars) > _BARS:
        table = _bars(bars[_BARS:], longest)
        rest = f"<details><summary>The other {len(bars) - _BARS} {things}</summary>{table}</details>"
    return f"""<section>
<h2>{title}</h2>
<figure>
{_bars(bars[:_BARS], longest)}
{rest}
<figcaption>{caption}</figcaption>
</figure>
</section>"""


def _bars(shares: _Shares, longest: float) -> str:
    """Draw bars in proportion to the longest; the numbers beside them are the shares."""
    letters = max(len(name) for name, _ in shares)
    rows = "\n".join(
        f'<tr><th scope="row"><bdi>{safe(shorten(name, _LONGEST))}</bdi></th>'
        f'<td><span class="bar" style="width: {100 * share / longest:.2f}%"></span></td>'
        f"<td>{percent(share)}</td></tr>"
        for name, share in shares
    )
    return f'<table style="--letters: {letters}">\n{rows}\n</table>'


def _together(maps: Sequence[ShareMap]) -> str:
    figures = "\n".join(map(share_map, maps))
    return f"<section>\n<h2>Which labels come together</h2>\n{share_legend()}\n{figures}\n</section>"


def _rows(found: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """List rows that are worth a look."""
    if not found:
        return ""
    rows = "\n".join(
        f'<tr><th scope="row">{safe(number)}</th><td>{safe(why)}</td><td>{_named(labels)}</td></tr>'
        for number, why, labels in found
    )
    return f"""<section>
<h2>Rows that are worth a look</h2>
<table class="rows">
<thead><tr><th scope="col">row, from 0</th><th scope="col">why</th><th scope="col">candidates</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</section>"""


def _named(labels: Sequence[str]) -> str:
    """Return the names of candidates, the first of many."""
    names = ", ".join(f"<bdi>{safe(shorten(name, _LONGEST))}</bdi>" for name in labels[:_BARS])
    return names + (f", and {len(labels) - _BARS} more" if len(labels) > _BARS else "")
