"""How good the method is that ``oneof.compare`` takes: its accuracy beside the best method's, by true labels.

``python benchmarks/compare.py`` takes problems of the default suite, each with two seeds, compares the methods on
the training rows by their candidate sets alone, fits each of them on all of these rows and judges it on test rows.
A line for each problem and seed goes to benchmarks/results/compare.jsonl; those that are there are not repeated.
Then, and with ``--page`` alone, it writes the tables of docs/compare.md again. No choice was made on these seeds
but to sharpen, on twelve cases of six problems.
"""

import argparse
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from default_suite_problems import PROBLEMS
from marks import END, between

import oneof
from oneof.comparison.contenders import DEFAULTS

FOLDER = Path(__file__).parent
LEDGER = FOLDER / "results" / "compare.jsonl"
PAGE = FOLDER.parent / "docs" / "compare.md"
BEGIN = "<!-- written by benchmarks/compare.py -->"
SEEDS = (60, 61)
LEFT_OUT = ("fashion, lenet", "90 classes", "90 classes, part")  # hours on a CPU

Record = dict[str, Any]


def measure(name: str, seed: int) -> Record:
    """Compare the methods on a problem, and judge each of them, fitted on all training rows, by true labels."""
    problem = PROBLEMS[name]
    rows = problem.make(seed)
    settings = {"network": problem.network, "device": "cpu", "threads": 1}
    found = oneof.compare(rows.x, rows.candidates, settings=settings, random_state=seed)
    models = {method: oneof.METHODS[method](random_state=seed, **settings) for method in DEFAULTS}
    accuracy = {
        method: round(100 * float(model.fit(rows.x, rows.candidates).score(rows.x_test, rows.y_test)), 3)
        for method, model in models.items()
    }
    likelihood = {method: round(score.log_likelihood.mean, 5) for method, score in found.scores.items()}
    return {"taken": found.best, "sure": round(found.sure, 4), "accuracy": accuracy, "likelihood": likelihood}


def run(problems: list[str], seeds: list[int]) -> None:
    """Make the lines that the ledger lacks."""
    warnings.simplefilter("ignore")
    done = {(record["problem"], record["seed"]) for record in records()}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    for seed in seeds:
        for name in problems:
            if (name, seed) in done:
                continue
            begun = time.monotonic()
            try:
                found = measure(name, seed)
            except (OSError, ImportError) as error:
                print(f"left out: {name}: {error}", flush=True)
                continue
            record = {
                "problem": name, "seed": seed, **found, "commit": commit,
                "version": oneof.__version__, "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
                "seconds": round(time.monotonic() - begun, 1),
            }  # fmt: skip
            with LEDGER.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(name, seed, found["taken"], found["accuracy"], record["seconds"], flush=True)


def records() -> list[Record]:
    """Return what the ledger holds."""
    return [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []


def behind(record: Record, method: str) -> float:
    """Return by how many points a method is behind the best of the five."""
    return float(max(record["accuracy"].values()) - record["accuracy"][method])


def tables() -> str:
    """Return the tables of the page: what was taken on each problem, and what each choice costs."""
    found = records()
    out = ["| problem | taken, and how sure | its accuracy | best of the five |", "| --- | --- | --- | --- |"]
    for name in PROBLEMS:
        for each in (record for record in found if record["problem"] == name):
            accuracy = each["accuracy"]
            best = max(accuracy, key=accuracy.__getitem__)
            taken = f"{each['taken']}, {100 * each['sure']:.0f} %"
            out.append(f"| {name} | {taken} | {accuracy[each['taken']]:.1f} | {accuracy[best]:.1f} ({best}) |")
    choices: dict[str, Callable[[Record], str]] = {"**what `compare` takes**": lambda record: str(record["taken"])}
    choices |= {f"always {method}": lambda record, method=method: str(method) for method in DEFAULTS}
    out += ["", "| choice | behind the best: mean | worst | within a point |", "| --- | --- | --- | --- |"]
    for name, choice in choices.items():
        lost = [behind(record, choice(record)) for record in found]
        near = sum(each <= 1 for each in lost)
        out.append(f"| {name} | {fmean(lost):.2f} | {max(lost):.2f} | {near} of {len(lost)} |")
    return "\n".join(out)


def main() -> None:
    """Make the lines that the ledger lacks, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument(
        "--problems", nargs="+", choices=PROBLEMS, default=[p for p in PROBLEMS if p not in LEFT_OUT]
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    given = parser.parse_args()
    if not given.page:
        run(given.problems, given.seeds)
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables()), encoding="utf-8")


if __name__ == "__main__":
    main()
