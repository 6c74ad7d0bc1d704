"""The tables of docs/results/votes.md, from the ledger of benchmarks/votes.py."""

import json
from pathlib import Path
from statistics import fmean, stdev

from marks import END, between
from scipy.stats import t

LEDGER = Path(__file__).parent / "results" / "votes.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "votes.md"
BEGIN = "<!-- written by benchmarks/votes.py -->"
WAYS = (
    "majority",
    "dawid-skene",
    "cleanlab",
    "cleanlab, same network",
    "regression, our votes",
    "idgp",
    "idgp, resolve",
)
DIFFERENCES = (
    ("idgp", "majority"),
    ("idgp", "cleanlab"),
    ("idgp, resolve", "majority"),
    ("idgp, resolve", "cleanlab"),
    ("idgp, resolve", "cleanlab, same network"),
    ("regression, our votes", "cleanlab"),
)


def read() -> dict[tuple[str, int], list[dict[str, float]]]:
    """Return what each draw resolved right, by source and votes a row."""
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for record in map(json.loads, LEDGER.read_text().splitlines()):
        found.setdefault((record["source"], record["votes"]), []).append(record["right"])
    return dict(sorted(found.items()))


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean of paired differences and its 95 % interval by Student's t."""
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return fmean(values), fmean(values) - half, fmean(values) + half


def tables() -> str:
    """Return what was resolved, and the differences."""
    found = read()
    lines = [_row(["votes of", "a row", *WAYS, "draws"]), _row(["---"] * (len(WAYS) + 3))]
    for (source, votes), draws in found.items():
        means = [f"{fmean(draw[way] for draw in draws):.2f}" for way in WAYS]
        lines.append(_row([source, str(votes), *means, str(len(draws))]))
    lines += ["", _row(["votes of", "a row", *(f"{ours} - {other}" for ours, other in DIFFERENCES)])]
    lines.append(_row(["---"] * (len(DIFFERENCES) + 2)))
    for (source, votes), draws in found.items():
        cells = []
        for ours, other in DIFFERENCES:
            mean, low, high = interval([draw[ours] - draw[other] for draw in draws])
            cells.append(f"{mean:+.2f} ({low:+.2f} to {high:+.2f})")
        lines.append(_row([source, str(votes), *cells]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write() -> None:
    """Write the page again."""
    PAGE.write_text(between(PAGE.read_text(), BEGIN, END, tables()))
