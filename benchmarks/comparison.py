"""The method that ``oneof compare`` takes, beside the best of the five by true labels of other rows.

``python benchmarks/comparison.py`` compares with the defaults on tables, in three folds, and writes a line for
each problem and seed to benchmarks/results/comparison.jsonl; those that are there are not repeated. ``--page``
writes the tables of docs/compare.md again. The demo's digits are split as in the demo; of the other tables a fifth
judges, and at most 1,600 of the other rows are learned from.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from marks import END, between
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import oneof
from oneof.bench.running.execute import commit
from oneof.cli.demo import make_problem
from oneof.data.corrupt import uniform
from oneof.io.files import replacing

FOLDER = Path(__file__).parent
LEDGER = FOLDER / "results" / "comparison.jsonl"
PAGE = FOLDER.parent / "docs" / "compare.md"
BEGIN = "<!-- written by benchmarks/comparison.py -->"
TABLES = {"lost": "Lost", "msrcv2": "MSRCv2", "birdsong": "BirdSong", "fg-net": "FG-NET"}
PROBLEMS = {"look-alikes": "digits, look-alikes", "uniform": "digits, uniform sets", **TABLES}
SEEDS, MOST_ROWS = (0, 1, 2), 1600
METHODS = ("membership", "competition", "idgp", "proden", "cc")
Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X and sets to learn from, X and y that judge


def rows_of(problem: str, seed: int) -> Rows:
    """Return what is learned from and what judges."""
    if problem == "look-alikes":
        digits = make_problem(100 + seed)
        return digits.x_train, digits.candidates, digits.x_test, digits.y_test
    if problem == "uniform":
        X, y = load_digits(return_X_y=True)
        sets = uniform(y, 10, 0.3, seed=seed)
    else:
        data: Any = oneof.load_dataset(problem)
        X, y, sets = data.x, data.y, data.candidates
    train, test = train_test_split(np.arange(len(X)), test_size=0.2, random_state=seed)
    train = train[:MOST_ROWS]
    return X[train], sets[train], X[test], y[test]


def judged(problem: str, seed: int) -> dict[str, Any]:
    """Compare without true labels, then fit every method and judge it by them."""
    X, sets, x_test, y_test = rows_of(problem, seed)
    settings = {"device": "cpu", "threads": 1}
    found = oneof.compare(X, sets, METHODS, cv=3, settings=settings, random_state=seed)
    models = {name: oneof.METHODS[name](random_state=seed, **settings).fit(X, sets) for name in METHODS}
    accuracy = {
        name: round(100 * float((model.predict(x_test) == y_test).mean()), 2) for name, model in models.items()
    }
    return {"best": found.best, "sure": round(found.sure, 3), "level": list(found.level), "accuracy": accuracy}


def run() -> None:
    """Carry out what the ledger lacks."""
    warnings.simplefilter("ignore")
    done = {(record["problem"], record["seed"]) for record in records()}
    for seed in SEEDS:
        for problem in PROBLEMS:
            if (problem, seed) in done:
                continue
            begin = time.process_time()
            record = {
                "problem": problem, "seed": seed, **judged(problem, seed), "commit": commit(),
                "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
                "cpu_seconds": round(time.process_time() - begin, 1),
            }  # fmt: skip
            with LEDGER.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            print(record, flush=True)


def records() -> list[dict[str, Any]]:
    """Return what the ledger has."""
    return [json.loads(line) for line in LEDGER.read_text("utf-8").splitlines()] if LEDGER.exists() else []


def page() -> Iterator[str]:
    """Give the tables: what was taken, and what always taking one method would have cost."""
    found = sorted(records(), key=lambda record: (list(PROBLEMS).index(record["problem"]), record["seed"]))
    yield "| problem | seed | taken, and how sure | its accuracy | best of the five |"
    yield "| --- | --- | --- | --- | --- |"
    for record in found:
        accuracy, taken = record["accuracy"], record["best"]
        best = max(accuracy, key=accuracy.__getitem__)
        yield (
            f"| {PROBLEMS[record['problem']]} | {record['seed']} | {taken}, {100 * record['sure']:.0f} % | "
            f"{accuracy[taken]:.1f} | {accuracy[best]:.1f} ({best}) |"
        )
    yield f"\nPoints behind the best of the five, over these {len(found)} cases:\n"
    yield "| | on average | at worst |\n| --- | --- | --- |"
    for name in ("taken", *METHODS):
        behind = [
            max(record["accuracy"].values()) - record["accuracy"][record["best"] if name == "taken" else name]
            for record in found
        ]
        what = "what `compare` takes" if name == "taken" else f"always {name}"
        yield f"| {what} | {fmean(behind):.1f} | {max(behind):.1f} |"
    commits = ", ".join(sorted({str(record["commit"]) for record in found}))
    yield (
        f"\n`python benchmarks/comparison.py`, commit {commits}, {found[0]['hardware']}, one thread; each is "
        "a line of [`comparison.jsonl`](../benchmarks/results/comparison.jsonl)."
    )


def main() -> None:
    """Carry out what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="write the page alone")
    if not parser.parse_args().page:
        run()
    text = between(PAGE.read_text("utf-8"), BEGIN, END, "\n".join(page()))
    with replacing(PAGE) as file:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
