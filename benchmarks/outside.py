"""Rows whose true label is missing: accuracy with and without ``outside=``, and the estimated rate.

``python benchmarks/outside.py`` takes the demo's digits, whose labels are hidden among look-alikes, swaps the
truth of 0, 5, 10 and 20 % of the training rows for another label, and writes a line for each trial to
benchmarks/results/outside.jsonl; trials that are there are not repeated. ``--page`` writes the tables of
docs/outside.md again. Seeds 100 and above served to choose (validation rows); those below 100 judge (test rows).
"""

import argparse
import json
import os
import platform
import subprocess
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import oneof
from oneof.cli.demo import make_problem

FOLDER = Path(__file__).parent
LEDGER = FOLDER / "results" / "outside.jsonl"
PAGE = FOLDER.parent / "docs" / "outside.md"
BEGIN, END = "<!-- written by benchmarks/outside.py -->", "<!-- end -->"
RATES, SEEDS = (0.0, 0.05, 0.1, 0.2), range(5)
METHODS = ("competition", "membership", "idgp", "proden", "cc")
COMPUTE = {"device": "cpu", "threads": 1}
# What is compared: settings beside the defaults, as a function of the true rate.
WAYS = {"off": lambda rate: {}, "known": lambda rate: {"outside": rate}, "auto": lambda rate: {"outside": "auto"}}


def swapped(candidates: np.ndarray, y: np.ndarray, rate: float, seed: int) -> np.ndarray:
    """Return sets of which a share lost the truth to any label that was not in them; their sizes stay."""
    rng, sets = np.random.default_rng(5000 + seed), candidates.copy()
    for i in rng.permutation(len(y))[: round(rate * len(y))]:
        others = np.flatnonzero(~sets[i])
        if others.size:
            sets[i, y[i]], sets[i, rng.choice(others)] = False, True
    return sets


def trial(problem, method: str, way: str, rate: float, seed: int) -> dict[str, float]:
    """Fit once and measure: accuracy, and how well rows without their truth are found."""
    sets = swapped(problem.candidates, problem.y_train, rate, seed)
    model = oneof.METHODS[method](random_state=seed, **COMPUTE, **WAYS[way](rate)).fit(problem.x_train, sets)
    found = model.disambiguate(problem.x_train, sets)
    missing = ~sets[np.arange(len(sets)), problem.y_train]
    chosen, truth = (
        (problem.x_validation, problem.y_validation) if seed >= 100 else (problem.x_test, problem.y_test)
    )
    result = {
        "accuracy": float((model.predict(chosen) == truth).mean()),
        "resolved": float((found.label == problem.y_train).mean()),
        "missing": float(missing.mean()),
    }
    if model.outside != 0:
        result["rate"] = float(model.outside_rate_)
        if missing.any():
            result["area"] = float(roc_auc_score(missing, found.outside))
    return {name: round(value, 4) for name, value in result.items()}


def run(methods: list[str], rates: list[float], seeds: list[int], ways: list[str]) -> None:
    """Make the trials that the ledger lacks."""
    warnings.simplefilter("ignore")
    lines = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    done = {(r["method"], r["way"], r["rate"], r["seed"]) for r in map(json.loads, lines)}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    for seed in seeds:
        problem = make_problem(seed)
        for method in methods:
            for rate in rates:
                for way in ways:
                    if (method, way, rate, seed) in done or (way == "known" and not rate):
                        continue
                    begin = time.monotonic()
                    record = {
                        "method": method, "way": way, "rate": rate, "seed": seed,
                        "result": trial(problem, method, way, rate, seed),
                        "commit": commit, "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
                        "seconds": round(time.monotonic() - begin, 1),
                    }  # fmt: skip
                    with LEDGER.open("a") as file:
                        file.write(json.dumps(record) + "\n")
                    print(method, way, rate, seed, record["result"], record["seconds"], flush=True)


def tables() -> str:
    """Return the tables of the page."""
    records = [r for r in map(json.loads, LEDGER.read_text().splitlines()) if r["seed"] < 100]

    def values(method: str, way: str, rate: float, name: str) -> list[float]:
        cell = (r for r in records if (r["method"], r["way"], r["rate"]) == (method, way, rate))
        return [r["result"][name] for r in cell if name in r["result"]]

    def shown(numbers: list[float]) -> str:
        return f"{100 * np.mean(numbers):.1f} ± {100 * np.std(numbers):.1f}" if numbers else "–"

    methods = [m for m in METHODS if any(r["method"] == m for r in records)]
    head = "| test accuracy, % | " + " | ".join(f"{100 * rate:g} % missing" for rate in RATES) + " |"
    out = [head, "| --- |" + " --- |" * len(RATES)]
    for method in methods:
        for way in WAYS:
            cells = [shown(values(method, way, rate, "accuracy")) for rate in RATES]
            name = oneof.METHODS[method].__name__ + ("" if way == "off" else f", outside {way}")
            out += [f"| {name} | " + " | ".join(cells) + " |"] if set(cells) != {"–"} else []
    out += ["", head.replace("test accuracy", "rate that auto finds"), "| --- |" + " --- |" * len(RATES)]
    for method in methods:
        cells = [shown(values(method, "auto", rate, "rate")) for rate in RATES]
        out += [f"| {oneof.METHODS[method].__name__} | " + " | ".join(cells) + " |"] if set(cells) != {"–"} else []
    return "\n".join(out)


def write() -> None:
    """Write the tables into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Make the trials that the ledger lacks, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--rates", nargs="*", type=float, default=list(RATES))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    given = parser.parse_args()
    if not given.page:
        run(given.methods, given.rates, given.seeds, given.ways)
    write()


if __name__ == "__main__":
    main()
