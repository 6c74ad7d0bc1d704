"""The demo's page: one HTML file that needs nothing else, neither network nor script."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oneof.pages.frame import COLOURS, document

if TYPE_CHECKING:
    from oneof.cli.demo import Outcome, Problem, Report, Run

_EACH_KIND = 8  # examples of each kind in the gallery
_WORDS = {  # a name short enough for a chart on a phone, and what the method does
    "true_labels": ("true labels", "knows every true label: the upper bound"),
    "cc": ("CC", "raises the candidates’ total probability"),
    "proden": ("PRODEN", "reweighs the candidates as it learns"),
    "idgp": ("IDGP", "also models how wrong candidates arise"),
    "membership": ("Membership", "also learns which candidates are usual"),
}
_STYLE = """
:root { --right: #15703a; --wrong: #b3261e }
.true_labels { --hue: #6f6b66 } .cc { --hue: #b35c00 } .proden { --hue: #00796b } .idgp { --hue: #1d4fd8 }
.membership { --hue: #9333c7 } .right { --hue: var(--right) } .wrong { --hue: var(--wrong) }
@media (prefers-color-scheme: dark) {
  :root { --right: #5fd38d; --wrong: #ff8a80 }
  .true_labels { --hue: #a8a4a0 } .cc { --hue: #f5a54a } .proden { --hue: #43cdb9 } .idgp { --hue: #82aaff }
  .membership { --hue: #cf94f5 } }
small, figcaption, thead th, dt { color: var(--soft); font-size: .875rem; font-weight: 400; line-height: 1.45 }
small { display: block } svg { display: block } svg text { fill: var(--soft); font-size: 12px }
table { width: 100%; border-collapse: collapse } th { width: 32%; text-align: left; font-weight: 600 }
tbody th, td { padding: .6rem 0; border-top: 1px solid var(--rule) } thead th { vertical-align: bottom }
.number { width: 7.5rem; text-align: right } td.accuracy { font-weight: 600 }
.strip { padding-inline: 1.2rem } .strip svg { width: 100%; overflow: visible }
.grid { stroke: var(--rule) } .dot { fill: var(--hue); fill-opacity: .45 }
.mean { stroke: var(--hue); stroke-width: 3 } .warm-up { stroke: var(--soft); stroke-dasharray: 4 4 }
.chart { width: 100%; height: auto } .chart path { fill: none; stroke: var(--hue); stroke-width: 2 }
.chart .seed { stroke-width: 1; stroke-opacity: .22 } .chart .idgp .line { stroke-width: 3 }
.true_labels .line { stroke-dasharray: 2 3 }
.chart .name { fill: var(--hue); font-weight: 600 } .thread { stroke: var(--hue); stroke-opacity: .5 }
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
  .wide { display: none } .narrow { display: block } .gallery { grid-template-columns: 1fr 1fr }
  tr { display: grid; grid-template-columns: 1fr 6rem 6rem; gap: 0 .75rem; align-items: end;
    border-top: 1px solid var(--rule) }
  thead tr { border: 0 } tbody th, td { border: 0; padding: .5rem 0 0 } th, .number { width: auto }
  .strip { order: 1; grid-column: 1 / -1; padding: 0 .6rem .4rem } tbody small { display: none } }
"""


def render(report: "Report") -> str:
    """Write the page."""
    problem = report.problems[0]
    body = f"""<header>
<h1>One of these labels is true</h1>
<p class="lead">Each of {len(problem.y_train)} scanned digits came with a set of candidate labels,
{fmean(report.set_sizes):.1f} on average: the true one and others that the image itself suggests. The same small
network was trained in {len(report.outcomes)} ways and then had to read {len(problem.y_test)} digits it had never
seen.</p>
</header>
<main>
{_results(report)}
{_curves(report)}
{_gallery(problem, _idgp(report).runs[0], report.seeds[0])}
{_facts(report)}
</main>"""
    return document("oneof demo: digits from ambiguous labels", COLOURS + _STYLE, body)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _idgp(report: "Report") -> "Outcome":
    return next(outcome for outcome in report.outcomes if outcome.contender.key == "idgp")


def ticks(low: float, high: float, most: int = 6) -> list[int]:
    """Return at most so many round numbers, evenly spaced, from ``low`` or just below it up to ``high``."""
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        marks = list(range(int(low // step * step), int(high) + 1, step))
        if len(marks) <= most:
            break
    return marks


# --- the table --------------------------------------------------------------------------------------------


def _results(report: "Report") -> str:
    marks = ticks(min(90, 100 * min(min(outcome.accuracy.values) for outcome in report.outcomes)), 100)
    axis = "".join(f'<text x="{_along(m, marks)}" y="13" text-anchor="middle">{m}</text>' for m in marks)
    rows = "\n".join(_row(outcome, marks) for outcome in report.outcomes)
    return f"""<section>
<h2>How well each way reads new digits</h2>
<figure>
<table>
<thead><tr><th scope="col">trained with</th>
<th scope="col" class="strip">each seed and the mean<svg height="16" aria-hidden="true">{axis}</svg></th>
<th scope="col" class="number">test<br>accuracy, %</th>
<th scope="col" class="number">training rows<br>resolved, %</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<figcaption>A dot is a seed (its own split, candidate sets and initial weights), the upright line is the mean of
{len(report.seeds)}, ± the sample standard deviation. Accuracy is that of the last epoch, with every method’s
defaults; nothing was selected. A training row is resolved when the most likely of its candidates is the true
label.</figcaption>
</figure>
<p>{escape(_findings(report))}</p>
</section>"""


def _along(percent: float, marks: list[int]) -> str:
    """Place a number on a strip that begins at the first mark and ends at 100."""
    return f"{100 * (percent - marks[0]) / (100 - marks[0]):.2f}%"


def _row(outcome: "Outcome", marks: list[int]) -> str:
    key, accuracy = outcome.contender.key, outcome.accuracy
    grid = "".join(f'<line class="grid" x1="{_along(m, marks)}" x2="{_along(m, marks)}" y2="30"/>' for m in marks)
    dots = "".join(f'<circle class="dot" cx="{_along(100 * v, marks)}" cy="15" r="5"/>' for v in accuracy.values)
    mean = _along(100 * accuracy.mean, marks)
    label = f"test accuracy of each seed: {', '.join(map(_percent, accuracy.values))} percent"
    return f"""<tr data-method="{key}" class="{key}">
<th scope="row">{escape(outcome.contender.name)} <small>{escape(_WORDS[key][1])}</small></th>
<td class="strip"><svg height="30" role="img" aria-label="{label}">{grid}{dots}
<line class="mean" x1="{mean}" x2="{mean}" y1="4" y2="26"/></svg></td>
<td class="number accuracy">{accuracy}</td>
<td class="number resolved">{outcome.disambiguation or "given"}</td></tr>"""


def _findings(report: "Report") -> str:
    """Say what the numbers say, whichever way they fall."""
    idgp, weak = _idgp(report), [outcome for outcome in report.outcomes if not outcome.contender.sees_truth]
    best = max(outcome.accuracy.mean for outcome in weak)
    leaders = " and ".join(outcome.contender.name for outcome in weak if outcome.accuracy.mean == best)
    gaps = []
    for other in weak:
        if other is not idgp:
            gap = [a - b for a, b in zip(idgp.accuracy.values, other.accuracy.values, strict=True)]
            higher = f"({sum(g > 0 for g in gap)} of {len(gap)})"
            gaps.append(f"{other.contender.name} {100 * fmean(gap):+.1f} {higher}".replace("-", "−"))
    return (
        f"Highest mean test accuracy without true labels: {leaders}, {_percent(best)}%. "
        f"IDGP minus the others, in points, and in how many seeds IDGP is higher: {', '.join(gaps)}."
    )


# --- the learning curves ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Where epochs and percents lie in a chart."""

    width: int
    height: int
    low: int
    last: int

    def x(self, epoch: float) -> float:
        return self.width * epoch / self.last

    def y(self, percent: float) -> float:
        return self.height * (100 - percent) / (100 - self.low)


def _curves(report: "Report") -> str:
    curves = [run.curve for outcome in report.outcomes for run in outcome.runs]
    # The steep rise of the first tenth would squeeze all that follows.
    settled = min(accuracy for curve in curves for epoch, accuracy in curve if epoch > curve[-1][0] / 10)
    low = ticks(min(90, 100 * settled), 100)[0]
    hidden = any(100 * accuracy < low for curve in curves for _, accuracy in curve)
    return f"""<section>
<h2>How they learn</h2>
<figure>
{_chart(report, low, 960, 430, "wide")}
{_chart(report, low, 400, 380, "narrow")}
<figcaption>Accuracy on the test digits, in percent, as training goes on: the mean over seeds, and every seed as
a faint line. It was watched, never used. In the first {report.warm_up} epochs, their warm-up, IDGP and Membership
learn much as PRODEN does.{f" What lies below {low}% is cut off." * hidden}</figcaption>
</figure>
</section>"""


def _chart(report: "Report", low: int, width: int, height: int, kind: str) -> str:
    last = max(outcome.runs[0].curve[-1][0] for outcome in report.outcomes)
    frame = _Frame(width - 136, height - 52, low, last)
    ends, lines = [], []
    for outcome in report.outcomes:
        curves = [[(frame.x(epoch), frame.y(100 * share)) for epoch, share in run.curve] for run in outcome.runs]
        mean = [(points[0][0], fmean(y for _, y in points)) for points in zip(*curves, strict=True)]
        seeds = "".join(_path(curve, "seed") for curve in curves)
        lines.append(f'<g class="{outcome.contender.key}">{seeds}{_path(mean, "line")}</g>')
        ends.append((outcome.contender.key, *mean[-1]))
    results = ", ".join(f"{o.contender.name} {_percent(o.accuracy.mean)}" for o in report.outcomes)
    label = escape(f"Learning curves; mean test accuracy after the last epoch, in percent: {results}")
    # The inner svg cuts off what lies below the frame.
    return f"""<svg class="chart {kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">
<g transform="translate(30 10)">{_axes(frame, report.warm_up)}
<svg width="{frame.width}" height="{frame.height}" overflow="hidden">{"".join(lines)}</svg>
{_line_names(frame, ends)}</g></svg>"""


def _path(points: Sequence[tuple[float, float]], kind: str) -> str:
    return f'<path class="{kind}" d="M{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _axes(frame: _Frame, warm_up: int) -> str:
    parts = [f'<text x="{frame.width / 2}" y="{frame.height + 36}" text-anchor="middle">epochs</text>']
    for percent in ticks(frame.low, 100):
        y = frame.y(percent)
        parts.append(f'<line class="grid" x2="{frame.width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{percent}</text>')
    for epoch in ticks(0, frame.last):
        parts.append(f'<text x="{frame.x(epoch):.1f}" y="{frame.height + 18}" text-anchor="middle">{epoch}</text>')
    if 0 < warm_up < frame.last:
        x = frame.x(warm_up)
        shift, anchor = (6, "start") if x < frame.width / 2 else (-6, "end")  # never over the edge
        text = f'<text x="{x + shift:.1f}" y="{frame.height - 8}" text-anchor="{anchor}">'
        parts.append(f'<line class="warm-up" x1="{x:.1f}" x2="{x:.1f}" y2="{frame.height}"/>')
        parts.append(f"{text}warm-up ends ({warm_up})</text>")
    return "".join(parts)


def _line_names(frame: _Frame, ends: list[tuple[str, float, float]]) -> str:
    """Name every line at its end, the names moved apart where they would overlap."""
    ends = sorted(ends, key=lambda end: end[2])
    heights = [y for _, _, y in ends]
    for above, below in pairwise(range(len(ends))):
        heights[below] = max(heights[below], heights[above] + 15)
    heights[-1] = min(heights[-1], frame.height)
    for below, above in pairwise(reversed(range(len(ends)))):
        heights[above] = min(heights[above], heights[below] - 15)
    edge = frame.width
    return "".join(
        f'<g class="{key}"><line class="thread" x1="{x + 2:.1f}" x2="{edge + 12}" y1="{y:.1f}" y2="{height:.1f}"/>'
        f'<text class="name" x="{edge + 15}" y="{height + 4:.1f}">{escape(_WORDS[key][0])}</text></g>'
        for (key, x, y), height in zip(ends, heights, strict=True)
    )


# --- the gallery ------------------------------------------------------------------------------------------


def choose(posterior: NDArray[Any], truth: NDArray[Any]) -> dict[str, list[int]]:
    """Choose training rows, none twice: some at random, the least sure ones, and the surest mistakes."""
    wrong = posterior.argmax(1) != truth
    rising = np.argsort(posterior.max(1), kind="stable").tolist()
    random = np.random.default_rng(0).permutation(len(truth))[:_EACH_KIND].tolist()
    unsure = [row for row in rising if row not in random][:_EACH_KIND]
    mistakes = [row for row in rising[::-1] if wrong[row] and row not in random + unsure][:_EACH_KIND]
    return {"Drawn at random": random, "Least sure": unsure, "Surest mistakes": mistakes}


def _gallery(problem: "Problem", run: "Run", seed: int) -> str:
    wrong, rows = int((run.posterior.argmax(1) != problem.y_train).sum()), len(problem.y_train)
    kinds = "\n".join(
        f'<h3>{title}</h3>\n<ul class="gallery">' + "\n".join(_card(problem, run, row) for row in chosen) + "</ul>"
        for title, chosen in choose(run.posterior, problem.y_train).items()
        if chosen
    )
    return f"""<section>
<h2>What IDGP makes of single digits</h2>
<figure>
<figcaption>Training digits of seed {seed}. The large number is IDGP’s answer, one of the candidates below it: the
filled one is its answer, the ringed one the truth, which it never saw. The examples do not show how often IDGP
is wrong: they are {_EACH_KIND} rows drawn at random, the {_EACH_KIND} it is least sure of, and up to {_EACH_KIND}
of its surest mistakes.
<strong>Of all {rows} training rows, {wrong} are wrong ({_percent(wrong / rows)}%).</strong></figcaption>
{kinds}
</figure>
</section>"""


def _card(problem: "Problem", run: "Run", row: int) -> str:
    truth, posterior = int(problem.y_train[row]), run.posterior[row]
    said, sure = int(posterior.argmax()), float(posterior.max())
    verdict, mark = ("right", "✓ right") if said == truth else ("wrong", f"✗ wrong, it’s {truth}")
    chips = "".join(_chip(label, said, truth) for label in np.flatnonzero(problem.candidates[row]).tolist())
    return f"""<li class="card {verdict}" data-row="{row}">{_picture(problem.x_train[row], truth)}
<p class="answer"><b>{said}</b> <span class="mark">{mark}</span></p>
<p class="chips" role="group" aria-label="candidates">{chips}</p>
<p>{escape(_whole(sure))} sure <span class="bar"><span style="width: {100 * sure:.0f}%"></span></span></p></li>"""


def _whole(share: float) -> str:
    """Write a share as a whole percent that claims neither never nor always."""
    return "<1%" if share < 0.005 else ">99%" if share > 0.995 else f"{100 * share:.0f}%"


def _chip(label: int, said: int, truth: int) -> str:
    roles = {"said": ", its answer" * (label == said), "true": ", the truth" * (label == truth)}
    kinds = " ".join(["chip", *(kind for kind, role in roles.items() if role)])
    return f'<span class="{kinds}" role="img" aria-label="{label}{"".join(roles.values())}">{label}</span>'


def _picture(pixels: NDArray[Any], truth: int) -> str:
    squares = "".join(
        f'<path d="M{k % 8} {k // 8}h1v1h-1z" opacity="{shade / 16:.2f}"/>'
        for k, shade in enumerate(pixels)
        if shade
    )
    return f"""<svg viewBox="0 0 8 8" width="64" height="64" fill="currentColor" shape-rendering="crispEdges"
 role="img" aria-label="a scanned digit, in truth a {truth}">{squares}</svg>"""


# --- what was run -----------------------------------------------------------------------------------------


def _facts(report: "Report") -> str:
    numbers = report.as_json()
    facts = {
        "Command": numbers["command"],
        "Data": "the handwritten digits inside scikit-learn, 8 × 8 pixels; each seed splits them anew: 60% to "
        "train, 20% to test, 20% left out; such rows, of other seeds, served to choose defaults (splits of "
        "several seeds overlap)",
        "Candidates": "a network trained on the true labels scores every image; a wrong label joins the set with "
        "a chance that follows its score (rate 0.4)",
        "Seeds": ", ".join(map(str, report.seeds)),
        "Epochs": " or ".join(map(str, sorted({outcome.runs[0].curve[-1][0] for outcome in report.outcomes}))),
        "Versions": ", ".join(f"{name} {number}" for name, number in numbers["versions"].items()),
        "Machine": f"{numbers['processor']}; {numbers['platform']}; processes: {numbers['processes']}",
        "Time": f"{numbers['seconds']} seconds",
    }
    pairs = "\n".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f"<section>\n<h2>What was run</h2>\n<dl>\n{pairs}\n</dl>\n</section>"
