"""The tables of docs/results/votes.md, from the ledger of benchmarks/votes.py."""

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

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


def read() -> list[dict[str, Any]]:
    """Return the records that were made with the settings of the last one."""
    records = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    return [record for record in records if record["models"] == records[-1]["models"]]


def by_setting(records: list[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, float]]]:
    """Return what each draw resolved right, by source and votes a row."""
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for record in records:
        found.setdefault((record["source"], record["votes"]), []).append(record["right"])
    return dict(sorted(found.items()))


def made(records: list[dict[str, Any]]) -> str:
    """Return a sentence on how records were made."""
    models = [
        f"{model['method']} with " + ", ".join(f"{name} {value}" for name, value in model["settings"].items())
        for model in records[-1]["models"]
    ]
    commits = sorted({record["commit"] for record in records})
    where = sorted({record.get("device", "a CPU") for record in records})
    seconds = fmean(record["seconds"] for record in records)
    return (
        f"Settings that are not those of the frozen baseline: {'; '.join(models)}. Commit {', '.join(commits)}, "
        f"{', '.join(where)}, {seconds:.0f} s a draw beside other work."
    )


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean of paired differences and its 95 % interval by Student's t."""
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return fmean(values), fmean(values) - half, fmean(values) + half


def tables() -> str:
    """Return what was resolved, and the differences."""
    records = read()
    found = by_setting(records)
    lines = [_row(["votes of", "a row", *WAYS, "draws", "scaled as a whole"]), _row(["---"] * (len(WAYS) + 4))]
    for (source, votes), draws in found.items():
        means = [f"{fmean(draw[way] for draw in draws):.2f}" for way in WAYS]
        alike = [r for r in records if (r["source"], r["votes"]) == (source, votes)]
        whole = sum(r.get("scaling") == "whole" for r in alike)  # by `oneof.resolve`
        lines.append(_row([source, str(votes), *means, str(len(draws)), str(whole)]))
    lines += ["", _row(["votes of", "a row", *(f"{ours} - {other}" for ours, other in DIFFERENCES)])]
    lines.append(_row(["---"] * (len(DIFFERENCES) + 2)))
    for (source, votes), draws in found.items():
        cells = []
        for ours, other in DIFFERENCES:
            mean, low, high = interval([draw[ours] - draw[other] for draw in draws])
            cells.append(f"{mean:+.2f} ({low:+.2f} to {high:+.2f})")
        lines.append(_row([source, str(votes), *cells]))
    return "\n".join([*lines, "", made(records)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write() -> None:
    """Write the page again."""
    PAGE.write_text(between(PAGE.read_text(), BEGIN, END, tables()))
