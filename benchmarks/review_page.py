"""The tables and curves of docs/results/review.md, from the ledger of benchmarks/review.py."""

import json
from pathlib import Path
from statistics import fmean

import review_figure
from marks import END, between
from votes_page import interval

LEDGER = Path(__file__).parent / "results" / "review.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "review.md"
BEGIN = "<!-- written by benchmarks/review.py -->"
OURS, RANDOM, MARGIN = "oneof review", "random", "margin"


def read() -> tuple[dict[str, list[dict]], list[dict]]:
    """Return the draws of each set, and the loops."""
    found: dict[str, list[dict]] = {}
    for record in map(json.loads, LEDGER.read_text().splitlines()):
        found.setdefault(record["set"], []).append(record)
    loops = [each["loop"] for each in found.pop("loop", [])]
    return found, loops


def ways_of(draws: list[dict]) -> list[str]:
    """Return the rankings of a set; ours first, random last."""
    return list(draws[0]["ways"])


def tables() -> str:
    """Return all tables."""
    found, loops = read()
    return "\n\n".join([_quality(found), _differences(found), _curves(found), _loops(loops)])


def _quality(found: dict[str, list[dict]]) -> str:
    header = [
        "set",
        "answers wrong",
        "truth outside (estimated)",
        "ranking",
        "ROC area",
        "precision at 1 %",
        "5 %",
        "10 %",
    ]
    lines = [_row([*header, "errors in the first 10 %"]), _row(["---"] * 9)]
    for name, draws in found.items():
        facts = [name, _percent(fmean(d["errors"] for d in draws))]
        facts.append(
            f"{_percent(fmean(d['outside'] for d in draws))} ({_percent(fmean(d['estimated'] for d in draws))})"
        )
        for way in ways_of(draws):
            each = [d["ways"][way] for d in draws]
            precision = [_percent(fmean(e["precision"][k] for e in each)) for k in range(3)]
            cells = [f"{fmean(e['auc'] for e in each):.3f}", *precision, _percent(fmean(e["found"] for e in each))]
            lines.append(_row([*facts, way, *cells]))
            facts = ["", "", ""]
    return "\n".join(lines)


def _differences(found: dict[str, list[dict]]) -> str:
    lines = [_row(["set", "draws", "ROC area: ours - margin", "ours - best of cleanlab", "best of cleanlab"])]
    lines.append(_row(["---"] * 5))
    for name, draws in found.items():
        rivals = [way for way in ways_of(draws) if way.startswith("cleanlab")]
        best = max(rivals, key=lambda way: fmean(d["ways"][way]["auc"] for d in draws))
        cells = []
        for other in (MARGIN, best):
            mean, low, high = interval([d["ways"][OURS]["auc"] - d["ways"][other]["auc"] for d in draws])
            cells.append(f"{mean:+.3f} ({low:+.3f} to {high:+.3f})")
        lines.append(_row([name, str(len(draws)), *cells, best.removeprefix("cleanlab, ")]))
    return "\n".join(lines)


def _curves(found: dict[str, list[dict]]) -> str:
    """Accuracy of all answers once so many rows are decided, without learning again."""
    shown = (0, 1, 2, 3, 5, 10)  # places in the curve: 2 % of the rows each
    lines = [_row(["set", "ranking", *(f"{2 * k} % decided" for k in shown)]), _row(["---"] * (len(shown) + 2))]
    for name, draws in found.items():
        for way in ways_of(draws):
            values = [_percent(fmean(d["ways"][way]["accuracy"][k] for d in draws)) for k in shown]
            lines.append(_row([name if way == OURS else "", way, *values]))
    return "\n".join(lines)


def _loops(loops: list[dict]) -> str:
    rounds = range(len(loops[0][OURS])) if loops else range(0)
    lines = [_row(["ranking", *(f"{40 * k} decisions" for k in rounds)]), _row(["---"] * (len(rounds) + 1))]
    for way in (OURS, MARGIN, RANDOM) if loops else ():
        cells = []
        for k in rounds:
            mean, low, high = interval([loop[way][k] for loop in loops])
            cells.append(f"{_percent(mean)} ({_percent(low)} to {_percent(min(high, 1))})")
        lines.append(_row([way, *cells]))
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write() -> None:
    """Write the page and its figures again."""
    PAGE.write_text(between(PAGE.read_text(), BEGIN, END, tables()))
    for path, text in review_figure.files(*read()).items():
        path.write_text(text)
