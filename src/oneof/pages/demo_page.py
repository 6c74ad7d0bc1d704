"""The demo's page: one HTML file that needs nothing else, neither network nor script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from oneof.pages.charts import STYLE, Axis, Plot, Series, drawing, inline, lowest_settled, room_for, ticks
from oneof.pages.content import Panel
from oneof.pages.frame import document, safe

__all__ = ["DemoContent", "Example", "Gallery", "Trained", "render"]

_SETTLED = 0.1  # share of the epochs whose steep rise may be cut off
_STYLE = """
.right { --hue: var(--right) } .wrong { --hue: var(--wrong) }
small, figcaption, thead th, dt { color: var(--soft); font-size: .875rem; font-weight: 400; line-height: 1.45 }
small { display: block } svg { display: block }
table { width: 100%; border-collapse: collapse } th { width: 32%; text-align: left; font-weight: 600 }
tbody th, td { padding: .6rem 0; border-top: 1px solid var(--rule) } thead th { vertical-align: bottom }
.number { width: 7.5rem; text-align: right } td.accuracy { font-weight: 600 }
.strip { padding-inline: 1.2rem } .strip svg { width: 100%; overflow: visible }
.mean { stroke: var(--hue); stroke-width: 3 } .mark-line { stroke: var(--soft); stroke-dasharray: 4 4 }
.chart { width: 100%; height: auto }
.gallery { display: grid; grid-template-columns: repeat(4, 1fr); gap: .75rem; list-style: none }
.card { display: grid; grid-template-columns: 64px 1fr; gap: .6rem .9rem; align-content: start; padding: .8rem;
  background: var(--card); border: 1px solid var(--rule); border-top: 3px solid var(--hue); border-radius: 6px }
.card p { grid-column: 1 / -1; font-size: .875rem; line-height: 1.4 } .card .answer { grid-column: 2 }
.answer b { font-size: 1.7rem; line-height: 1 } .mark { display: block; color: var(--hue); font-weight: 600 }
.chips { display: flex; flex-wrap: wrap; gap: .35rem } .chip { width: 1.7em; border: 1px solid var(--soft);
  border-radius: 1em; text-align: center } .chip.true { outline: 2px solid var(--right); outline-offset: 1px }
.chip.said { background: var(--ink); border-color: var(--ink); color: var(--card); font-weight: 600 }
.bar { display: block; height: 5px; margin-top: .2rem; border-radius: 3px; background: var(--rule) }
.bar span { display: block; height: 100%; border-radius: 3px; background: var(--hue) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; align-items: baseline }
dd { overflow-wrap: anywhere } .narrow { display: none }
@media (max-width: 46rem) {
  .wide { display: none } .narrow { display: block }
  .gallery { grid-template-columns: 1fr 1fr } .card { column-gap: .4rem; padding: .7rem }
  tr { display: grid; grid-template-columns: 1fr 6rem 6rem; gap: 0 .75rem; align-items: end;
    border-top: 1px solid var(--rule) }
  thead tr { border: 0 } tbody th, td { border: 0; padding: .5rem 0 0 } th, .number { width: auto }
  .strip { order: 1; grid-column: 1 / -1; padding: 0 .6rem .4rem } tbody small { display: none } }
"""


@dataclass(frozen=True)
class Trained:
    """A network, trained in one of the ways that are compared; accuracies are in percent."""

    key: str
    name: str
    about: str
    accuracies: Sequence[float]  # on test digits after the last epoch, one for each seed
    accuracy: str  # their mean and deviation
    resolved: str  # the share of training rows whose most likely candidate is the true label
    series: Series  # test accuracy against epochs: the mean over seeds, and every seed as a faint line


@dataclass(frozen=True)
class Example:
    """A training digit and what was made of it."""

    row: int
    pixels: Sequence[float]  # 8 x 8, from 0 to 16
    candidates: Sequence[int]
    truth: int
    answer: int
    sure: float  # the probability of the answer


@dataclass(frozen=True)
class Gallery:
    """Training digits of one seed, by why they are shown."""

    seed: int
    kinds: Mapping[str, Sequence[Example]]
    most: int  # of one kind
    rows: int  # all training digits
    wrong: int  # those of them whose answer is wrong


@dataclass(frozen=True)
class DemoContent:
    """What the page shows."""

    train_rows: int
    test_rows: int
    set_size: float  # mean number of candidates of a training row
    seeds: int
    warm_up: int  # epochs
    trained: Sequence[Trained]
    findings: str
    gallery: Gallery
    facts: Mapping[str, str]


def render(content: DemoContent) -> str:
    """Return the page."""
    body = f"""<header>
