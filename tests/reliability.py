"""The figures of ``make faults`` and ``make fuzz``: one JSON file, and the tables of docs/reliability.md.

``python tests/reliability.py`` writes these tables into the page; nothing is tried again.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from oneof.bench.running.execute import circumstances as of_run
from oneof.io.files import replacing

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "results" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
END = "<!-- end -->"


def circumstances(command: str, seed: int) -> dict[str, Any]:
    """Say what was tried, where and with what."""
    where = of_run("cpu")
    return {
        "command": command,
        "commit": where["commit"],
        "device": where["device"],
        "cores": os.cpu_count(),
        "versions": where["versions"],
        "torch": torch.__version__,
        "seed": seed,
    }


def write(path: Path, part: str, figures: Mapping[str, Any]) -> None:
    """Replace one part of the file of figures."""
    known = json.loads(path.read_text()) if path.is_file() else {}
    with replacing(path) as beside:
        beside.write_text(json.dumps({**known, part: figures}, indent=1, sort_keys=True) + "\n")


def grid(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def faults_table(figures: Mapping[str, Any]) -> str:
    """Return what was tried, how often, and what became of it."""
    rows = [
        [
            row["about"] + (f" (not tried: {row['skipped']})" if row["skipped"] else ""),
            row["tried"],
            row["survived"],
            row["lost"],
            row["traceback"],
        ]
        for row in figures["rows"]
    ]
    counts = [sum(row[i] for row in rows) for i in range(1, 5)]
    return grid(["what was tried", "times", "survived", "lost", "traceback"], [*rows, ["in all", *counts]])
