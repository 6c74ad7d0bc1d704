"""What ``make faults`` and ``make fuzz`` found: ``python benchmarks/reliability.py`` writes it into its page.

Both suites put their figures into one JSON file. Nothing is tried again here.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marks import END, between

from oneof.bench.running.execute import circumstances as circumstances_of_a_run
from oneof.io.files import replacing

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "results" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
FAULTS, FUZZ = "<!-- faults, written by benchmarks/reliability.py -->", "<!-- fuzz, written by the same -->"

_OWN = (
    "command",
    "commit",
    "cores",
    "device",
    "versions",
    "seconds_in_all",
)  # of rows that were tried by themselves
OUTCOMES = {  # of an input -> the head of its column
    "read": "read",
    "refused": "refused in a sentence",
    "too_long": "in more than a line",
    "traceback": "traceback",
    "crash": "crash",
    "hang": "hang",
    "silent_nan": "silent NaN",
}


def main() -> None:
    """Write the page again."""
    PAGE.write_text(page(PAGE.read_text(), json.loads(FIGURES.read_text())))


def page(text: str, figures: Mapping[str, Any]) -> str:
    """Return the page with the tables of these figures."""
    text = between(text, FAULTS, END, f"{_origin(figures['faults'])}\n\n{faults_table(figures['faults'])}")
    return between(text, FUZZ, END, f"{_origin(figures['fuzz'])}\n\n{fuzz_table(figures['fuzz'])}")


def circumstances(command: str, seed: int) -> dict[str, Any]:
    """Say what was tried, where and with what."""
    where = circumstances_of_a_run("cpu")
    return {"command": command, "seed": seed, "cores": os.cpu_count(), **where}


def write(path: Path, part: str, figures: Mapping[str, Any], some: bool = False) -> None:
    """Replace one part of a file of figures, or with ``some`` only these rows, which say where they come from."""
    known = json.loads(path.read_text()) if path.is_file() else {}
    if some and part in known:
        origin = {name: figures[name] for name in _OWN}
        rows = {row["about"]: row for row in known[part]["rows"]}
        rows |= {row["about"]: {**row, "origin": origin} for row in figures["rows"]}
        figures = {**known[part], "rows": list(rows.values())}
    with replacing(path) as beside:
        beside.write_text(json.dumps({**known, part: figures}, indent=1) + "\n")


def faults_table(figures: Mapping[str, Any]) -> str:
    """Return what was tried, how often, and what became of it."""
    counts = ("tried", "survived", "lost", "traceback")
    rows = [
        [
            row["about"] + (f" (skipped: {row['skipped']})" if row["skipped"] else ""),
            *(row[name] for name in counts),
        ]
        for row in figures["rows"]
    ]
    return _table(["what was tried", "times", *counts[1:]], rows)


def fuzz_table(figures: Mapping[str, Any]) -> str:
    """Return what became of the inputs of every reader."""
    rows = [[row["reader"], row["inputs"], *(row[name] for name in OUTCOMES)] for row in figures["rows"]]
    return _table(["reader", "inputs", *OUTCOMES.values()], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown whose last line adds up the numbers."""
    totals = [sum(row[i] for row in rows) for i in range(1, len(header))]
    lines = [header, ["---"] * len(header), *rows, ["in all", *totals]]
    return "\n".join(
        f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in line)} |" for line in lines
    )


def _origin(figures: Mapping[str, Any]) -> str:
    """Return lines that say where the figures come from."""
    apart = {row["origin"]["command"]: row["origin"] for row in figures["rows"] if "origin" in row}
    return "\n".join([_line(figures), *(f"Later: {_line(origin)}" for origin in apart.values())])


def _line(figures: Mapping[str, Any]) -> str:
    left = f"; {figures['not_begun']} attempts were not begun in time" if figures.get("not_begun") else ""
    return (
        f"`{figures['command']}`, commit {figures['commit']}, {figures['cores']} cores ({figures['device']}), "
        f"torch {figures['versions']['torch']}, {figures['seconds_in_all']:,} s{left}."
    )


if __name__ == "__main__":
    main()
