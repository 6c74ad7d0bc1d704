"""What training on very many classes costs: peak memory and CPU seconds, each case in a process of its own.

``python benchmarks/scale.py`` runs all cases, writes benchmarks/results/scale.json and the tables of
docs/scale.md; ``--case NAME`` runs those whose name contains NAME and leaves the others as they are; ``--draw``
writes the page alone. The large cases take from minutes to half an hour each on one core. Linux, since memory is
read from /proc.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from marks import END, between
from scale_disk import disk_table, measured_on_disk
from scale_parts import in_parts, parts_table

import oneof
from oneof.bench.running.execute import circumstances
from oneof.io.files import replacing
from oneof.labels import sparse_sets

ROOT = Path(__file__).parents[1]
FIGURES, PAGE = ROOT / "benchmarks" / "results" / "scale.json", ROOT / "docs" / "scale.md"
FITS, PREDICTIONS = "<!-- fits, written by benchmarks/scale.py -->", "<!-- predictions, written by the same -->"
ON_DISK = "<!-- on disk, written by the same -->"
PARTS = "<!-- parts, written by the same -->"
FEATURES = 50

LARGE = {"rows": 1_000_000, "classes": 10_000, "candidates": 5, "settings": {"epochs": 1, "batch_size": 100}}
MIDDLE = {"rows": 100_000, "classes": 1_000, "candidates": 3, "settings": {"epochs": 2, "batch_size": 100}}
WIDE = {"rows": 20_000, "classes": 10_000, "candidates": 3, "settings": {"epochs": 1, "batch_size": 500}}
DISK = {"features": FEATURES, "classes": 10, "candidates": 3, "settings": {"epochs": 1, "batch_size": 1000}}
STEPS = {"method": "plcr", "network": "resnet18", "rows": 256, "side": 32, "candidates": 3, "classes": 10} | {
    "settings": {"epochs": 1, "batch_size": 128, "views": "weak+strong"}
}
CASES: dict[str, dict[str, Any]] = {
    "cc-20k-dense": WIDE | {"method": "cc", "form": "dense"},
    "cc-20k": WIDE | {"method": "cc"},
    "idgp-100k-dense": MIDDLE | {"method": "idgp", "form": "dense", "more": {"warm_up": 1}},
    "idgp-100k": MIDDLE | {"method": "idgp", "more": {"warm_up": 1}},
    "proden-100k-dense": MIDDLE | {"method": "proden", "form": "dense"},
    "proden-100k": MIDDLE | {"method": "proden"},
    "cc-1m": LARGE | {"method": "cc"},
    "proden-1m": LARGE | {"method": "proden"},
    "idgp-1m": LARGE | {"method": "idgp"},
    "disk-1m": DISK | {"rows": 1_000_000, "method": "cc", "turns": 5},
    "disk-10m": DISK | {"rows": 10_000_000, "method": "cc", "turns": 2},
    "parts-whole": STEPS,
    "parts-64": STEPS | {"more": {"rows_at_once": 64}},
    "parts-16": STEPS | {"more": {"rows_at_once": 16}},
    "predict-100k-classes": {"rows": 10_000, "classes": 100_000, "candidates": 5, "method": "cc", "predict": True}
    | {"settings": {"epochs": 1, "batch_size": 100}, "fitted_rows": 2_000},
}


def main() -> None:
    """Run cases and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", default="", help="run the cases whose name contains this")
    parser.add_argument("--one", help="run one case in this process, and print what was found")
    parser.add_argument("--draw", action="store_true", help="write the page alone")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(CASES[given.one])))
        return
    for name in [] if given.draw else [name for name in CASES if given.case in name]:
        print(name, end=" ", flush=True)
        run = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True)
        found = json.loads(run.stdout.splitlines()[-1])
        print(found, flush=True)
        known = json.loads(FIGURES.read_text()) if FIGURES.is_file() else {}
        where = {"command": f"python benchmarks/scale.py --case {name}", "seed": 0, **circumstances("cpu")}
        with replacing(FIGURES) as beside:
            beside.write_text(json.dumps({**known, name: CASES[name] | found | where}, indent=1) + "\n")
    PAGE.write_text(page(PAGE.read_text(), json.loads(FIGURES.read_text())))