<h1>One of these labels is true</h1>
<p class="lead">Each of {content.train_rows} scanned digits came with a set of candidate labels,
{content.set_size:.1f} on average: the true one and others that the image itself suggests. The same small
network was trained in {len(content.trained)} ways and then had to read {content.test_rows} digits it had never
seen.</p>
</header>
<main>
{_results(content)}
{_curves(content)}
{_gallery(content.gallery)}
{_facts(content.facts)}
</main>"""
    return document("oneof demo: digits from ambiguous labels", STYLE + _STYLE, body)


# --- the table --------------------------------------------------------------------------------------------


def _results(content: DemoContent) -> str:
    marks = ticks(min(90, min(min(each.accuracies) for each in content.trained)), 100, smallest=1, below=True)
    axis = Axis(marks[0], 100, marks)
    numbers = "".join(f'<text x="{_along(axis, m)}" y="13" text-anchor="middle">{m:g}</text>' for m in marks)
    rows = "\n".join(_row(each, axis) for each in content.trained)
    return f"""<section>
<h2>How well each way reads new digits</h2>
<figure>
<table>
<thead><tr><th scope="col">trained with</th>
<th scope="col" class="strip">each seed and the mean<svg height="16" aria-hidden="true">{numbers}</svg></th>
<th scope="col" class="number">test<br>accuracy, %</th>
<th scope="col" class="number">training rows<br>resolved, %</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<figcaption>A dot is a seed (its own split, candidate sets and initial weights), the upright line is the mean of
{content.seeds}, ± the sample standard deviation. Accuracy is that of the last epoch, with every method’s
defaults; nothing was selected. A training row is resolved when the most likely of its candidates is the true
label.</figcaption>
</figure>
<p>{safe(content.findings)}</p>
</section>"""


def _along(axis: Axis, value: float) -> str:
    return f"{100 * axis.share(value):.2f}%"


def _row(trained: Trained, axis: Axis) -> str:
    places = [_along(axis, tick) for tick in axis.ticks]
    grid = "".join(f'<line class="grid" x1="{place}" x2="{place}" y2="30"/>' for place in places)
    dots = "".join(f'<circle class="dot" cx="{_along(axis, v)}" cy="15" r="5"/>' for v in trained.accuracies)
    mean = _along(axis, fmean(trained.accuracies))
    seeds = ", ".join(f"{value:.1f}" for value in trained.accuracies)
    return f"""<tr data-method="{trained.key}" class="{trained.series.hue}">
<th scope="row">{safe(trained.name)} <small>{safe(trained.about)}</small></th>
<td class="strip"><svg height="30" role="img" aria-label="test accuracy of each seed: {seeds} percent">{grid}{dots}
<line class="mean" x1="{mean}" x2="{mean}" y1="4" y2="26"/></svg></td>
<td class="number accuracy">{trained.accuracy}</td>
<td class="number resolved">{trained.resolved}</td></tr>"""


# --- the learning curves ----------------------------------------------------------------------------------


def _curves(content: DemoContent) -> str:
    series = [each.series for each in content.trained]
    low = ticks(min(90, lowest_settled(series, _SETTLED)), 100, smallest=1, below=True)[0]
    hidden = any(y < low for each in series for points in each.faint for _, y in points)
    return f"""<section>
