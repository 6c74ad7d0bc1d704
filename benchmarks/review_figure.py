"""The figures of docs/results/review.md: accuracy and precision of rankings, and the loop, with 95 % intervals."""

from collections.abc import Callable, Sequence
from pathlib import Path

from votes_page import interval

from oneof.pages.charts import Axis, Plot, Series, chart, standalone, ticks
from oneof.pages.content import Figure, Panel
from oneof.pages.frame import GREY, HUES

FOLDER = Path(__file__).parents[1] / "docs" / "results"
HUE = {
    "oneof review": HUES[0],
    "margin": HUES[1],
    "cleanlab, self confidence": HUES[2],
    "cleanlab, crowdlab": HUES[4],
    "random": GREY,
}
DECIDED = tuple(2.0 * k for k in range(11))  # percent of the rows: the first steps of the curves
SHARES = (1.0, 5.0, 10.0)  # percent of the rows that precision is measured at
STEP = 40  # decisions of a round of the loop


def line(way: str, values: Sequence[Sequence[float]], at: Sequence[float]) -> Series:
    """Return the line of a ranking: means over draws, with faint lines along the ends of their intervals."""
    ends = [interval([100 * value for value in each]) for each in values]
    low = [(x, max(end[1], 0.0)) for x, end in zip(at, ends, strict=True)]
    high = [(x, min(end[2], 100.0)) for x, end in zip(at, ends, strict=True)]
    name = way.removeprefix("cleanlab, ")
    means = [(x, end[0]) for x, end in zip(at, ends, strict=True)]
    return Series(name, HUE[way], means, faint=[low, high], bold=way == "oneof review", dashed=way == "random")


def panel(title: str, series: Sequence[Series], x_title: str) -> Panel:
    """Draw the lines of one set."""
    values = [y for each in series for points in (each.points, *each.faint) for _, y in points]
    margin = max(0.04 * (max(values) - min(values)), 0.1)
    low, high = max(min(values) - margin, 0.0), min(max(values) + margin, 100.0)
    places = [x for x, _ in series[0].points]
    x_axis = Axis(places[0], places[-1], places if len(places) < 6 else places[::2], x_title)
    return chart(title, Plot(x_axis, Axis(low, high, ticks(low, high)), width=250, height=180, left=44), series)


def figures(found: dict[str, list[dict]], loops: list[dict]) -> list[Figure]:
    """Return the three figures."""

    def of_sets(x_title: str, at: Sequence[float], values: Callable[[dict], Sequence[float]]) -> list[Panel]:
        panels = []
        for name, draws in found.items():
            lines = [
                line(way, [[values(d["ways"][way])[k] for d in draws] for k in range(len(at))], at)
                for way in HUE
                if way in draws[0]["ways"]
            ]
            panels.append(panel(name, lines, x_title))
        return panels

    rounds = range(len(loops[0]["oneof review"]))
    loop = [
        line(way, [[each[way][k] for each in loops] for k in rounds], [float(STEP * k) for k in rounds])
        for way in ("oneof review", "margin", "random")
    ]
    accuracy = of_sets("rows decided, %", DECIDED, lambda way: way["accuracy"])
    precision = of_sets("first rows of the queue, %", SHARES, lambda way: way["precision"])
    learned = [panel("digits, 10 % outside", loop, "decisions")]
    return [
        Figure("review-loop", "Accuracy of all answers, %, learning again after each 40 decisions", learned),
        Figure("review-accuracy", "Accuracy of all answers, %, against the decided share of the rows", accuracy),
        Figure("review-precision", "Wrong answers among the first rows, %", precision),
    ]


def files(found: dict[str, list[dict]], loops: list[dict]) -> dict[Path, str]:
    """Return the figures as the content of files."""
    return {FOLDER / f"{each.name}.svg": standalone(each) for each in figures(found, loops)}