def measured(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return peak memory and time of a case: of its fit, its prediction, or all steps with a table on disk."""
    if "features" in case:
        return measured_on_disk(case)
    if "side" in case:
        return peak_of(in_parts(case))
    X, y = problem(case)
    settings = case["settings"] | case.get("more", {})
    model = oneof.METHODS[case["method"]](network="linear", random_state=0, device="cpu", threads=1, **settings)
    if case.get("form") == "dense":
        sparse_sets.LEAST_CELLS = sys.maxsize
    warnings.simplefilter("ignore")  # of a training that is all warm-up
    if case.get("predict"):
        rows = case["fitted_rows"]
        model.fit(X[:rows], y[:rows], classes=range(case["classes"]))
        return peak_of(lambda: model.predict_top(X, 5))
    found = peak_of(lambda: model.fit(X, y))
    return found | {"loss": model.history_["loss"][-1]}


def problem(case: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return random rows and sets: float32 features whose class shows in them, and distinct candidates."""
    rng = np.random.default_rng(0)
    rows, classes, size = case["rows"], case["classes"], case["candidates"]
    truth = rng.integers(classes, size=rows)
    steps = rng.integers(1, classes // size, size=(rows, size - 1)).cumsum(1)  # so that no label comes twice
    columns = (truth[:, None] + np.concatenate([np.zeros((rows, 1), dtype=np.int64), steps], 1)) % classes
    starts = np.arange(0, rows * size + 1, size)
    y = scipy.sparse.csr_array(
        (np.ones(rows * size, dtype=bool), columns.ravel().astype(np.int32), starts), (rows, classes)
    )
    centres = rng.standard_normal((classes, FEATURES), dtype=np.float32)
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    X += centres[truth]
    return X, y


def peak_of(work: Any) -> dict[str, Any]:
    """Return the peak memory (bytes) of some work, that beyond what was there before, and its seconds."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    before, begun, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
    work()
    seconds = {
        "seconds": round(time.perf_counter() - begun, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }
    return {"peak": memory("VmHWM"), "beyond": memory("VmHWM") - before, **seconds}


def memory(name: str) -> int:
    """Return a figure of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def page(text: str, figures: Mapping[str, Any]) -> str:
    """Return the page with the tables of these figures."""
    others = {"predict", "features", "side"}
    fits = [case for case in CASES if case in figures and not others & CASES[case].keys()]
    text = between(text, FITS, END, f"{_origin(figures)}\n\n{fits_table(figures, fits)}")
    on_disk = [case for case in CASES if case in figures and "features" in CASES[case]]
    text = between(text, ON_DISK, END, disk_table(figures, on_disk))
    parts = [figures[case] for case in CASES if case in figures and "side" in CASES[case]]
    text = between(text, PARTS, END, parts_table(parts))
    return between(text, PREDICTIONS, END, predictions_table(figures))


def _origin(figures: Mapping[str, Any]) -> str:
    commits = sorted({figures[name]["commit"] for name in figures})
    versions = next(iter(figures.values()))["versions"]
    return (
        f"`python benchmarks/scale.py`, seed 0, one thread of a {next(iter(figures.values()))['device']} with "
        f"{os.cpu_count()} cores, torch {versions['torch']}, commit {', '.join(commits)}."
    )


def fits_table(figures: Mapping[str, Any], names: list[str]) -> str:
    """Return a row for each fit, dense ones beside the sparse ones they are compared with."""
    heads = (
        "method",
        "rows",
        "classes",
        "candidates",
        "form",
        "epochs",
        "batch",
        "peak",
        "beyond the data",
        "CPU s",
        "loss",
    )
    lines = [f"| {' | '.join(heads)} |"]
    lines += ["| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name in names:
        case = figures[name]
        compared = figures.get(f"{name}-dense")
        times = f" ({case['beyond'] / compared['beyond']:.2f} of dense)" if compared else ""
        speed = f" ({case['cpu_seconds'] / compared['cpu_seconds']:.2f})" if compared else ""
        lines.append(
            f"| {name_of(case)} | {case['rows']:,} | {case['classes']:,} | {case['candidates']} "
            f"| {case.get('form', 'sparse')} | {case['settings']['epochs']} "
            f"| {case['settings']['batch_size']} | {case['peak'] / 1e9:.2f} GB "
            f"| {case['beyond'] / 1e9:.2f} GB{times} | {case['cpu_seconds']:.0f}{speed} | {case['loss']:.4f} |"
        )
    return "\n".join(lines)


def name_of(case: Mapping[str, Any]) -> str:
    """Return the name of a case's method."""
    return oneof.METHODS[case["method"]].__name__


def predictions_table(figures: Mapping[str, Any]) -> str:
    """Return a row for each prediction."""
    heads = "call", "rows", "classes", "peak", "CPU s", "`predict_proba` would take"
    lines = [f"| {' | '.join(heads)} |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for case in (figures[name] for name in CASES if name in figures and CASES[name].get("predict")):
        whole = 4 * case["rows"] * case["classes"]
        lines.append(
            f"| `predict_top(X, 5)` of {name_of(case)} | {case['rows']:,} | {case['classes']:,} "
            f"| {case['peak'] / 1e9:.2f} GB | {case['cpu_seconds']:.0f} "
            f"| {whole / 1e9:.1f} GB |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