<h2>How they learn</h2>
<figure>
{_chart(content, low, 960, 430, "wide")}
{_chart(content, low, 400, 380, "narrow")}
<figcaption>Accuracy on the test digits, in percent, as training goes on: the mean over seeds, and every seed as
a faint line. It was watched, never used. In the first {content.warm_up} epochs, their warm-up, IDGP and Membership
learn much as PRODEN does.{f" What lies below {low:g}% is cut off." * hidden}</figcaption>
</figure>
</section>"""


def _chart(content: DemoContent, low: float, width: int, height: int, kind: str) -> str:
    series = [each.series for each in content.trained]
    last = max(each.points[-1][0] for each in series)
    x_axis = Axis(0, last, ticks(0, last, smallest=1), "epochs")
    y_axis = Axis(low, 100, ticks(low, 100, smallest=1))
    plot = Plot(x_axis, y_axis, width - room_for(series) - 34, height - 50, top=10)
    results = ", ".join(f"{each.name} {fmean(each.accuracies):.1f}" for each in content.trained)
    words = f"Learning curves; mean test accuracy after the last epoch, in percent: {results}"
    body = _warm_up(plot, content.warm_up) + drawing(plot, series)
    return inline(Panel(width, height, body, words), f'class="chart {kind}"')


def _warm_up(plot: Plot, epochs: int) -> str:
    """Draw where the warm-up ends, if it is within the plot."""
    if not 0 < epochs < plot.x_axis.high:
        return ""
    x = plot.x(epochs)
    shift, anchor = (6, "start") if 2 * epochs < plot.x_axis.high else (-6, "end")  # never over the edge
    return (
        f'<line class="mark-line" x1="{x:.1f}" x2="{x:.1f}" y1="{plot.top}" y2="{plot.bottom}"/>'
        f'<text x="{x + shift:.1f}" y="{plot.bottom - 8}" text-anchor="{anchor}">warm-up ends ({epochs})</text>'
    )


# --- single digits ----------------------------------------------------------------------------------------


def _gallery(gallery: Gallery) -> str:
    kinds = "\n".join(
        f'<h3>{safe(title)}</h3>\n<ul class="gallery">' + "\n".join(map(_card, chosen)) + "</ul>"
        for title, chosen in gallery.kinds.items()
        if chosen
    )
    rows, wrong, most = gallery.rows, gallery.wrong, gallery.most
    return f"""<section>
<h2>What IDGP makes of single digits</h2>
<figure>
<figcaption>Training digits of seed {gallery.seed}. The large number is IDGP’s answer, one of the candidates below
it: the filled one is its answer, the ringed one the truth, which it never saw. The examples do not show how often
IDGP is wrong: they are {most} rows drawn at random, the {most} it is least sure of, and up to {most} of its surest
mistakes. <strong>Of all {rows} training rows, {wrong} are wrong ({100 * wrong / rows:.1f}%).</strong></figcaption>
{kinds}
</figure>
</section>"""


def _card(example: Example) -> str:
    right = example.answer == example.truth
    verdict, mark = ("right", "✓ right") if right else ("wrong", f"✗ wrong, it’s {example.truth}")
    chips = "".join(_chip(label, example) for label in example.candidates)
    width = f"{100 * example.sure:.0f}%"
    return f"""<li class="card {verdict}" data-row="{example.row}">{_picture(example)}
<p class="answer"><b>{example.answer}</b> <span class="mark">{mark}</span></p>
<p class="chips" role="group" aria-label="candidates">{chips}</p>
<p>{safe(_whole(example.sure))} sure <span class="bar"><span style="width: {width}"></span></span></p></li>"""


def _whole(share: float) -> str:
    """Write a probability as a whole percent, never as 0% or 100%."""
    return "<1%" if share < 0.005 else ">99%" if share > 0.995 else f"{100 * share:.0f}%"


def _chip(label: int, example: Example) -> str:
    roles = {"said": ", its answer" * (label == example.answer), "true": ", the truth" * (label == example.truth)}
    kinds = " ".join(["chip", *(kind for kind, role in roles.items() if role)])
    return f'<span class="{kinds}" role="img" aria-label="{label}{"".join(roles.values())}">{label}</span>'


def _picture(example: Example) -> str:
    squares = "".join(
        f'<path d="M{k % 8} {k // 8}h1v1h-1z" opacity="{shade / 16:.2f}"/>'
        for k, shade in enumerate(example.pixels)
        if shade
    )
    return f"""<svg viewBox="0 0 8 8" width="64" height="64" fill="currentColor" shape-rendering="crispEdges"
 role="img" aria-label="a scanned digit, in truth a {example.truth}">{squares}</svg>"""


# --- what was run -----------------------------------------------------------------------------------------


def _facts(facts: Mapping[str, str]) -> str:
    pairs = "\n".join(f"<dt>{safe(name)}</dt><dd>{safe(text)}</dd>" for name, text in facts.items())
    return f"<section>\n<h2>What was run</h2>\n<dl>\n{pairs}\n</dl>\n</section>"
